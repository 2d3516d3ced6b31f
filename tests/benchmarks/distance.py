"""A relay that puts distance between a client and a server: each direction takes so many seconds longer.

Run in a process of its own: ``python -m tests.benchmarks.distance PORT SECONDS`` prints the port it has.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import Iterator


async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float) -> None:
    """Pass on what comes, each piece so much later; none overtakes another or waits for it."""
    loop = asyncio.get_running_loop()
    while piece := await reader.read(1 << 18):
        loop.call_later(seconds, writer.write, piece)
    loop.call_later(seconds, writer.close)


async def serve(port: int, seconds: float) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
            await asyncio.gather(relay(reader, far_writer, seconds), relay(far_reader, writer, seconds))

    server = await asyncio.start_server(connected, "127.0.0.1", 0, backlog=200)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextlib.contextmanager
def distant(port: int, seconds: float) -> Iterator[int]:
    """The port of a relay to ``port``."""
    command = [sys.executable, "-m", "tests.benchmarks.distance", str(port), str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline())
        finally:
            process.kill()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), float(sys.argv[2])))
