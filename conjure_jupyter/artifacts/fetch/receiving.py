"""Content on its way to a file: counted, unpacked and digested as it comes."""

from __future__ import annotations

import asyncio
import hashlib
import os
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import ArtifactTooLargeError, FetchError
from .unpacking import Unpacker
from .urls import URL

if TYPE_CHECKING:
    import httpx2

#: Bytes that are gathered before a thread unpacks and writes them.
BATCH = 256 * 1024

_PLAIN = frozenset({"", "identity"})
_PACKED = frozenset({"gzip", "x-gzip", "deflate"})


class Sink:
    """Writes content to a file, never more than the limit, and knows its size and digest.

    The file is opened for each batch and never made here: a thread that still writes when a fetch is given up
    can neither write to a descriptor that is another file's by then, nor bring a removed file back.

    Args:
        url: for errors.
        path: an existing empty file.
        limit: bytes, for the content and for what is sent for it.
        packed: whether what comes is compressed.
    """

    def __init__(self, url: URL, path: Path, limit: int, *, packed: bool) -> None:
        self.size = 0
        self._url = url
        self._path = path
        self._limit = limit
        self._digest = hashlib.sha256()
        self._unpacker = Unpacker() if packed else None
        self._received = 0

    @property
    def sha256(self) -> str:
        """The digest of what was written, in hexadecimal."""
        return self._digest.hexdigest()

    def feed(self, data: bytes) -> None:
        """Take the next bytes as they came.

        Raises:
            ArtifactTooLargeError: the content, or what was sent for it, is larger than the limit.
            FetchError: what came cannot be unpacked.
            OSError: it cannot be written.
        """
        self._received += len(data)
        self._check(self._received)
        fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            for piece in [data] if self._unpacker is None else self._unpacker.pieces(data):
                self._write(fd, piece)
        except zlib.error as error:
            raise FetchError(str(self._url), "the compressed content is damaged") from error
        finally:
            os.close(fd)

    def finish(self) -> None:
        """Say that nothing more comes.

        Raises:
            FetchError: compressed content broke off.
        """
        if self._unpacker is not None and not self._unpacker.complete:
            raise FetchError(str(self._url), "the compressed content broke off")

    def _write(self, fd: int, data: bytes) -> None:
        self.size += len(data)
        self._check(self.size)
        self._digest.update(data)
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]

    def _check(self, size: int) -> None:
        if size > self._limit:
            raise ArtifactTooLargeError(str(self._url), None, self._limit, "url_max_size")


async def receive(response: httpx2.Response, url: URL, path: Path, limit: int) -> Sink:
    """Read the body of an answer into a file.

    Raises:
        ArtifactTooLargeError: it says that it is larger than the limit, or is.
        FetchError: it is compressed in a way that was not asked for, or damaged.
        OSError: it cannot be written.
    """
    declared = response.headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and int(declared) > limit:
        raise ArtifactTooLargeError(str(url), int(declared), limit, "url_max_size")
    coding = response.headers.get("content-encoding", "").strip().lower()
    if coding not in _PLAIN | _PACKED:
        raise FetchError(str(url), "the content is compressed in a way that was not asked for")
    sink = Sink(url, path, limit, packed=coding in _PACKED)
    waiting = bytearray()
    async for chunk in response.aiter_raw():
        waiting += chunk
        if len(waiting) >= BATCH:
            await asyncio.to_thread(sink.feed, bytes(waiting))
            waiting.clear()
    await asyncio.to_thread(sink.feed, bytes(waiting))
    sink.finish()
    return sink
