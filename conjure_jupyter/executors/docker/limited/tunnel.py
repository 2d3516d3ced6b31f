"""A tunnel to one host, for TLS that is for that host alone."""

from __future__ import annotations

import asyncio

from ....artifacts.fetch.hosts import Host
from .channels import Channel
from .connecting import Connection
from .hello import ALERT, HelloError, HelloWatch
from .relay import PIECE

_OPEN = b"HTTP/1.1 200 Connection established\r\n\r\n"


async def tunnel(channel: Channel, host: Host, first: bytes, connection: Connection) -> None:
    """Carry bytes both ways until both sides have ended; closes the connection.

    Args:
        channel: the program that asked.
        host: whom it may speak TLS with.
        first: what it sent behind its request.
        connection: to that host.

    Raises:
        HelloError: it does not speak TLS with that host; it was told by an alert.
        OSError: one side broke off.
    """
    reader, writer = connection
    tasks: list[asyncio.Task[None]] = []
    try:
        await channel.write(_OPEN)
        tasks.append(asyncio.create_task(_up(channel, HelloWatch(host), first, writer)))
        tasks.append(asyncio.create_task(_down(reader, channel)))
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
    except HelloError:
        await channel.write(ALERT)
        raise
    finally:
        writer.close()  # first: another cancellation may end the wait below
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _up(channel: Channel, watch: HelloWatch, first: bytes, writer: asyncio.StreamWriter) -> None:
    data = first or await channel.read()
    while data:
        if passed := watch.feed(data):
            writer.write(passed)
            await writer.drain()
        data = await channel.read()
    writer.write_eof()


async def _down(reader: asyncio.StreamReader, channel: Channel) -> None:
    while data := await reader.read(PIECE):
        await channel.write(data)
    channel.end()
