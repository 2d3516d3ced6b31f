"""Bytes on their way from a bucket to a file: one piece is written while the next travels."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator
from typing import TypeAlias

from ..errors import StorageError

#: Bytes that are written at once.
PIECE = 4 * 1024 * 1024

#: Hears the bytes of a download, piece by piece.
Listener: TypeAlias = Callable[[bytes], object]


class FileWriter:
    """Writes pieces to an open file, each in a thread; ``aclose`` waits for the last."""

    def __init__(self, fd: int, offset: int, listener: Listener | None, where: str) -> None:
        """Begin.

        Args:
            fd: the file.
            offset: where in it the next piece goes.
            listener: hears each piece.
            where: the address to name in errors.
        """
        self.offset = offset
        self._fd, self._listener, self._where = fd, listener, where
        self._writing: asyncio.Future[None] | None = None

    async def write(self, piece: bytes) -> None:
        """Take a piece, once the one before is written.

        Raises:
            StorageError: the disk is full, or the like.
        """
        await self.aclose()
        self._writing = asyncio.ensure_future(asyncio.to_thread(self._write, piece, self.offset))
        self.offset += len(piece)

    async def aclose(self) -> None:
        """Wait for the last piece.

        Raises:
            StorageError: the disk is full, or the like.
        """
        if self._writing is not None:
            writing, self._writing = self._writing, None
            with disk_errors(self._where):
                await writing

    def _write(self, piece: bytes, offset: int) -> None:
        view = memoryview(piece)
        while view:
            written = os.pwrite(self._fd, view, offset)
            view, offset = view[written:], offset + written
        if self._listener is not None:
            self._listener(piece)


@contextlib.contextmanager
def disk_errors(where: str) -> Iterator[None]:
    """The disk's failures as this package's; those of the service pass as they are."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(where, error.strerror or str(error)) from error
