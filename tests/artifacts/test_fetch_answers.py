"""Answers that are too large, too slow, broken, or lead elsewhere."""

from __future__ import annotations

import asyncio
import gzip
import os
import socket
import threading
import traceback
import tracemalloc
import zlib
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from conjure_jupyter.artifacts.fetch import Fetcher, FetchPolicy
from conjure_jupyter.artifacts.fetch.resolving import system_resolve
from conjure_jupyter.artifacts.fetch.unpacking import PIECE, Unpacker
from conjure_jupyter.errors import ArtifactTooLargeError, FetchBlockedError, FetchError

from .loopback import FORBIDDEN, PUBLIC, loopback
from .sites import Request, redirect, reply

LIMIT = 1000


def sending(*pieces: bytes, pause: float = 0.0) -> Callable[[asyncio.StreamWriter], Awaitable[None]]:
    """Pieces one after another, each on its way before the next."""

    async def send(writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)

    return send


def chunked(*pieces: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%s\r\n" % (len(each), each) for each in (*pieces, b""))


def packed(data: bytes, coding: str = "gzip") -> bytes:
    return reply(data, headers={"Content-Encoding": coding})


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(reply(b"x" * LIMIT), id="with its length"),
        pytest.param(reply(b"x" * LIMIT, length=None), id="without a length"),
        pytest.param(chunked(b"x" * 600, b"x" * 400), id="in chunks"),
        pytest.param(packed(gzip.compress(b"x" * LIMIT)), id="gzip"),
        pytest.param(packed(gzip.compress(b"x" * LIMIT), "x-gzip"), id="x-gzip"),
        pytest.param(packed(zlib.compress(b"x" * LIMIT), "deflate"), id="deflate"),
        pytest.param(packed(gzip.compress(b"x" * 400) + gzip.compress(b"x" * 600)), id="two streams"),
        pytest.param(packed(b"x" * LIMIT, "identity"), id="identity"),
        pytest.param(reply(b"x" * LIMIT + b"more", length=LIMIT), id="more than it said"),
    ],
)
async def test_what_is_as_large_as_allowed_arrives(answer: bytes, tmp_path: Path) -> None:
    async with loopback(tmp_path, lambda request: answer) as place:
        fetched = await place.fetcher(url_max_size=LIMIT).fetch(place.url("/a"))
        assert fetched.path.read_bytes() == b"x" * LIMIT
        assert fetched.size == LIMIT


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(reply(b"x" * (LIMIT + 1)), id="with its length"),
        pytest.param(reply(b"", length=10**12), id="by its word"),
        pytest.param(reply(b"x" * (LIMIT + 1), length=None), id="without a length"),
        pytest.param(chunked(*[b"x" * 100] * 11), id="in chunks"),
        pytest.param(packed(gzip.compress(b"x" * (LIMIT + 1))), id="gzip"),
        pytest.param(packed(gzip.compress(bytes(100_000_000), 9)[:LIMIT]), id="gzip bomb"),
        pytest.param(packed(gzip.compress(bytes(600)) * 2), id="two streams"),
        pytest.param(
            reply(gzip.compress(b"") * 60, headers={"Content-Encoding": "gzip"}, length=None),
            id="many empty streams",
        ),
    ],
)
async def test_what_is_larger_is_refused_and_leaves_nothing(answer: bytes, tmp_path: Path) -> None:
    async with loopback(tmp_path, lambda request: answer) as place:
        with pytest.raises(ArtifactTooLargeError, match="url_max_size") as caught:
            await place.fetcher(url_max_size=LIMIT).fetch(place.url("/a"))
        assert caught.value.limit == LIMIT
        assert files(place.folder) == []


