"""Connections by a company's proxy: asked for addresses that were checked, and only when it is named."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from conjure_jupyter.errors import SettingsError
from conjure_jupyter.executors.docker.limited import LimitedNetwork, through

from .world import NAME, PUBLIC, Beside, World, ask, get, secured, world


@asynccontextmanager
async def company(
    place: World, answer: bytes = b"HTTP/1.1 200 OK\r\nVia: us\r\n\r\n"
) -> AsyncIterator[list[bytes]]:
    """A proxy that leads all to the world's servers; what it was asked."""
    asked: list[bytes] = []

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
        finally:
            writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer):
            head = await reader.readuntil(b"\r\n\r\n")
            asked.append(head)
            writer.write(answer)
            if b" 200 " not in answer:
                return
            port = int(head.split(b" ")[1].rpartition(b":")[2])
            there, back = await asyncio.open_connection("127.0.0.1", place.ports[port])
            await asyncio.gather(carry(reader, back), carry(there, writer), return_exceptions=True)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        place.ports[0] = server.sockets[0].getsockname()[1]
        yield asked


@asynccontextmanager
async def behind(place: World) -> AsyncIterator[int]:
    beside = Beside()
    by = through(f"http://127.0.0.1:{place.ports[0]}")
    network = LimitedNetwork([NAME], resolve=place.resolve, connect=by, on_refused=place.told.append)
    try:
        yield int((await network.start(beside))["HTTP_PROXY"].rpartition(":")[2])
    finally:
        await network.close()
        await beside.ended()


async def test_it_is_asked_for_the_address_that_was_checked_and_for_nothing_else() -> None:
    async with world() as place, company(place) as asked, behind(place) as port:
        assert (await ask(port, get(f"http://{NAME}/"))).endswith(b"public")
        reader, writer = await secured(port, place.client(), f"{NAME}:443", NAME)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await reader.read()).endswith(b"public")
        writer.close()
        place.names[NAME] = [["10.0.0.1"]]
        assert b" 403 " in await ask(port, get(f"http://{NAME}/"))
    expected = [
        f"CONNECT {PUBLIC}:{each} HTTP/1.1\r\nHost: {PUBLIC}:{each}\r\n\r\n".encode() for each in (80, 443)
    ]
    assert asked == expected


async def test_an_address_of_ipv6_stands_in_brackets() -> None:
    async with world() as place, company(place) as asked, behind(place) as port:
        place.names[NAME] = [["2606:4700::1111"]]
        assert (await ask(port, get(f"http://{NAME}/"))).endswith(b"public")
        assert asked[0].startswith(b"CONNECT [2606:4700::1111]:80 ")


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 407 Who\r\n\r\n", b"nonsense\r\n\r\n", b"HTTP/1.1 400\r\n", b""]
)
async def test_where_it_refuses_the_host_is_not_reached(answer: bytes) -> None:
    async with world() as place, company(place, answer), behind(place) as port:
        assert (await ask(port, get(f"http://{NAME}/"))).startswith(b"HTTP/1.1 502 ")


@pytest.mark.parametrize("proxy", ["", "proxy:3128", "https://proxy:3128", "http://user:password@proxy:3128"])
def test_what_is_no_proxy_is_said_at_once(proxy: str) -> None:
    with pytest.raises(SettingsError):
        through(proxy)
