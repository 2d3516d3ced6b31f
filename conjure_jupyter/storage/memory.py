"""A storage that ends with its process: for tests, and for sessions that should leave nothing."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import ClassVar, NoReturn

from ..errors import StorageError, StorageNotFoundError
from ..fileref import FileRef
from .concurrency import KeyLocks
from .contract import Refs, Storage
from .keys import check_key
from .refs import file_ref


class MemoryStorage(Storage):
    """The files of a session in a dict; ``close`` keeps them for a further ``init`` of the same session."""

    name: ClassVar[str] = "memory"

    def __init__(self) -> None:
        self._files: dict[str, tuple[bytes, FileRef]] = {}
        self._locks = KeyLocks()
        self._ready = False

    async def init(self, session_id: str) -> None:
        """Get ready; the files of another session are forgotten."""
        if session_id != self.session_id:
            self._files.clear()
        self.session_id = check_key(session_id)
        self._ready = True

    def _check(self, key: str | None = None) -> None:
        if not self._ready:
            raise StorageError(self.name, "the storage is not open; call init(session_id) first")
        if key is not None:
            check_key(key)

    def local_path(self) -> NoReturn:
        """There is none."""
        raise StorageError(self.name, "memory has no folder to mount; use storage='local'")

    async def write(self, path: str, content: bytes | Path, *, content_type: str | None = None) -> FileRef:
        """Keep bytes."""
        self._check(path)
        async with self._locks.held(path):
            try:
                data = await asyncio.to_thread(content.read_bytes) if isinstance(content, Path) else content
            except OSError as error:
                raise StorageError(path, error.strerror or str(error)) from error
            ref = file_ref(path, len(data), hashlib.sha256(data).hexdigest(), kind=content_type)
            self._files[path] = bytes(data), ref
            return ref

    async def read(self, path: str) -> bytes:
        """The bytes under a key."""
        self._check(path)
        if path not in self._files:
            raise StorageNotFoundError(path, "there is nothing under that key")
        return self._files[path][0]

    async def exists(self, path: str) -> bool:
        """Whether there is something under a key."""
        self._check(path)
        return path in self._files

    async def delete(self, path: str) -> None:
        """Forget a key."""
        self._check(path)
        self._files.pop(path, None)

    async def list(self, prefix: str = "") -> Refs:
        """All keys that begin with ``prefix``."""
        self._check()
        return [ref for key, (_, ref) in sorted(self._files.items()) if key.startswith(prefix)]

    async def cleanup(self) -> Refs:
        """Forget all keys."""
        deleted = await self.list()
        self._files.clear()
        return deleted

    async def close(self) -> None:
        """Let go; nothing is forgotten."""
        self._ready = False
