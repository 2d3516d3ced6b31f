"""A process in a container as a stream: the engine's frames taken apart as they come.

A frame is a byte that says which output it is from, three zeros, the length in four bytes, and the data.
https://docs.docker.com/reference/api/engine/version/v1.41/#tag/Container/operation/ContainerAttach
"""

from __future__ import annotations

import asyncio

from .link import LinkLostError, Source, Stream
from .wire import Wire

#: The largest piece handed to a reader, and the largest that is written in one go; bytes.
PIECE = 1024 * 1024
#: Seconds after ``close`` for which a process that nobody reads from may still send what it has.
GRACE = 5.0

_SOURCES: dict[int, Source] = {0: "stdout", 1: "stdout", 2: "stderr", 3: "stderr"}


class EngineStream(Stream):
    """Input and output of one process, over one connection to the engine.

    What is written goes out whole and in order: a writer that is cancelled after its first piece (1 MiB)
    leaves a gap, one that is cancelled before does not.

    Args:
        wire: the connection, past the request.
        exec_id: the engine's name of the process.
    """

    def __init__(self, wire: Wire, exec_id: str) -> None:
        self.exec_id = exec_id
        self._wire = wire
        self._left = 0
        self._source: Source = "stdout"
        self._writing = asyncio.Lock()
        self._closed = False
        self._ended = False
        self._readers = 0
        self._grace: asyncio.TimerHandle | None = None

    async def read(self) -> tuple[Source, bytes] | None:
        """The next piece of output; None at the end, also when the engine is gone."""
        self._readers += 1
        if self._grace is not None:
            self._grace.cancel()
        try:
            data = b"" if self._ended else await self._next()
        finally:
            self._readers -= 1
            if self._closed:
                self._let_go_later()
        if not data:
            self.end()
            return None
        return self._source, data

    async def _next(self) -> bytes:
        reader = self._wire.reader
        try:
            while not self._left:
                head = await reader.readexactly(8)
                if head[0] not in _SOURCES or head[1:4] != b"\0\0\0":
                    return b""  # not the engine's framing any more: nothing after this can be trusted
                self._source, self._left = _SOURCES[head[0]], int.from_bytes(head[4:], "big")
            data = await reader.read(min(self._left, PIECE))
        except (asyncio.IncompleteReadError, OSError):
            return b""
        self._left -= len(data)
        return data

    async def write(self, data: bytes) -> None:
        """Hand input to the process; waits while it does not read.

        Raises:
            LinkLostError: the process or the engine is gone.
        """
        view = memoryview(data)
        async with self._writing:
            for start in range(0, len(view), PIECE):
                writer = self._wire.writer
                if self._closed or self._ended or writer.is_closing():
                    raise LinkLostError("The process in the container has ended")
                try:
                    writer.write(view[start : start + PIECE])
                    await writer.drain()
                except (OSError, RuntimeError) as error:
                    raise LinkLostError(f"The connection to the container is lost: {error}") from error

    def close(self) -> None:
        """Give the process the end of its input. Whoever reads may read on to the end; else it is let go."""
        if self._closed:
            return
        self._closed = True
        if self._ended or not self._wire.half_close():
            self.end()
        else:
            self._let_go_later()

    def _let_go_later(self) -> None:
        if self._grace is not None:
            self._grace.cancel()
        if not self._readers and not self._ended:
            self._grace = asyncio.get_running_loop().call_later(GRACE, self.end)

    def end(self) -> None:
        """Let go of it at once; who reads gets the end. May be called twice. Never raises."""
        self._ended = True
        if self._grace is not None:
            self._grace.cancel()
        self._wire.close()
