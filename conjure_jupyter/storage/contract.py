"""What a storage is: where the keys and bytes of one session are kept (ADR-0022).

Keys are relative paths with ``/``, such as ``blobs/9f86…`` or ``outputs/report.pdf``; ``keys.check_key`` says
which texts can be one, and every method refuses the others. A storage knows nothing of what keys mean.
Remote ones answer from a local copy at once and send it on through a queue on disk. All methods but
``local_path`` are coroutines on one event loop, the engine's; writes of one key keep the order of the calls.

Whoever writes a storage of their own runs ``conjure_jupyter.testing.storage_contract.StorageContract`` over
it.
"""

from __future__ import annotations

import abc
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

from ..errors import StorageError
from ..fileref import FileRef

FileEvent = Literal["created", "modified", "deleted", "synced"]

#: Hears what happened to a file, with the session's id; one that raises is logged and goes no further.
FileCallback: TypeAlias = Callable[[FileRef, str], object]

#: Makes a storage from options; what a class is when it is given for ``storage=``.
Options: TypeAlias = Mapping[str, Any]

#: Inside the class ``list`` is the method.
Refs: TypeAlias = list[FileRef]


class Storage(abc.ABC):
    """The keys and bytes of one session. ``init`` comes first; ``close`` lets go and deletes nothing."""

    #: The name it is chosen by: ``local``, ``memory``, ``s3``, ``tigris``.
    name: ClassVar[str]

    #: Whether bytes are also kept on another machine.
    remote: ClassVar[bool] = False

    session_id: str = ""

    @abc.abstractmethod
    async def init(self, session_id: str) -> None:
        """Get ready for a session: make its folder or local copy. Nothing remote is written.

        What an earlier process wrote and could not send is sent now, in the background.

        Raises:
            StorageError: it cannot be used; the message says what to set.
        """

    @abc.abstractmethod
    async def cleanup(self) -> Refs:
        """Delete all that this session has here, remote copies too; returns what was deleted.

        Never called by ``close``.

        Raises:
            StorageError: something could not be deleted; the rest was.
        """

    @abc.abstractmethod
    async def write(self, path: str, content: bytes | Path, *, content_type: str | None = None) -> FileRef:
        """Keep bytes, or a file's bytes, under a key, whole or not at all; a full disk leaves the old ones.

        Raises:
            StorageError: the key is no relative path, or the bytes cannot be kept.
        """

    @abc.abstractmethod
    async def read(self, path: str) -> bytes:
        """The bytes under a key.

        Raises:
            StorageNotFoundError: there are none.
            StorageError: they cannot be read.
        """

    @abc.abstractmethod
    async def exists(self, path: str) -> bool:
        """Whether there is something under a key.

        Raises:
            StorageUnavailableError: it is not here, and the service cannot be asked.
        """

    @abc.abstractmethod
    async def delete(self, path: str) -> None:
        """Delete a key; nothing happens when it is not there.

        Raises:
            StorageError: it cannot be deleted.
        """

    @abc.abstractmethod
    async def list(self, prefix: str = "") -> Refs:
        """All keys that begin with ``prefix``, sorted by path.

        ``sha256`` is empty where it is not known without fetching the bytes.

        Raises:
            StorageError: they cannot be listed.
        """

    @abc.abstractmethod
    def local_path(self) -> Path:
        """The folder on this machine that holds the files, for mounting.

        Raises:
            StorageError: there is none.
        """

    #: Fetches an address for ``sync_from_remote``; whoever sets it answers for what may be fetched.
    fetch: Callable[[str], Awaitable[bytes]] | None = None

    async def sync_from_remote(self, remote_files: Sequence[Mapping[str, Any]] | None = None) -> Refs:
        """Bring files here: those given (``path`` with ``content`` or ``url``), or all remote keys.

        ``content`` is bytes, text or a file's path; a ``url`` needs ``fetch``.

        Returns:
            What came.

        Raises:
            StorageError: something could not be brought.
        """
        came = []
        for given in remote_files or ():
            content = given.get("content")
            if content is None:
                content = await self._fetched(str(given.get("path")), given.get("url"))
            data = content.encode() if isinstance(content, str) else content
            came.append(await self.write(given["path"], data, content_type=given.get("content_type")))
        return came

    async def _fetched(self, path: str, url: str | None) -> bytes:
        if url is None:
            raise StorageError(path, "a remote file needs content or url")
        if self.fetch is None:
            raise StorageError(path, "a url can be brought only when the storage's fetch is set")
        return await self.fetch(url)

    async def sync_to_remote(self) -> Refs:
        """Send what waits, and wait for it; returns what was sent. Nothing to do where nothing is remote.

        Raises:
            StorageUnavailableError: the service cannot be reached; what waits stays on disk, in order.
            StorageConflictError: another writer was there first.
        """
        return []

    @property
    def pending(self) -> int:
        """How many writes and deletions wait to be sent."""
        return 0

    @abc.abstractmethod
    async def close(self) -> None:
        """Let go; what waits stays on disk for the next ``init``. May be called twice. Never raises."""