async def test_an_endless_answer_is_cut_at_the_limit(tmp_path: Path) -> None:
    sent = 0

    async def endless(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while not writer.is_closing():
            writer.write(bytes(65536))
            await writer.drain()
            sent += 65536

    async with loopback(tmp_path, lambda request: endless) as place:
        with pytest.raises(ArtifactTooLargeError):
            await place.fetcher(url_max_size=2_000_000).fetch(place.url("/a"))
        assert sent < 50_000_000


def test_a_bomb_is_unpacked_a_piece_at_a_time() -> None:
    bomb = gzip.compress(bytes(200_000_000), 9)
    tracemalloc.start()
    try:
        pieces = Unpacker().pieces(bomb)
        assert max(len(next(pieces)) for _ in range(50)) == PIECE
        assert tracemalloc.get_traced_memory()[1] < 8 * PIECE
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("size", [1, 7, 1000, 300_000])
def test_unpacking_gives_all_however_it_is_cut(size: int) -> None:
    text = os.urandom(50_000) + bytes(3 * PIECE) + b"end"
    data = gzip.compress(text) + gzip.compress(b"second")
    unpacker = Unpacker()
    got = b"".join(
        piece for at in range(0, len(data), size) for piece in unpacker.pieces(data[at : at + size])
    )
    assert got == text + b"second"
    assert unpacker.complete


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        pytest.param(reply(b"half", length=LIMIT), "broke off", id="shorter than it said"),
        pytest.param(chunked(b"x" * 10)[:-7], "broke off", id="chunks without an end"),
        pytest.param(packed(gzip.compress(os.urandom(500))[:-20]), "broke off", id="gzip without an end"),
        pytest.param(packed(b"no gzip at all"), "damaged", id="no gzip"),
        pytest.param(packed(gzip.compress(b"a")[:-8] + bytes(8)), "damaged", id="a wrong checksum"),
        pytest.param(packed(gzip.compress(b"a") + b"more"), "damaged", id="more behind gzip"),
        pytest.param(packed(b"x", "br"), "not asked for", id="brotli"),
        pytest.param(packed(b"x", "zstd"), "not asked for", id="zstd"),
        pytest.param(
            packed(gzip.compress(gzip.compress(b"x")), "gzip, gzip"), "not asked for", id="gzip twice"
        ),
        pytest.param(b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "no HTTP", id="no HTTP"),
        pytest.param(b"", "no HTTP", id="nothing"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "no HTTP", id="a length that is none"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
            "no HTTP",
            id="two lengths",
        ),
        pytest.param(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 200_000 + b"\r\n\r\n", "no HTTP", id="huge headers"),
        pytest.param(reply(b"", 404), "404", id="not found"),
        pytest.param(reply(b"", 500), "500", id="an error"),
        pytest.param(reply(b"", 206), "206", id="a part"),
        pytest.param(reply(b"", 204), "204", id="no content"),
        pytest.param(reply(b"", 304, length=None), "304", id="unchanged, though nobody asked"),
        pytest.param(reply(b"", 401, {"WWW-Authenticate": "Basic"}), "401", id="asks for a password"),
        pytest.param(reply(b"", 300, {"Location": "/b"}), "300", id="a choice"),
        pytest.param(reply(b"", 302), "without saying where", id="redirects nowhere"),
        pytest.param(
            b"HTTP/1.1 302 F\r\nLocation: /a\r\nLocation: /b\r\n\r\n",
            "without saying where",
            id="to two places",
        ),
    ],
)
async def test_an_answer_that_cannot_be_used(answer: bytes, reason: str, tmp_path: Path) -> None:
    async with loopback(tmp_path, lambda request: answer) as place:
        with pytest.raises(FetchError, match=reason) as caught:
            await place.fetcher(url_max_size=LIMIT).fetch(place.url("/a"))
        assert not isinstance(caught.value, FetchBlockedError)
        assert caught.value.status == (
            int(reason) if reason.isdigit() else 302 if "saying" in reason else None
        )
        assert files(place.folder) == []


