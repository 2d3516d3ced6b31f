"""Connections to addresses that were checked, straight or through a company's proxy."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import h11

from ....artifacts.fetch.policy import FetchPolicy
from ....artifacts.fetch.urls import parse_url
from ....errors import SettingsError
from .relay import PIECE

Connection: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]

#: Connects to an address, as text, and a port.
Connect = Callable[[str, int], Awaitable[Connection]]


async def straight(address: str, port: int) -> Connection:
    """Connect to an address.

    Raises:
        OSError: it takes no connection.
    """
    return await asyncio.open_connection(address, port, limit=PIECE)


def through(proxy: str) -> Connect:
    """A way to connect by a company's proxy, for a machine that reaches nothing otherwise.

    Proxies of the environment are ignored; this one is used because the caller says so. It is asked, by
    ``CONNECT``, for the address that was checked and never for a name, which it would look up again. So this
    machine's resolver must know the names, and the proxy must accept addresses. No credential is sent to it.

    Args:
        proxy: ``http://HOST:PORT``.

    Raises:
        SettingsError: it is no such URL.
    """
    try:
        url = parse_url(proxy, FetchPolicy(schemes=frozenset({"http"})))
    except ValueError as error:
        raise SettingsError("connect", f"the proxy cannot be used: {error}") from None

    async def connect(address: str, port: int) -> Connection:
        reader, writer = await straight(url.host.name, url.port)
        try:
            await _ask(reader, writer, address, port)
        except BaseException:
            writer.close()
            raise
        return reader, writer

    return connect


async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, address: str, port: int) -> None:
    host = f"[{address}]" if ipaddress.ip_address(address).version == 6 else address
    target = f"{host}:{port}"
    asking = h11.Connection(h11.CLIENT)
    sent = asking.send(h11.Request(method="CONNECT", target=target, headers=[("Host", target)]))
    writer.write(sent or b"")
    await writer.drain()
    try:
        while not isinstance(event := asking.next_event(), h11.Response):
            if event is h11.NEED_DATA:
                # A byte at a time, from a buffer: what follows the answer is the tunnel's already.
                asking.receive_data(await reader.read(1))
            elif not isinstance(event, h11.InformationalResponse):
                raise ConnectionRefusedError("the proxy gave no answer")
    except h11.RemoteProtocolError as error:
        raise ConnectionRefusedError("the proxy's answer is no HTTP") from error
    if not 200 <= event.status_code < 300:
        raise ConnectionRefusedError(f"the proxy refuses ({event.status_code})")
