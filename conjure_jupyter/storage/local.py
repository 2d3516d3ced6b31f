"""A storage in a folder of this machine."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import ClassVar

from ..errors import StorageError, ToolError
from ..fileref import FileRef
from ..paths import make_private_dir
from .concurrency import KeyLocks, whole
from .contract import Refs, Storage
from .files import Folder, Written
from .keys import check_key
from .refs import file_ref


class LocalStorage(Storage):
    """The files of a session in a folder that only its owner can enter; mode 0700, files 0600."""

    name: ClassVar[str] = "local"

    def __init__(
        self,
        *,
        base_path: str | Path | None = None,
        prefix: str | None = None,
        folder: str | Path | None = None,
    ) -> None:
        """Name the folder; ``init`` makes it.

        Args:
            base_path: where the session's folder is made; the system's temporary folder when not given.
            prefix: its name before ``_`` and the session's id; ``conjure`` when not given.
            folder: the session's folder itself, in place of both.

        Raises:
            StorageError: ``folder`` was given together with another.
        """
        if folder is not None and (base_path is not None or prefix is not None):
            raise StorageError(self.name, "give folder, or base_path and prefix, not both")
        self._base = Path(base_path) if base_path is not None else Path(tempfile.gettempdir())
        self._prefix = prefix if prefix is not None else "conjure"
        self._folder = Path(folder) if folder is not None else None
        self._files: Folder | None = None
        self._locks = KeyLocks()
        self._types: dict[str, str] = {}

    async def init(self, session_id: str) -> None:
        """Make the session's folder."""
        name = check_key(f"{self._prefix}_{session_id}")
        if "/" in name:
            raise StorageError(session_id, "a session's name and prefix hold no '/'")
        root = self._folder or self._base / name
        try:
            await asyncio.to_thread(make_private_dir, root)
        except ToolError as error:
            raise StorageError(str(root), f"the folder cannot be made: {error.message}") from error
        self.session_id = session_id
        self._files = Folder(root)

    @property
    def _open(self) -> Folder:
        if self._files is None:
            raise StorageError(self.name, "the storage is not open; call init(session_id) first")
        return self._files

    def local_path(self) -> Path:
        """The session's folder."""
        return self._open.root

    async def write(self, path: str, content: bytes | Path, *, content_type: str | None = None) -> FileRef:
        """Keep bytes in the key's file, which is replaced in one step."""
        written = await whole(self._write(self._open, path, content))
        if content_type:
            self._types[path] = content_type
        return self._ref(path, written)

    async def _write(self, files: Folder, key: str, content: bytes | Path) -> Written:
        async with self._locks.held(key):
            return await asyncio.to_thread(files.write, key, content)

    async def _delete(self, files: Folder, key: str) -> None:
        async with self._locks.held(key):
            await asyncio.to_thread(files.delete, key)

    async def read(self, path: str) -> bytes:
        """The bytes of the key's file."""
        return await asyncio.to_thread(self._open.read, path)

    async def exists(self, path: str) -> bool:
        """Whether the key's file is there."""
        return await asyncio.to_thread(self._open.look, path, digest=False) is not None

    async def delete(self, path: str) -> None:
        """Delete the key's file, and the folders it leaves empty."""
        self._types.pop(path, None)
        await whole(self._delete(self._open, path))

    async def list(self, prefix: str = "") -> Refs:
        """All files whose keys begin with ``prefix``; each is read once for its digest."""
        return await asyncio.to_thread(self._listed, prefix)

    def _listed(self, prefix: str) -> Refs:
        files = self._open
        looked = ((key, files.look(key)) for key in files.keys(prefix))
        return [self._ref(key, here) for key, here in looked if here is not None]

    async def cleanup(self) -> Refs:
        """Delete the folder and all in it."""
        deleted = await self.list()
        root = self._open.root
        self._files = None
        try:
            await asyncio.to_thread(shutil.rmtree, root)
        except (OSError, RecursionError) as error:
            raise StorageError(str(root), f"cannot be removed: {error}") from error
        return deleted

    async def close(self) -> None:
        """Let go; the folder stays."""
        self._files = None

    def _ref(self, key: str, here: Written) -> FileRef:
        kind, path = self._types.get(key), self.local_path() / key
        return file_ref(key, here.size, here.sha256, kind=kind, created=here.changed, local_path=path)
