"""A session that is kept besides this machine: where it lies here, and how it goes there and comes back."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from ..engine import engine
from ..errors import StorageError, StorageNotFoundError, StorageUnavailableError
from ..fileref import FileRef
from ..settings import Settings
from ..storage import RemoteStorage, StorageSpec, create_storage
from ..timeline import Timeline
from ..timeline.line import BadLineError, decode
from ..timeline.remote import LogMirror, RestoreReport, restore
from .erasing import Erased, erase_session

#: Seconds between two tries to tell that files are kept elsewhere, while the service is away.
_AGAIN = 5.0

#: Most bytes of a log's first line that are read.
_FIRST_LINE = 100_000


class Elsewhere:
    """The copy of one session in a storage. All methods but ``url_of`` run on the engine's loop.

    Args:
        storage: the session's.
        session_id: its name.
        tell: hears what the user should know: a service that is away, a writer on another machine.
    """

    def __init__(self, storage: RemoteStorage, session_id: str, tell: Callable[[str], None]) -> None:
        self._storage = storage
        self._id = session_id
        self._tell = tell
        self._mirror: LogMirror | None = None
        self._telling: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Get ready; nothing is sent.

        Raises:
            StorageError: the storage cannot be used; says what to set.
        """
        if self._storage.session_id != self._id:
            await self._storage.init(self._id)

    async def connect(self, timeline: Timeline) -> None:
        """Send the log and its blobs from here on; does nothing when that is so already.

        Raises:
            StorageConflictError: somebody else writes to the session, or the logs differ.
            StorageError: the service refuses, or what is there is damaged.
        """
        if self._mirror is None:
            await self.open()
            mirror = LogMirror(timeline, self._storage, tell=self._tell)
            await mirror.start()
            self._mirror = mirror

    async def bring(self, folder: Path) -> RestoreReport | None:
        """Bring what is new there; None when the session is not there, or nobody answers and it is here.

        Raises:
            StorageConflictError: the log here has other lines.
            StorageError: what is there is damaged, or the service cannot be reached and nothing is here.
        """
        await self.open()
        try:
            return await restore(self._storage, folder)
        except StorageNotFoundError:
            return None
        except StorageUnavailableError as error:
            if not (folder / "timeline.jsonl").is_file():
                raise
            self._tell(f"{error}. The session goes on with what is here")
            return None

    def url_of(self, key: str) -> str | None:
        """The address of one of the session's keys; None before ``open``."""
        return self._storage.bucket.url_of(key) if self._storage.session_id == self._id else None

    @property
    def url(self) -> str | None:
        """What ``Session.resume`` takes on another machine; None before the first turn."""
        return self._storage.url.rstrip("/") if self._storage.session_id == self._id else None

    def send(self, files: Sequence[FileRef], synced: Callable[[FileRef], None]) -> None:
        """Send what is in the log by now, soon; ``synced`` is told of files once they are there."""
        if self._mirror is None:
            return
        self._mirror.flush()
        if files:
            task = asyncio.create_task(self._tell_synced(self._mirror, files, synced))
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)

    @staticmethod
    async def _tell_synced(
        mirror: LogMirror, files: Sequence[FileRef], synced: Callable[[FileRef], None]
    ) -> None:
        while True:
            try:
                there = await mirror.synced()
                break
            except StorageUnavailableError:
                await asyncio.sleep(_AGAIN)
            except StorageError:
                return  # told by the mirror
        if there:
            for ref in files:
                synced(ref)

    async def synced(self) -> bool:
        """Wait until all that is in the log by now is there; False when nothing is sent from here any more.

        Raises:
            StorageError: it cannot be sent now; what waits stays here.
        """
        return await self._mirror.synced() if self._mirror is not None else True

    async def close(self) -> None:
        """Try to send what waits, for some seconds, and let go. Never raises."""
        if self._mirror is not None:
            await self._mirror.close()
            self._mirror = None
        waiting = list(self._telling)
        if waiting:  # what was sent just now is still to be told
            await asyncio.wait(waiting, timeout=1)
        for task in waiting:
            task.cancel()
        with contextlib.suppress(StorageError):
            await self._storage.close()


def place(
    spec: StorageSpec, session_id: str, sessions: Path, settings: Settings
) -> tuple[Path, RemoteStorage | None]:
    """Where a session lies on this machine, and the storage that it is kept in besides, if any.

    Args:
        spec: what was asked for; None takes what the settings say.
        session_id: the session's name.
        sessions: the folder of sessions beside the notebook.
        settings: ``storage`` and ``storage_cache``.

    Raises:
        StorageError: there can be no such storage, or it has no folder for a session's files.
    """
    spec = settings.storage if spec is None else spec
    if spec is None or spec == "local":
        return sessions / session_id, None
    if isinstance(spec, str):
        cache = Path(settings.storage_cache).expanduser() if settings.storage_cache else sessions
        if spec.startswith("tigris") and not settings.storage_cache and os.environ.get("FLY_VOLUME_PATH"):
            storage = create_storage(spec)  # which knows the machine's volume
        elif spec == "memory":
            storage = create_storage(spec)
        else:
            storage = create_storage(spec, cache_path=cache / session_id)
            if isinstance(storage, RemoteStorage):
                return cache / session_id, storage
    else:
        storage = create_storage(spec)
    engine().run(storage.init(session_id))
    if isinstance(storage, RemoteStorage):
        return storage.local_path(), storage
    return storage.local_path() / session_id, None


def storage_of(folder: Path) -> str | None:
    """The storage that a session's log names, without reading more of it than its first line."""
    try:
        with (folder / "timeline.jsonl").open("rb") as log:
            block, _ = decode(log.readline(_FIRST_LINE).rstrip(b"\n"))
    except (OSError, BadLineError):
        return None
    named = block.data.get("storage")
    return named if isinstance(named, str) else None


async def copies_of(folder: Path, settings: Settings) -> RemoteStorage | None:
    """The storage of a session of this machine, ready to erase its copies there; None when it has none.

    Raises:
        StorageError: it cannot be used.
    """
    here = settings.with_(storage_cache=str(folder.parent))
    _, storage = place(storage_of(folder), folder.name, folder.parent, here)
    if storage is not None:
        await storage.init(folder.name)
    return storage


async def erase(folder: Path, storage: RemoteStorage | None) -> Erased:
    """Erase a session here and in its storage; says what was erased and what could not be.

    Raises:
        SessionNotFoundError: there is no session in the folder.
        SessionLockedError: it is in use.
        SessionError: it cannot be erased.
    """
    if storage is not None and not storage.session_id:
        await storage.init(folder.name)
    try:
        return await erase_session(folder, storage)
    finally:
        if storage is not None:
            await storage.close()
