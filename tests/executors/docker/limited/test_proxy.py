"""What gets through the proxy and what does not; the relay is a process beside it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from typing import Any

import pytest

from conjure_jupyter.executors.docker.limited import guard, proxy
from tests.artifacts.sites import Request, redirect, reply

from .world import (
    BELOW,
    FORBIDDEN,
    HOSTS,
    NAME,
    OTHER,
    PUBLIC,
    World,
    ask,
    connect,
    get,
    proxied,
    secured,
    world,
)


@pytest.fixture
async def place() -> AsyncIterator[World]:
    async with world() as found:
        yield found


async def fetch(port: int, place: World, target: str, name: str | None) -> bytes:
    context = place.client()
    if name is None:
        context.check_hostname = False
    reader, writer = await secured(port, context, target, name)
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    try:
        return await reader.read()
    finally:
        writer.close()


async def test_every_program_is_told_of_the_proxy_and_not_for_the_container_itself(place: World) -> None:
    async with proxied(place) as (port, variables):
        proxy = f"http://127.0.0.1:{port}"
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            assert variables[name] == variables[name.lower()] == proxy
        assert variables["NO_PROXY"] == variables["no_proxy"] == "localhost,127.0.0.1,::1"
        assert len(variables) == 8


@pytest.mark.parametrize("name", [NAME, BELOW])
async def test_an_allowed_host_is_reached_by_http_and_by_tls(place: World, name: str) -> None:
    async with proxied(place) as (port, _):
        answer = await ask(port, get(f"http://{name}/a?b=c"))
        assert answer.startswith(b"HTTP/1.1 200")
        assert answer.endswith(b"public")
        assert (await fetch(port, place, f"{name}:443", name)).endswith(b"public")
    assert place.plain.requests[0].target == "/a?b=c"
    assert place.plain.requests[0].headers["host"] == name
    assert place.connected == [(PUBLIC, 80), (PUBLIC, 443)]
    assert place.looked_up == [name, name]
    assert place.told == []


@pytest.mark.parametrize("spelling", ["FILES.Example.TEST", f"{NAME}.", "FILES.example.test."])
async def test_a_host_is_the_same_in_every_spelling(place: World, spelling: str) -> None:
    async with proxied(place) as (port, _):
        assert b"200" in (await ask(port, get(f"http://{spelling}/"))).splitlines()[0]
        assert (await fetch(port, place, f"{spelling}:443", NAME)).endswith(b"public")
        assert place.plain.requests[0].headers["host"] == NAME


@pytest.mark.parametrize("name", [FORBIDDEN, "cdn.test", "xcdn.test", "files.example.test.evil.test", "test"])
async def test_a_host_that_is_not_listed_is_refused_and_never_looked_up(place: World, name: str) -> None:
    async with proxied(place) as (port, _):
        for request in (get(f"http://{name}/"), connect(f"{name}:443")):
            answer = await ask(port, request)
            line = f"host {name} is not on network_hosts; the user can add it"
            assert answer.splitlines()[0].decode() == f"HTTP/1.1 403 {line}"
            assert answer.endswith(f"{line}\n".encode())
    assert place.looked_up == []
    assert place.connected == []
    assert place.told == [line]


async def test_a_port_that_is_not_allowed_is_refused(place: World) -> None:
    async with proxied(place) as (port, _):
        for request in (connect(f"{NAME}:22"), get(f"http://{NAME}:8080/")):
            assert b"403 port" in await ask(port, request)
        assert place.connected == []


@pytest.mark.parametrize(
    "answers",
    [["10.0.0.1"], [PUBLIC, "127.0.0.1"], ["::1"], ["::ffff:127.0.0.1"], ["169.254.169.254", PUBLIC]],
)
async def test_a_listed_name_that_stands_for_what_is_not_public_is_refused(
    place: World, answers: list[str]
) -> None:
    place.names[NAME] = [answers]
    async with proxied(place) as (port, _):
        for request in (get(f"http://{NAME}/"), connect(f"{NAME}:443")):
            answer = await ask(port, request)
            assert answer.startswith(b"HTTP/1.1 403 ")
            assert b"not public" in answer
    assert place.connected == []


async def test_each_connection_goes_where_its_own_look_up_said(place: World) -> None:
    place.names[NAME] = [[PUBLIC], ["127.0.0.1"], [OTHER], ["10.0.0.1"]]
    async with proxied(place) as (port, _):
        statuses = [(await ask(port, get(f"http://{NAME}/")))[9:12] for _ in range(4)]
    assert statuses == [b"200", b"403", b"200", b"403"]
    assert place.connected == [(PUBLIC, 80), (OTHER, 80)]
    assert place.looked_up == [NAME] * 4


async def test_an_address_is_reached_only_where_it_is_listed_itself(place: World) -> None:
    async with proxied(place, [PUBLIC, "2a00:1450:4001::5"]) as (port, _):
        assert b" 200 " in await ask(port, get(f"http://{PUBLIC}/"))
        assert b" 200 " in await ask(port, get("http://[2a00:1450:4001::5]/"))
        assert b" 403 " in await ask(port, get(f"http://{OTHER}/"))
        context = place.client()
        context.check_hostname = False
        _, writer = await secured(port, context, f"{PUBLIC}:443", None)
        writer.close()
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await secured(port, place.client(), f"{PUBLIC}:443", NAME)
    assert {address for address, _ in place.connected} == {PUBLIC, "2a00:1450:4001::5"}


@pytest.mark.parametrize("asked", [FORBIDDEN, BELOW, None])
async def test_a_tunnel_carries_tls_for_its_own_host_only(place: World, asked: str | None) -> None:
    async with proxied(place) as (port, _):
        with pytest.raises((ssl.SSLError, ConnectionError)) as caught:
            await fetch(port, place, f"{NAME}:443", asked)
        if isinstance(caught.value, ssl.SSLError):
            assert "unrecognized" in str(caught.value).lower()
    assert place.secure.requests == []
    (told,) = place.told
    assert told.startswith(f"a tunnel to {NAME} was closed: its TLS hello ")


@pytest.mark.parametrize("sent", [b"GET / HTTP/1.1\r\nHost: evil.example.test\r\n\r\n", b"SSH-2.0-x\r\n"])
@pytest.mark.parametrize("number", [80, 443])
async def test_a_tunnel_carries_nothing_but_tls(place: World, sent: bytes, number: int) -> None:
    async with proxied(place) as (port, _):
        await ask(port, connect(f"{NAME}:{number}") + sent)
    assert place.plain.requests == place.secure.requests == []
    assert "not TLS" in place.told[0]


@pytest.mark.parametrize(
    "head",
    [
        get(f"http://{NAME}/", FORBIDDEN),
        get(f"http://{NAME}/", f"{NAME}:8080"),
        get(f"http://{NAME}/", f"{NAME}@{FORBIDDEN}"),
        get(f"http://{NAME}/", NAME, f"Host: {FORBIDDEN}"),
        get(f"http://{NAME}/", NAME, f"Host : {FORBIDDEN}"),
        get(f"http://{NAME}/", ""),
    ],
)
async def test_the_host_header_is_that_of_the_url(place: World, head: bytes) -> None:
    async with proxied(place) as (port, _):
        assert (await ask(port, head))[9:12] in (b"400", b"403")
    assert place.plain.connections == []


async def test_a_second_request_on_a_connection_is_never_read(place: World) -> None:
    async with proxied(place) as (port, _):
        answer = await ask(
            port, get(f"http://{NAME}/1") + get(f"http://{FORBIDDEN}/2") + get(f"http://{NAME}/3")
        )
    assert answer.count(b"HTTP/1.1") == 1
    assert b"connection: close" in answer.lower()
    assert [request.target for request in place.plain.requests] == ["/1"]
    assert place.plain.requests[0].headers["connection"] == "close"


CHUNKED = "Transfer-Encoding: chunked"


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        (["Content-Length: 5", CHUNKED], b"0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"),
        (["Content-Length: 5", "Content-Length: 6"], b"hello!"),
        (["Content-Length: 5, 6"], b"hello!"),
        (["Content-Length: +5"], b"hello"),
        (["Transfer-Encoding: xchunked"], b"5\r\nhello\r\n0\r\n\r\n"),
        (["Transfer-Encoding: chunked, identity"], b"5\r\nhello\r\n0\r\n\r\n"),
        (["Transfer-Encoding : chunked"], b"5\r\nhello\r\n0\r\n\r\n"),
        ([" Transfer-Encoding: chunked"], b"5\r\nhello\r\n0\r\n\r\n"),
        ([CHUNKED], b"5;x=\r\nhello\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n"),
        ([CHUNKED], b"0x5\r\nhello\r\n0\r\n\r\n"),
        ([CHUNKED], b"5\r\nhelloXX0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n"),
        (["Connection: content-length, host", "Content-Length: 5"], b"hello"),
        (["X: a\x00b"], b""),
        (["X: a\rTransfer-Encoding: chunked"], b"0\r\n\r\n"),
    ],
)
async def test_nothing_is_smuggled_between_two_readings_of_a_request(
    place: World, headers: list[str], body: bytes
) -> None:
    """What the server gets is one request, framed in one way, or nothing."""
    received = bytearray()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            received.extend(data)
            if data.endswith((b"\r\n\r\n", b"hello")):
                break
        writer.write(reply(b"ok"))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    place.ports[80] = server.sockets[0].getsockname()[1]
    async with server, proxied(place) as (port, _):
        head = "\r\n".join([f"POST http://{NAME}/ HTTP/1.1", f"Host: {NAME}", *headers, "", ""])
        answer = await ask(port, head.encode("latin-1") + body)
    if not received:
        assert answer == b"" or answer[9:12] in (b"400", b"501")
        return
    sent = received.lower()
    assert sent.count(b"http/1.1") == 1
    assert b"smuggled" not in sent
    assert sent.count(b"content-length") + sent.count(b"transfer-encoding") <= 1
    assert sent.count(b"\r\nhost: files.example.test\r\n") == 1


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: files.example.test\r\n\r\n", 400),
        (b"OPTIONS * HTTP/1.1\r\nHost: files.example.test\r\n\r\n", 400),
        (get(f"https://{NAME}/"), 400),
        (get(f"ftp://{NAME}/"), 400),
        (get(f"http://{NAME}:080/", NAME), 400),
        (get(f"http://{FORBIDDEN}@{NAME}/", NAME), 400),
        (get(f"http://{NAME}\\@{FORBIDDEN}/", NAME), 400),
        (connect(NAME), 400),
        (connect(f"http://{NAME}:443"), 400),
        (connect(f"{NAME}:443:443"), 400),
        (connect(f"{NAME}:443").replace(b"\r\n\r\n", b"\r\nContent-Length: 3\r\n\r\nabc"), 400),
        (b"\x16\x03\x01\x00\x05hello", 400),
        (b"nonsense\r\n\r\n", 400),
        (b"GET http://files.example.test/ HTTP/1.1\r\n\r\n", 400),
        (get(f"http://{NAME}/" + "a" * 9_000, NAME), 400),
        (get(f"http://{NAME}/" + "a" * 100_000, NAME), 431),
        (get(f"http://{NAME}/", NAME, *(f"X-{n}: {'y' * 100}" for n in range(2000))), 431),
    ],
    ids=range(17),
)
async def test_what_is_no_request_for_a_proxy_is_refused(place: World, request_: bytes, status: int) -> None:
    async with proxied(place) as (port, _):
        answer = await ask(port, request_)
        assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    assert place.connected == []


async def test_a_redirect_is_a_request_of_the_program_with_its_own_check(place: World) -> None:
    place.plain.answer = lambda request: redirect("http://169.254.169.254/latest/")
    async with proxied(place) as (port, _):
        assert b"Location: http://169.254.169.254" in await ask(port, get(f"http://{NAME}/"))
        assert b" 403 " in await ask(port, get("http://169.254.169.254/latest/"))
    assert place.connected == [(PUBLIC, 80)]


async def test_headers_of_the_way_and_credentials_for_it_are_not_passed_on(
    place: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://user:secret@127.0.0.1:1")
    monkeypatch.setenv("HTTP_PROXY", "http://user:secret@127.0.0.1:1")
    more = ("Proxy-Authorization: Basic x", "Proxy-Connection: keep-alive", "Connection: X-Mine", "X-Mine: 1")
    others = ("Upgrade: h2c", "TE: trailers", "X-Other: 2", "Authorization: Bearer own")
    async with proxied(place) as (port, _):
        assert b" 200 " in await ask(port, get(f"http://{NAME}/", None, *more, *others))
    names = {"host", "connection", "x-other", "authorization"}
    assert place.plain.requests[0].headers.keys() == names


async def test_content_goes_both_ways_whatever_its_framing(place: World) -> None:
    def answer(request: Request) -> bytes:
        if request.target == "/chunked":
            return reply(
                b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", headers={"Transfer-Encoding": "chunked"}, length=None
            )
        return reply(b"abcde", length=None if request.target == "/closed" else 5)

    place.plain.answer = answer
    async with proxied(place) as (port, _):
        for path in ("/chunked", "/closed", "/length"):
            old = get(f"http://{NAME}{path}").replace(b"HTTP/1.1", b"HTTP/1.0")
            assert (await ask(port, old)).endswith(b"\r\n\r\nabcde")
        assert b"5\r\nabcde\r\n0\r\n\r\n" in await ask(port, get(f"http://{NAME}/closed"))
        waiting = get(f"http://{NAME}/", None, "Expect: 100-continue", "Content-Length: 1")
        assert (await ask(port, waiting + b"x")).startswith(b"HTTP/1.1 100 ")


@pytest.mark.parametrize(
    "sent",
    [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000, b"HTTP/1.1 101 Now\r\n\r\n"],
    ids=["nothing", "nonsense", "a flood", "another protocol"],
)
async def test_a_server_that_gives_no_answer_is_a_bad_gateway(place: World, sent: bytes) -> None:
    place.plain.answer = lambda request: sent
    async with proxied(place) as (port, _):
        assert (await ask(port, get(f"http://{NAME}/"))).startswith(b"HTTP/1.1 502 ")


async def test_a_name_that_nobody_knows_and_a_server_that_is_not_there(place: World) -> None:
    del place.names[NAME]
    async with proxied(place) as (port, _):
        assert (await ask(port, get(f"http://{NAME}/"))).startswith(b"HTTP/1.1 502 the host name")
        place.names[NAME] = [[]]
        assert (await ask(port, get(f"http://{NAME}/"))).startswith(b"HTTP/1.1 502 ")
        place.names[NAME] = [[PUBLIC]]
        place.ports[80] = 1
        assert (await ask(port, get(f"http://{NAME}/"))).startswith(b"HTTP/1.1 502 ")
    assert place.told == []


async def test_another_checked_address_is_tried_when_one_takes_no_connection(place: World) -> None:
    place.names[NAME] = [[OTHER, PUBLIC]]
    place.down.add(OTHER)
    async with proxied(place) as (port, _):
        assert b" 200 " in await ask(port, get(f"http://{NAME}/"))
    assert place.connected == [(OTHER, 80), (PUBLIC, 80)]
    assert place.looked_up == [NAME]


@pytest.mark.parametrize("hangs", ["look-up", "connection"])
async def test_what_hangs_is_given_up(place: World, hangs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(name: str, port: int) -> Any:
        await asyncio.Event().wait()

    monkeypatch.setattr(guard, "TIMEOUT", 0.1)
    monkeypatch.setattr(place, "resolve" if hangs == "look-up" else "connect", never)
    async with proxied(place) as (port, _):
        assert (await ask(port, get(f"http://{NAME}/"))).startswith(b"HTTP/1.1 504 ")


async def test_a_head_that_does_not_come_is_not_waited_for(
    place: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxy, "HEAD_TIMEOUT", 0.1)
    async with proxied(place) as (port, _):
        assert (await ask(port, b"GET http://")).startswith(b"HTTP/1.1 408 ")


async def test_what_does_not_move_is_ended(place: World) -> None:
    async def never(writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    place.plain.answer = lambda request: never
    async with proxied(place, idle=0.2) as (port, _):
        assert await ask(port, b"GET http:") == b""
        assert await ask(port, get(f"http://{NAME}/")) == b""
        assert await ask(port, connect(f"{NAME}:443")) == b"HTTP/1.1 200 Connection established\r\n\r\n"


async def test_a_user_hears_each_refusal_once_and_not_without_end(place: World) -> None:
    async with proxied(place) as (port, _):
        for number in range(60):
            for _ in range(2):
                await ask(port, connect(f"n{number}.example.test:443"))
    assert len(place.told) == len(set(place.told)) == 50


async def test_a_callback_that_raises_does_no_harm(place: World) -> None:
    def fails(_: str) -> None:
        raise RuntimeError

    async with proxied(place, HOSTS, on_refused=fails) as (port, _):
        assert b" 403 " in await ask(port, connect("x.test:443"))
        assert b" 200 " in await ask(port, get(f"http://{NAME}/"))
