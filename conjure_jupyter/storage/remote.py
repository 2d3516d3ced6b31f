"""A storage that keeps a copy here and the truth elsewhere: what S3, Tigris and other services share.

Reads are answered from the local copy. A write returns once the local copy and the queue's entry are on
disk; the queue sends it on. Another machine's version is never overwritten unseen: a write goes through at
the service only while what is there is what was last seen here.
"""

from __future__ import annotations

import abc
import asyncio
import contextlib
import hashlib
import os
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from ..errors import ConjureError, StorageError, StorageNotFoundError, ToolError
from ..errors import StorageUnavailableError as Unavailable
from ..fileref import FileRef
from ..paths import make_private_dir
from .bucket import Bucket, Item
from .concurrency import KeyLocks, all_of, whole
from .contract import Refs, Storage
from .entry import Entry, Mode
from .files import Folder, Staged, Written, signature
from .index import Index, Known
from .journal import INLINE
from .keys import QUEUE_FOLDER, check_key, content_type_of
from .queue import Backoff, UploadQueue
from .refs import file_ref

#: Downloads at once, and how often one that broke off is tried.
DOWNLOADS, TRIES = 16, 5

#: Seconds without any success after which ``sync_to_remote`` gives up on a service that fails.
PATIENCE = 30.0