async def never(writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(60)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(never, id="no answer"),
        pytest.param(sending(*[b"H"] * 1000, pause=0.02), id="a letter at a time"),
        pytest.param(
            sending(b"HTTP/1.1 200 OK\r\n", *[b"X-A: b\r\n"] * 1000, pause=0.02), id="a header at a time"
        ),
        pytest.param(
            sending(reply(length=10_000), *[b"x"] * 1000, pause=0.02), id="a byte of content at a time"
        ),
        pytest.param(sending(*[b"HTTP/1.1 103 Early\r\n\r\n"] * 1000, pause=0.02), id="only notices"),
    ],
)
async def test_time_is_bounded_however_slowly_it_comes(
    answer: Callable[[asyncio.StreamWriter], Awaitable[None]], tmp_path: Path
) -> None:
    async with loopback(tmp_path, lambda request: answer) as place:
        async with asyncio.timeout(15):
            with pytest.raises(FetchError, match=r"longer than 0\.3 s \(url_timeout\)"):
                await place.fetcher(url_timeout=0.3).fetch(place.url("/a"))
        assert [name for name in files(place.folder) if not name.startswith("begun")] == []


async def test_the_time_of_all_redirects_counts_together(tmp_path: Path) -> None:
    def answer(request: Request) -> Callable[[asyncio.StreamWriter], Awaitable[None]]:
        async def slow(writer: asyncio.StreamWriter) -> None:
            await asyncio.sleep(0.2)
            writer.write(redirect(request.target + "x"))

        return slow

    async with loopback(tmp_path, answer) as place:
        with pytest.raises(FetchError, match="url_timeout"):
            await place.fetcher(url_timeout=0.5).fetch(place.url("/a"))


async def test_a_look_up_counts_as_well(tmp_path: Path) -> None:
    async def resolve(name: str, port: int) -> list[str]:
        await asyncio.sleep(60)
        return []

    fetcher = Fetcher(FetchPolicy(timeout=0.2), tmp_path, resolve=resolve)
    with pytest.raises(FetchError, match="url_timeout"):
        await fetcher.fetch("https://example.com/")
    await fetcher.close()


async def test_look_ups_that_hang_hold_up_nothing_else(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    released = threading.Event()

    def hang(*args: object, **options: object) -> list[object]:
        released.wait(30)
        raise socket.gaierror(socket.EAI_AGAIN, "later")

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    fetcher = Fetcher(FetchPolicy(timeout=0.2), tmp_path)
    urls = [f"https://n{number}.example.com/" for number in range(40)]
    try:
        found = await asyncio.gather(*map(fetcher.fetch, urls), return_exceptions=True)
        assert all("url_timeout" in str(each) for each in found)
        assert await asyncio.wait_for(asyncio.to_thread(lambda: "free"), 10) == "free"
    finally:
        released.set()
        await fetcher.close()


async def test_the_system_is_asked_once_and_its_failure_told(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def getaddrinfo(host: bytes, port: int, **options: object) -> list[tuple[object, ...]]:
        asked.append((host, port))
        if host == b"no.example.com":
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        places = ("1.1.1.1", "1.1.1.1", "2606:4700::1")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (place, port)) for place in places]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    assert await system_resolve("a.example.com", 443) == ["1.1.1.1", "2606:4700::1"]
    assert asked == [(b"a.example.com", 443)]
    fetcher = Fetcher(FetchPolicy())
    with pytest.raises(FetchError, match=r"no\.example\.com cannot be looked up"):
        await fetcher.fetch("https://no.example.com/")
    await fetcher.close()


async def test_a_name_without_an_address_is_no_place(tmp_path: Path) -> None:
    async with loopback(tmp_path) as place:
        place.dns.records["empty.example.com"] = [[]]
        with pytest.raises(FetchError, match="has no address"):
            await place.fetcher().fetch(place.url(name="empty.example.com"))


