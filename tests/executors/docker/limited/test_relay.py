"""Flows through a real relay: large, slow, half-closed, many at once, and a relay that is killed."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from conjure_jupyter.errors import ContainerError
from conjure_jupyter.executors.docker.limited import relay
from conjure_jupyter.executors.docker.limited.relay import MOST, WINDOW
from tests.artifacts.sites import Request, reply

from .world import NAME, Beside, World, ask, connect, get, proxied, world

MB = 1024 * 1024


@pytest.fixture
async def place() -> AsyncIterator[World]:
    async with world() as found:
        yield found


async def until_served(port: int) -> None:
    """Ask until there is an answer."""
    answer = b""
    while not answer.startswith(b"HTTP/1.1 200 "):
        with contextlib.suppress(ConnectionError):
            answer = await ask(port, get(f"http://{NAME}/"))
        await asyncio.sleep(0.01)


async def test_a_slow_reader_holds_up_its_server_and_nobody_else(place: World) -> None:
    """What is kept on the way is a window and the sockets' buffers, not the 64 MB that nobody reads."""
    sent = 0

    async def flood(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        while sent < 64 * MB:
            writer.write(bytes(WINDOW))
            await writer.drain()
            sent += WINDOW

    place.plain.answer = lambda request: flood if request.target == "/flood" else reply(b"small")
    async with proxied(place) as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        writer.write(get(f"http://{NAME}/flood"))
        await reader.readexactly(1000)
        before = -1
        while sent != before:  # until it is held up
            before = sent
            await asyncio.gather(*(ask(port, get(f"http://{NAME}/")) for _ in range(20)))
            await asyncio.sleep(0.1)
        assert sent < 32 * MB
        assert (await ask(port, get(f"http://{NAME}/"))).endswith(b"small")
        rest = 0
        while data := await reader.read(MB):
            rest += len(data)
        assert rest > 64 * MB - 1000
        writer.close()


async def test_an_upload_arrives_whole(place: World) -> None:
    digest, received = hashlib.sha256(), 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal received
        await reader.readuntil(b"\r\n\r\n")
        while received < 50 * MB:
            data = await reader.read(MB)
            received += len(data)
            digest.update(data)
        writer.write(reply(b"thanks"))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    place.ports[80] = server.sockets[0].getsockname()[1]
    block = os.urandom(MB)
    async with server, proxied(place) as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"PUT http://{NAME}/ HTTP/1.1\r\nHost: {NAME}\r\nContent-Length: {50 * MB}\r\n\r\n"
        writer.write(head.encode())
        for _ in range(50):
            writer.write(block)
            await writer.drain()
        assert (await reader.read()).endswith(b"thanks")
        writer.close()
    assert digest.hexdigest() == hashlib.sha256(block * 50).hexdigest()


async def test_an_answer_that_comes_before_the_request_is_over_is_not_lost(place: World) -> None:
    place.plain.answer = lambda request: reply(b"too large", 413)
    async with proxied(place) as (port, _):
        head = f"PUT http://{NAME}/ HTTP/1.1\r\nHost: {NAME}\r\nContent-Length: {50 * MB}\r\n\r\n".encode()
        assert (await ask(port, head + bytes(200_000))).endswith(b"too large")
        head = head.replace(NAME.encode(), b"evil.example.test")
        assert b"network_hosts" in await ask(port, head + bytes(WINDOW))


async def test_a_half_closed_connection_still_gets_its_answer(place: World) -> None:
    async with proxied(place) as (port, _):
        assert (await ask(port, get(f"http://{NAME}/"), end=True)).endswith(b"public")
        assert await ask(port, b"", end=True) == b""
        assert await ask(port, b"GET http://files", end=True) != b"x"
        assert b" 200 " in await ask(port, connect(f"{NAME}:443"), end=True)


async def test_fifty_at_once_each_get_their_own(place: World) -> None:
    def answer(request: Request) -> bytes:
        return reply(request.target.encode() * 10_000)

    place.plain.answer = answer
    async with proxied(place) as (port, _):
        found = await asyncio.gather(*(ask(port, get(f"http://{NAME}/{n:03}")) for n in range(50)))
    for number, answered in enumerate(found):
        assert answered.partition(b"\r\n\r\n")[2] == f"/{number:03}".encode() * 10_000


async def test_one_connection_too_many_is_told_so(place: World) -> None:
    async with proxied(place) as (port, _), contextlib.AsyncExitStack() as stack:
        for _ in range(MOST):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            stack.callback(writer.close)
        answer = await ask(port, get(f"http://{NAME}/"))
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"try again" in answer
        writer.close()
        while not (answer := await ask(port, get(f"http://{NAME}/"))).startswith(b"HTTP/1.1 200 "):
            assert answer.startswith(b"HTTP/1.1 503 ")
    assert place.told == []


async def test_programs_that_come_and_go_leave_nothing_behind(place: World) -> None:
    async with proxied(place) as (port, _):
        for _ in range(2 * MOST):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(get(f"http://{NAME}/"))
            writer.transport.abort()
        await until_served(port)


async def test_a_relay_that_was_killed_comes_back_at_its_port(place: World) -> None:
    beside = Beside()
    network = place.network()
    variables = await network.start(beside)
    port = int(variables["HTTP_PROXY"].rpartition(":")[2])
    for _ in range(3):
        held, writer = await asyncio.open_connection("127.0.0.1", port)
        beside.streams[-1].process.send_signal(signal.SIGKILL)
        with contextlib.suppress(ConnectionError):
            assert await held.read() == b""
        writer.close()
        await until_served(port)
    assert place.told == []
    await network.close()
    await network.close()
    await beside.ended()
    with pytest.raises(ConnectionError):
        await ask(port, b"")


async def test_one_that_is_killed_again_and_again_stays_away_and_the_user_hears_it_once(place: World) -> None:
    beside = Beside()
    network = place.network()
    await network.start(beside)
    beside.argv = [sys.executable, "-c", "import time; print(end='')"]
    beside.streams[-1].process.kill()
    assert network._keeper is not None
    await network._keeper
    (told,) = place.told
    assert told.startswith("the container has no network any more: ")
    await network.close()
    await beside.ended()


async def test_where_the_relay_cannot_start_it_is_said(place: World) -> None:
    beside = Beside([sys.executable, "-c", "raise SystemExit('no such program')"])
    with pytest.raises(ContainerError, match="no such program"):
        await place.network().start(beside)
    await beside.ended()


async def test_bytes_are_counted(place: World) -> None:
    beside = Beside()
    network = place.network()
    port = int((await network.start(beside))["HTTP_PROXY"].rpartition(":")[2])
    request = get(f"http://{NAME}/")
    answer = await ask(port, request)
    await network.close()
    await beside.ended()
    assert (network.sent, network.received) == (len(request), len(answer))


def test_the_relay_needs_the_standard_library_alone_and_ends_with_its_input() -> None:
    source = Path(relay.__file__).read_text()
    ast.parse(source, feature_version=(3, 8))
    process = subprocess.run(
        [sys.executable, "-I", "-S", "-c", source, "0"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    assert process.returncode in (0, 1)  # /dev/null cannot be waited for
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", source, "0"], stdin=pipe, stdout=pipe
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        assert running.stdout.read(13)[:1] == b"\x01"
        running.stdin.close()
        assert running.wait() == 0


def test_its_port_is_on_the_loopback_alone() -> None:
    found = relay.Relay(0)
    try:
        assert found._listener.getsockname()[0] == "127.0.0.1"
    finally:
        found._listener.close()
        found._select.close()