class RemoteStorage(Storage):
    """Base of storages that keep a session's bytes in a bucket; a subclass says in which."""

    remote: ClassVar[bool] = True

    def __init__(
        self,
        *,
        cache_path: str | Path | None = None,
        patience: float = PATIENCE,
        backoff: Backoff | None = None,
    ) -> None:
        """Prepare; nothing is touched yet.

        Args:
            cache_path: folder of the local copies, in which each session gets one of its name; or the
                session's own folder, when that is its name already: then only the keys that are written or
                published here are sent, and the other files in it are left alone.
            patience: seconds without any success after which ``sync_to_remote`` gives up.
            backoff: how long the queue waits after failures.
        """
        self._cache_path = Path(cache_path) if cache_path is not None else None
        self._patience = patience
        self._backoff = backoff
        self._locks = KeyLocks()
        self._listings: list[set[str]] = []
        self._sent: dict[str, FileRef] = {}
        self._types: dict[str, str] = {}
        self._own = True
        self._ready = False

    @abc.abstractmethod
    def _make_bucket(self, session_id: str) -> Bucket:
        """The part of the bucket that is the session's.

        Raises:
            StorageError: an option is missing or wrong.
        """

    @abc.abstractmethod
    def _default_cache(self) -> Path:
        """The folder of the local copies when none is named; one a bucket."""

    @property
    def bucket(self) -> Bucket:
        """The session's part of the bucket.

        Raises:
            StorageError: before ``init``.
        """
        self._check_ready()
        return self._bucket

    @property
    def queue(self) -> UploadQueue:
        """What waits to be sent.

        Raises:
            StorageError: before ``init``.
        """
        self._check_ready()
        return self._queue

    @property
    def url(self) -> str:
        """The session's address, such as ``s3://bucket/sessions/abc/``."""
        return self.bucket.url

    async def init(self, session_id: str) -> None:
        """Make the local copy's folder, and send what an earlier process could not."""
        if self._ready:
            raise StorageError(self.session_id, "this storage has a session already; make another storage")
        check_key(session_id)
        if "/" in session_id:
            raise StorageError(session_id, "a session's name holds no '/'")
        self._bucket = self._make_bucket(session_id)
        given = self._cache_path
        self._own = given is None or given.name != session_id
        root = given if given and not self._own else (given or self._default_cache()) / session_id
        await asyncio.to_thread(_make_folder, root)
        self._files = Folder(root)
        self._index = Index(root / QUEUE_FOLDER / "seen")
        self._queue = UploadQueue(
            self._files, self._bucket, on_open=self._recover, on_sent=self._on_sent, backoff=self._backoff
        )
        self.session_id = session_id
        await self._queue.open()
        self._ready = True

    def _recover(self, left: Sequence[Entry]) -> None:
        """Bring the local copy up to what was acknowledged: a crash may have come between the two."""
        self._index.load()
        for entry in {entry.key: entry for entry in left}.values():
            if entry.op == "delete":
                self._files.delete(entry.key)
            elif entry.held != "file":
                here = self._files.look(entry.key)
                if here is None or here.sha256 != entry.sha256:
                    with self._queue.journal.content(entry) as content:
                        self._files.write(entry.key, content)

    def local_path(self) -> Path:
        """The folder of the local copy."""
        self._check_ready()
        return self._files.root

    @property
    def pending(self) -> int:
        """How many writes and deletions wait to be sent."""
        return self._queue.pending if self._ready else 0

    async def write(self, path: str, content: bytes | Path, *, content_type: str | None = None) -> FileRef:
        """Keep bytes here, and have them sent; returns once both are on disk."""
        self._check_ready(path)
        return await whole(self._write(path, content, content_type))

    async def _write(self, key: str, content: bytes | Path, content_type: str | None) -> FileRef:
        async with self._locked(key):
            await self._queue.check()
            etag, replaces = self._expected_there(key)
            with contextlib.ExitStack() as stack:
                staged, before = await asyncio.to_thread(self._stage, stack, key, content, replaces is None)
                written = staged.written
                few = isinstance(content, bytes) and len(content) <= INLINE
                await self._queue.put(
                    key,
                    content if isinstance(content, bytes) and few else staged.fd,
                    mode="known",
                    sha256=written.sha256,
                    content_type=content_type or content_type_of(key),
                    etag=etag,
                    replaces=before if replaces is None else replaces,
                    signature=written.signature,
                )
                written = await asyncio.to_thread(staged.commit)
                return self._here(key, written, content_type)

    def _stage(
        self, stack: contextlib.ExitStack, key: str, content: bytes | Path, look: bool
    ) -> tuple[Staged, str]:
        """The new file, as long as the stack is open, and the digest of the old one when it is asked for."""
        before = self._files.look(key) if look else None
        return stack.enter_context(self._files.staged(key, content)), before.sha256 if before else ""

    async def publish(
        self,
        path: str,
        *,
        ordered: bool = False,
        new: bool = False,
        immutable: bool = False,
        sha256: str = "",
        content_type: str | None = None,
    ) -> FileRef:
        """Have a file sent that lies in the local copy already; returns once that is on disk.

        Args:
            path: its key.
            ordered: send it after all that was written before it.
            new: a conflict when there is anything at the service but the same bytes.
            immutable: the file will not change until it is sent, so it need not be copied.
            sha256: of its bytes, when it is known; only then is a large file not read here.
            content_type: MIME type; by the name's ending when not given.

        Raises:
            StorageNotFoundError: no such file lies there.
            StorageConflictError: another process has the local copy, or the queue stopped at a conflict.
            StorageError: it cannot be read, or what waits not be kept.
        """
        self._check_ready(path)
        kind = content_type or content_type_of(path)
        mode: Mode = "new" if new else "any" if immutable else "known"
        work = self._publish(path, mode, kind, ordered=ordered, immutable=immutable, sha256=sha256)
        return await whole(work)

    async def _publish(
        self, key: str, mode: Mode, content_type: str, *, ordered: bool, immutable: bool, sha256: str
    ) -> FileRef:
        async with self._locked(key):
            await self._queue.check()
            # The file that lies here is the new version already, and says nothing of the one it replaces.
            etag, replaces = self._expected_there(key)
            with contextlib.ExitStack() as stack:
                content, here = await asyncio.to_thread(self._take, stack, key, immutable, sha256)
                entry = await self._queue.put(
                    key,
                    content,
                    mode=mode,
                    ordered=ordered,
                    size=here.size,
                    sha256=here.sha256,
                    content_type=content_type,
                    etag=etag,
                    replaces=replaces or "",
                    signature=here.signature,
                )
            return self._here(key, replace(here, size=entry.size, sha256=entry.sha256), content_type)

    def _take(
        self, stack: contextlib.ExitStack, key: str, immutable: bool, sha256: str
    ) -> tuple[bytes | int | None, Written]:
        """What of a file the queue gets, and what the file is; it stays open as long as the stack."""
        fd = stack.enter_context(self._files.opened(key))
        status = os.fstat(fd)
        here = Written(status.st_size, "", signature(status), status.st_mtime)
        if status.st_size <= INLINE:
            data = os.pread(fd, INLINE + 1, 0)
            return data, replace(here, sha256=hashlib.sha256(data).hexdigest())
        if not immutable:
            return fd, here
        if not sha256:
            with open(fd, "rb", closefd=False) as file:
                sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        return None, replace(here, sha256=sha256)

    def _expected_there(self, key: str) -> tuple[str, str | None]:
        """Etag and SHA-256 of what should be at the service when the next operation gets there.

        Both are empty for nothing; the digest is None when the file that lies here, if any, must say.
        """
        known, last = self._index.get(key), self._queue.last(key)
        if last is not None:
            return ("", "") if last.op == "delete" else (known.etag if known else last.etag, last.sha256)
        return (known.etag, known.sha256 or None) if known else ("", None)

    async def read(self, path: str) -> bytes:
        """The bytes under a key: from here, else from the service, and kept here."""
        self._check_ready(path)
        last = self._queue.last(path)
        if last is not None and last.op == "delete":
            raise StorageNotFoundError(path, "it was deleted")
        try:
            return await asyncio.to_thread(self._files.read, path)
        except StorageNotFoundError:
            await whole(self._bring_patiently(path))
        return await asyncio.to_thread(self._files.read, path)

    async def _bring_patiently(self, key: str, *, digest: bool = False) -> Written:
        for attempt in range(TRIES - 1):
            try:
                return await self._bring(key, digest=digest)
            except Unavailable:
                await asyncio.sleep(0.1 * 2**attempt)
        return await self._bring(key, digest=digest)

    async def _bring(self, key: str, *, digest: bool) -> Written:
        """Bring a key from the service, unless a write here was quicker."""
        async with self._locked(key):
            last = self._queue.last(key)
            if (
                last is not None
                and last.op == "put"
                and (here := await asyncio.to_thread(self._files.look, key))
            ):
                return here
            with contextlib.ExitStack() as stack:
                staged = await asyncio.to_thread(stack.enter_context, self._files.staged(key, None))
                found = hashlib.sha256() if digest else None
                item = await self._bucket.get_to_fd(key, staged.fd, found.update if found else None)
                await asyncio.to_thread(staged.filled, found.hexdigest() if found else "")
                written = await asyncio.to_thread(staged.commit)
                self._index.record(key, Known(item.etag, written.sha256, written.signature))
                return written

    async def exists(self, path: str) -> bool:
        """Whether there is something under a key, here or at the service."""
        self._check_ready(path)
        last = self._queue.last(path)
        if last is not None:
            return last.op == "put"
        if await asyncio.to_thread(self._files.look, path, digest=False):
            return True
        try:
            await self._bucket.head(path)
        except StorageNotFoundError:
            return False
        return True

    async def delete(self, path: str) -> None:
        """Delete a key here, and have it deleted at the service."""
        self._check_ready(path)
        await whole(self._delete(path))

    async def _delete(self, key: str) -> None:
        async with self._locked(key):
            await self._queue.check()
            etag, replaces = self._expected_there(key)
            if replaces is None:
                here = await asyncio.to_thread(self._files.look, key)
                replaces = here.sha256 if here else ""
            await self._queue.delete(key, etag=etag, replaces=replaces)
            await asyncio.to_thread(self._files.delete, key)
            self._types.pop(key, None)

    async def list(self, prefix: str = "") -> Refs:
        """All keys here and at the service.

        In a session's own folder, of what lies here only what waits to be sent counts.
        """
        self._check_ready()
        # Of what waits, or moves while the service answers, the answer may be old: what lies here counts.
        moved = {*self._queue.waiting_keys}
        self._listings.append(moved)
        try:
            found = {item.key: item for item in await self._bucket.list(prefix)}
            here = await asyncio.to_thread(self._files.keys, prefix) if self._own else ()
        finally:
            self._listings = [other for other in self._listings if other is not moved]
        keys = {key for key in {*found, *here, *moved} if key.startswith(prefix)}
        there = {key: item for key, item in found.items() if key not in moved}
        refs = await asyncio.to_thread(lambda: [self._look(key, there.get(key)) for key in sorted(keys)])
        return [ref for ref in refs if ref is not None]

    def _look(self, key: str, item: Item | None) -> FileRef | None:
        try:
            here = self._files.look(key)
        except StorageError:
            here = None  # not a key that can lie here: the service's side counts
        if here is not None:
            return self._here(key, here, None)
        return self._there(item) if item else None

    async def sync_from_remote(self, remote_files: Sequence[Mapping[str, Any]] | None = None) -> Refs:
        """Bring the given files here, or all keys that are not here as the service has them.

        What waits to be sent is not overwritten.
        """
        self._check_ready()
        if remote_files is not None:
            return await super().sync_from_remote(remote_files)
        items = iter(await self._bucket.list())
        came: dict[str, FileRef] = {}

        async def bring() -> None:
            for item in items:
                if await self._differs(item):
                    written = await self._bring_patiently(item.key, digest=True)
                    came[item.key] = self._here(item.key, written, None)

        await whole(all_of([bring() for _ in range(DOWNLOADS)]))
        return [came[key] for key in sorted(came)]

    async def _differs(self, item: Item) -> bool:
        try:
            check_key(item.key)
        except StorageError:
            return False  # not ours: somebody else's file under the same prefix
        if self._queue.last(item.key) is not None:
            return False
        known = self._index.get(item.key)
        here = await asyncio.to_thread(self._files.look, item.key, digest=False)
        return here is None or known is None or (known.etag, known.signature) != (item.etag, here.signature)

    async def sync_to_remote(self) -> Refs:
        """Send what waits, and wait for it; returns all that was sent since the last call."""
        self._check_ready()
        try:
            await self._queue.drained(self._patience)
        finally:
            sent, self._sent = self._sent, {}
        return [sent[key] for key in sorted(sent)]

    async def cleanup(self) -> Refs:
        """Delete all keys here and at the service, and what waits to be sent."""
        self._check_ready()
        if not await self._queue.open():
            await self._queue.check()
        waiting = {entry.key for entry in await self._queue.discard()}
        failure: StorageError | None = None
        deleted: dict[str, FileRef] = {}
        for key in [*waiting, *(await asyncio.to_thread(self._files.keys) if self._own else ())]:
            if (ref := await asyncio.to_thread(self._look, key, None)) is not None:
                deleted[key] = ref
        try:
            # Once more where something was being sent: a request that was cut off may arrive all the same.
            for _ in range(2 if waiting else 1):
                items = await self._bucket.list()
                await self._bucket.delete_many([item.key for item in items])
                deleted.update({item.key: deleted.get(item.key) or self._there(item) for item in items})
        except StorageError as error:
            failure = error
        await self.close()
        await asyncio.to_thread(self._remove, [*deleted])
        if failure is not None:
            raise failure
        return [deleted[key] for key in sorted(deleted)]

    def _remove(self, keys: Sequence[str]) -> None:
        root = self._files.root
        if not self._own:
            for key in keys:
                self._files.delete(key)
            root = root / QUEUE_FOLDER
        try:
            shutil.rmtree(root)
        except (OSError, RecursionError) as error:
            raise StorageError(str(root), f"cannot be removed: {error}") from error

    async def close(self) -> None:
        """Let go; what waits stays on disk for the next ``init``."""
        if self._ready:
            self._ready = False
            with contextlib.suppress(ConjureError, OSError):
                await self._queue.close()
            self._index.close()

    def _check_ready(self, key: str | None = None) -> None:
        if not self._ready:
            raise StorageError(self.name, "the storage is not open; call init(session_id) first")
        if key is not None:
            check_key(key)

    def _on_sent(self, entry: Entry, etag: str) -> None:
        if entry.op == "delete":
            self._index.record(entry.key, None)
            return
        self._index.record(entry.key, Known(etag, entry.sha256, entry.signature))
        url = self._bucket.url_of(entry.key)
        self._sent[entry.key] = file_ref(
            entry.key, entry.size, entry.sha256, url=url, kind=entry.content_type
        )

    def _here(self, key: str, here: Written, content_type: str | None) -> FileRef:
        if content_type:
            self._types[key] = content_type
        return file_ref(
            key,
            here.size,
            here.sha256,
            url=self._bucket.url_of(key),
            kind=self._types.get(key),
            created=here.changed,
            local_path=self._files.path(key),
        )

    def _there(self, item: Item) -> FileRef:
        url, created = self._bucket.url_of(item.key), item.modified.timestamp()
        known = self._index.get(item.key)
        sha256 = known.sha256 if known and known.etag == item.etag else ""
        return file_ref(item.key, item.size, sha256, url=url, kind=self._types.get(item.key), created=created)

    @contextlib.asynccontextmanager
    async def _locked(self, key: str) -> AsyncIterator[None]:
        for moved in self._listings:
            moved.add(key)
        async with self._locks.held(key):
            yield


def _make_folder(root: Path) -> None:
    try:
        make_private_dir(root)
    except ToolError as error:
        raise StorageError(str(root), f"the local copy cannot be made: {error.message}") from error
