"""An engine's socket, made reachable in other ways for the tests."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator


@contextlib.asynccontextmanager
async def forwarded(
    socket: str, tls: ssl.SSLContext | None = None, *, answers: asyncio.Event | None = None
) -> AsyncIterator[int]:
    """A port of this machine behind which an engine's socket is.

    Args:
        socket: ``unix://`` and a path.
        tls: what the port speaks; in the clear when None.
        answers: while it is not set, nothing passes, as with an engine that hangs.
    """
    tasks: set[asyncio.Task[None]] = set()
    writers: list[asyncio.StreamWriter] = []

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                if answers is not None:
                    await answers.wait()
                writer.write(data)
                await writer.drain()
        with contextlib.suppress(OSError, RuntimeError):
            if writer.can_write_eof():
                writer.write_eof()
            else:
                writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_unix_connection(socket.removeprefix("unix://"))
        writers.extend([writer, there[1]])
        for work in (copy(reader, there[1]), copy(there[0], writer)):
            task = asyncio.ensure_future(work)
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer in writers:
            writer.transport.abort()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0.05)  # aborted transports are closed by the loop's next rounds
