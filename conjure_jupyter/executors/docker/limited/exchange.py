"""One plain HTTP request and its answer, both read and written anew.

Nothing of one side's framing reaches the other, so that nothing can be smuggled in between: h11 reads the
request strictly, and what goes out is made from what it read. Both connections end with the answer; a second
request is a new connection, with all checks again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import h11

from ....artifacts.fetch.urls import URL
from .channels import Channel
from .connecting import Connection
from .guard import RefusedError
from .relay import PIECE
from .requests import MAX_HEAD, end_to_end, framing


async def exchange(
    channel: Channel, conn: h11.Connection, request: h11.Request, url: URL, connection: Connection
) -> None:
    """Send a request on and bring its answer back; closes the connection.

    Args:
        channel: the program that asked.
        conn: what read the request's head from it.
        request: that head.
        url: what it asks for, checked.
        connection: to the host of the URL.

    Raises:
        RefusedError: there is no answer.
        OSError: one side broke off.
        h11.RemoteProtocolError: what came of the content or the answer is no HTTP.
    """
    reader, writer = connection
    server = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD)
    sending: asyncio.Task[None] | None = None
    try:
        headers = [(b"Host", url.authority.encode()), *end_to_end(request), *framing(request)]
        head = h11.Request(
            method=request.method, target=url.target, headers=[*headers, (b"Connection", b"close")]
        )
        writer.write(server.send(head) or b"")
        sending = asyncio.create_task(_send(channel, conn, server, writer))
        answering = asyncio.create_task(_answer(channel, conn, server, reader))
        try:
            # The answer may be over before the request is; then the rest of that is of no use to anybody.
            await asyncio.wait([sending, answering], return_when=asyncio.FIRST_COMPLETED)
            if not answering.done():
                sending.result()
            await answering
        finally:
            answering.cancel()
            await asyncio.gather(answering, return_exceptions=True)
    finally:
        writer.close()  # first: another cancellation may end the wait below
        if sending is not None:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)


async def _send(
    channel: Channel, conn: h11.Connection, server: h11.Connection, writer: asyncio.StreamWriter
) -> None:
    """The content of the request."""
    if conn.they_are_waiting_for_100_continue:
        await channel.write(conn.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
    broken = False
    while True:
        event = await _next(conn, channel.read)
        if isinstance(event, h11.EndOfMessage):
            event = h11.EndOfMessage()  # without trailers
        elif not isinstance(event, h11.Data):
            raise ConnectionResetError
        # A server may answer and close before it has all; then the answer is what counts.
        if not broken:
            writer.write(server.send(event) or b"")
            try:
                await writer.drain()
            except OSError:
                broken = True
        if isinstance(event, h11.EndOfMessage):
            return


async def _answer(
    channel: Channel, conn: h11.Connection, server: h11.Connection, reader: asyncio.StreamReader
) -> None:
    """The answer of the server."""

    async def read() -> bytes:
        return await reader.read(PIECE)

    try:
        while not isinstance(event := await _next(server, read), h11.Response):
            if not isinstance(event, h11.InformationalResponse):
                raise RefusedError(502, "the server gave no answer")
    except (h11.RemoteProtocolError, OSError):
        raise RefusedError(502, "the server gave no answer that is HTTP") from None
    answer = h11.Response(
        status_code=event.status_code,
        reason=event.reason,
        headers=[*end_to_end(event), *framing(event), (b"Connection", b"close")],
    )
    await channel.write(conn.send(answer) or b"")
    while True:
        part = await _next(server, read)
        if isinstance(part, h11.Data):
            await channel.write(conn.send(part) or b"")
        elif isinstance(part, h11.EndOfMessage):
            await channel.write(conn.send(h11.EndOfMessage()) or b"")
            return
        else:
            raise ConnectionResetError


async def _next(conn: h11.Connection, read: Callable[[], Awaitable[bytes]]) -> object:
    while (event := conn.next_event()) is h11.NEED_DATA:
        conn.receive_data(await read())
    return event