async def test_the_next_address_is_tried_when_one_takes_no_connection(tmp_path: Path) -> None:
    async with loopback(tmp_path) as place:
        policy_allows = "127.0.0.3"  # nobody listens there
        place.dns.records["two.example.com"] = [[policy_allows, PUBLIC]]
        fetcher = place.fetcher(allowed=(policy_allows, PUBLIC))
        fetched = await fetcher.fetch(place.url(name="two.example.com"))
        assert fetched.path.read_bytes() == b"public"
        assert place.dns.look_ups("two.example.com") == 1

        place.dns.records["none.example.com"] = [[policy_allows]]
        with pytest.raises(FetchError, match=r"none\.example\.com does not take connections") as caught:
            await fetcher.fetch(place.url(name="none.example.com"))
        assert policy_allows not in str(caught.value)


async def test_five_redirects_are_followed_and_not_a_sixth(tmp_path: Path) -> None:
    def answer(request: Request) -> bytes:
        left = int(request.target[1:])
        return redirect(f"/{left - 1}") if left else reply(b"there")

    async with loopback(tmp_path, answer) as place:
        fetcher = place.fetcher()
        fetched = await fetcher.fetch(place.url("/5"))
        assert fetched.final_url == place.url("/0")
        assert fetched.url == place.url("/5")
        assert place.dns.look_ups("public.example.com") == 6
        with pytest.raises(FetchError, match="more than 5 times"):
            await fetcher.fetch(place.url("/6"))
        assert len(place.public.requests) == 12


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_each_kind_of_redirect_is_followed_with_get(status: int, tmp_path: Path) -> None:
    def answer(request: Request) -> bytes:
        return reply(b"", status, {"Location": "b/c?d#e"}) if request.target == "/a" else reply(b"there")

    async with loopback(tmp_path, answer) as place:
        fetched = await place.fetcher().fetch(place.url("/a"))
        assert fetched.final_url == place.url("/b/c?d")
        assert [(each.method, each.target) for each in place.public.requests] == [
            ("GET", "/a"),
            ("GET", "/b/c?d"),
        ]


async def test_a_redirect_to_a_blocked_host_is_refused(tmp_path: Path) -> None:
    async with loopback(tmp_path) as place:
        place.dns.records["a.blocked.example.org"] = [[PUBLIC]]
        fetcher = place.fetcher(url_blocked_hosts=("blocked.example.org",))
        target = f"http://a.blocked.example.org:{place.port}/secret-path?sig=abc"
        with pytest.raises(FetchBlockedError, match="url_blocked_hosts") as caught:
            await fetcher.fetch(place.url(f"/to?url={target}"))
        assert caught.value.url == place.url(f"/to?url={target}")
        assert not place.dns.look_ups("a.blocked.example.org")


async def test_what_a_redirect_says_in_confidence_is_not_told(tmp_path: Path) -> None:
    def answer(request: Request) -> bytes:
        return redirect("/file?signature=abc123") if request.target == "/a" else reply(b"x" * 2000)

    async with loopback(tmp_path, answer) as place:
        with pytest.raises(ArtifactTooLargeError) as large:
            await place.fetcher(url_max_size=LIMIT).fetch(place.url("/a"))
        assert "abc123" not in str(large.value)
        place.public.answer = lambda request: answer(request) if request.target == "/a" else reply(b"", 403)
        with pytest.raises(
            FetchError, match=r"it redirects to public\.example\.com, but the server answered 403"
        ) as caught:
            await place.fetcher().fetch(place.url("/a"))
        assert "abc123" not in "".join(traceback.format_exception(caught.value))
        assert caught.value.url == place.url("/a")


async def test_a_reason_does_not_tell_what_a_private_name_stands_for(tmp_path: Path) -> None:
    async with loopback(tmp_path) as place:
        place.dns.records["inside.example.com"] = [["10.11.12.13"]]
        with pytest.raises(FetchBlockedError, match="private") as caught:
            await place.fetcher().fetch(place.url(name="inside.example.com"))
        assert "10.11.12.13" not in str(caught.value)
        assert FORBIDDEN not in str(caught.value)
