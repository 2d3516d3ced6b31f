"""What is fetched once is kept, asked after, bounded, and never given when it is damaged."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from conjure_jupyter.artifacts.fetch import Fetched, Fetcher, FetchPolicy
from conjure_jupyter.artifacts.fetch.cache import ABANDONED, FetchCache
from conjure_jupyter.artifacts.fetch.entries import Entry, load_entry
from conjure_jupyter.errors import FetchBlockedError, FetchError, PermissionDeniedError, ToolError
from conjure_jupyter.settings import Settings

from .loopback import PUBLIC, Loopback, loopback
from .sites import Request, redirect, reply


class Versions:
    """A server whose content changes; it answers 304 to who has the newest."""

    def __init__(self, **headers: str) -> None:
        self.number = 1
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}

    def __call__(self, request: Request) -> bytes:
        etag = f'"{self.number}"'
        headers = {"ETag": etag, "Content-Type": "text/plain", **self.headers}
        if request.headers.get("if-none-match") == etag:
            return reply(b"", 304, headers, length=None)
        return reply(f"version {self.number} of {request.target}".encode(), headers=headers)


def asked(place: Loopback) -> list[tuple[str, str | None]]:
    return [(each.target, each.headers.get("if-none-match")) for each in place.public.requests]


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


async def test_for_fifteen_minutes_nobody_is_asked_again(tmp_path: Path) -> None:
    async with loopback(tmp_path, Versions()) as place:
        fetcher = place.fetcher()
        first = await fetcher.fetch(place.url("/a"))
        place.now += 899
        assert await fetcher.fetch(place.url("/a#part")) == first
        assert await place.fetcher().fetch(place.url("/a")) == first
        assert asked(place) == [("/a", None)]
        assert place.dns.look_ups("public.example.com") == 1
        assert first.sha256 == hashlib.sha256(b"version 1 of /a").hexdigest()
        assert (first.content_type, first.etag, first.name) == ("text/plain", '"1"', "a.txt")


async def test_then_the_server_is_asked_and_304_keeps_the_bytes(tmp_path: Path) -> None:
    versions = Versions()
    async with loopback(tmp_path, versions) as place:
        fetcher = place.fetcher()
        first = await fetcher.fetch(place.url("/a"))
        place.now += 900
        assert await fetcher.fetch(place.url("/a")) == first
        place.now += 899
        assert await fetcher.fetch(place.url("/a")) == first
        assert asked(place) == [("/a", None), ("/a", '"1"')]
        place.now += 1
        versions.number = 2
        second = await fetcher.fetch(place.url("/a"))
        assert second.path.read_bytes() == b"version 2 of /a"
        assert first.path.read_bytes() == b"version 1 of /a", "whoever still has it can read it"
        assert asked(place)[2:] == [("/a", '"1"')]


async def test_a_date_serves_where_there_is_no_etag(tmp_path: Path) -> None:
    date = "Tue, 01 Oct 2024 10:00:00 GMT"

    def answer(request: Request) -> bytes:
        if request.headers.get("if-modified-since") == date:
            return reply(b"", 304, length=None)
        return reply(b"dated", headers={"Last-Modified": date})

    async with loopback(tmp_path, answer) as place:
        fetcher = place.fetcher(url_cache_ttl=0)
        first = await fetcher.fetch(place.url("/a"))
        assert await fetcher.fetch(place.url("/a")) == first
        assert [each.headers.get("if-modified-since") for each in place.public.requests] == [None, date]


async def test_a_time_that_lies_ahead_is_not_young(tmp_path: Path) -> None:
    async with loopback(tmp_path, Versions()) as place:
        await place.fetcher().fetch(place.url("/a"))
        place.now -= 10_000
        await place.fetcher().fetch(place.url("/a"))
        assert len(asked(place)) == 2


async def test_a_server_that_fails_then_is_told_and_not_papered_over(tmp_path: Path) -> None:
    async with loopback(tmp_path, Versions()) as place:
        fetcher = place.fetcher()
        await fetcher.fetch(place.url("/a"))
        place.now += 1000
        place.public.answer = lambda request: reply(b"", 503)
        with pytest.raises(FetchError, match="503"):
            await fetcher.fetch(place.url("/a"))
        place.public.answer = Versions()
        assert (await fetcher.fetch(place.url("/a"))).path.read_bytes() == b"version 1 of /a"
        assert asked(place)[-1] == ("/a", '"1"')


@pytest.mark.parametrize(
    ("header", "requests"),
    [
        ("no-store", [None, None]),
        ("private, No-Store", [None, None]),
        ("no-cache", [None, '"1"']),
        ("max-age=0", [None]),
        ("max-age=5, must-revalidate", [None]),
    ],
)
async def test_what_a_server_forbids_is_heeded(
    header: str, requests: list[str | None], tmp_path: Path
) -> None:
    """How long is the user's setting, and not for a server to shorten; but what it forbids is forbidden."""
    async with loopback(tmp_path, Versions(Cache_Control=header)) as place:
        fetcher = place.fetcher()
        first = await fetcher.fetch(place.url("/a"))
        second = await fetcher.fetch(place.url("/a"))
        assert first.path.read_bytes() == second.path.read_bytes() == b"version 1 of /a"
        assert [etag for _, etag in asked(place)] == requests
        await fetcher.close()
        assert first.path.exists() is ("no-store" not in header.lower())


async def test_a_server_that_comes_to_forbid_keeping_is_heeded_too(tmp_path: Path) -> None:
    versions = Versions()
    async with loopback(tmp_path, versions) as place:
        fetcher = place.fetcher(url_cache_ttl=0)
        first = await fetcher.fetch(place.url("/a"))
        versions.headers["Cache-Control"] = "no-store"
        assert (await fetcher.fetch(place.url("/a"))).path.read_bytes() == b"version 1 of /a"
        await fetcher.fetch(place.url("/a"))
        assert [etag for _, etag in asked(place)] == [None, '"1"', None]
        await fetcher.close()
        assert not first.path.exists()


async def test_validators_go_only_to_where_the_bytes_came_from(tmp_path: Path) -> None:
    targets = ["/b"]

    def answer(request: Request) -> bytes:
        if request.target == "/a":
            return redirect(targets[0])
        return Versions()(request)

    async with loopback(tmp_path, answer) as place:
        fetcher = place.fetcher(url_cache_ttl=0)
        first = await fetcher.fetch(place.url("/a"))
        assert await fetcher.fetch(place.url("/a")) == first
        assert asked(place) == [("/a", None), ("/b", None), ("/a", None), ("/b", '"1"')]
        targets[0] = "/c"
        assert (await fetcher.fetch(place.url("/a"))).path.read_bytes() == b"version 1 of /c"
        assert asked(place)[4:] == [("/a", None), ("/c", None)]


def damage_bytes(folder: Path, fetched: Fetched) -> None:
    fetched.path.write_bytes(fetched.path.read_bytes()[:-1] + b"!")


def cut_bytes(folder: Path, fetched: Fetched) -> None:
    os.truncate(fetched.path, 3)


def lose_bytes(folder: Path, fetched: Fetched) -> None:
    fetched.path.unlink()


def swap_for_a_link(folder: Path, fetched: Fetched) -> None:
    elsewhere = folder.parent / "elsewhere"
    fetched.path.rename(elsewhere)
    fetched.path.symlink_to(elsewhere)


def cut_facts(folder: Path, fetched: Fetched) -> None:
    (facts,) = folder.glob("*.json")
    facts.write_bytes(facts.read_bytes()[:20])


def facts_of_another(folder: Path, fetched: Fetched) -> None:
    (facts,) = folder.glob("*.json")
    facts.write_text(facts.read_text().replace("/a", "/b"))


def empty_facts(folder: Path, fetched: Fetched) -> None:
    (facts,) = folder.glob("*.json")
    facts.write_bytes(b"")


DAMAGES = [damage_bytes, cut_bytes, lose_bytes, swap_for_a_link, cut_facts, facts_of_another, empty_facts]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
async def test_a_damaged_entry_is_fetched_again(
    damage: Callable[[Path, Fetched], None], tmp_path: Path
) -> None:
    async with loopback(tmp_path, Versions()) as place:
        fetcher = place.fetcher()
        first = await fetcher.fetch(place.url("/a"))
        damage(place.folder, first)
        again = await fetcher.fetch(place.url("/a"))
        assert again.path.read_bytes() == b"version 1 of /a"
        assert not again.path.is_symlink()
        assert asked(place) == [("/a", None), ("/a", None)]
        await fetcher.fetch(place.url("/a"))
        assert len(asked(place)) == 2


async def test_the_facts_of_another_url_are_not_taken_for_its_own(tmp_path: Path) -> None:
    async with loopback(tmp_path, Versions()) as place:
        fetcher = place.fetcher()
        paths = [(await fetcher.fetch(place.url(name))).path for name in ("/a", "/b")]
        facts = [path.with_name(path.name[:32] + ".json") for path in paths]
        facts[0].write_bytes(facts[1].read_bytes())
        assert (await fetcher.fetch(place.url("/a"))).path.read_bytes() == b"version 1 of /a"


@pytest.mark.parametrize(
    "facts",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"1",
        b'"x"',
        b"\xff",
        b'{"format": 1}',
        b'{"format": 2, "url": "x"}',
        b"[" * 100_000,
    ],
)
def test_facts_that_are_none(facts: bytes) -> None:
    assert load_entry(facts) is None


def test_facts_come_back_as_they_were() -> None:
    entry = Entry(
        url="https://example.com/", hops=("https://example.com/",), sha256="0" * 64, size=3,
        content_type="text/csv", name="\u00e4.csv", etag='W/"x"', fetched=12.5, ask=True,
    )  # fmt: skip
    assert load_entry(entry.dump()) == entry
    for name in ("url", "hops", "size", "fetched", "ask"):
        assert load_entry(entry.dump().replace(f'"{name}"'.encode(), b'"other"')) is None
    assert load_entry(entry.dump().replace(b'"size": 3', b'"size": "3"')) is None
    assert load_entry(entry.dump().replace(b'["https://example.com/"]', b"[]")) is None


async def test_files_are_for_their_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        async with loopback(tmp_path, Versions()) as place:
            await place.fetcher().fetch(place.url("/a"))
            assert stat.S_IMODE(place.folder.stat().st_mode) == 0o700
            modes = {stat.S_IMODE(path.stat().st_mode) for path in place.folder.iterdir()}
            assert modes == {0o600}
    finally:
        os.umask(old)


async def test_a_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    async with loopback(tmp_path, Versions()) as place:
        place.folder.symlink_to(tmp_path / "elsewhere")
        with pytest.raises(PermissionDeniedError):
            await place.fetcher().fetch(place.url("/a"))
        assert list((tmp_path / "elsewhere").iterdir()) == []


async def test_the_oldest_use_goes_when_there_is_no_room(tmp_path: Path) -> None:
    async with loopback(tmp_path, lambda request: reply(request.target[-1].encode() * 10_000)) as place:
        fetcher = place.fetcher(url_cache_size=35_000)
        for number, name in enumerate("abc"):
            path = (await fetcher.fetch(place.url(f"/{name}"))).path
            os.utime(path, (number, number))
            os.utime(path.with_name(path.name[:32] + ".json"), (number, number))
        await fetcher.fetch(place.url("/a"))  # used again: now b is the oldest
        await fetcher.fetch(place.url("/d"))
        assert size_of(place.folder) <= 35_000
        place.public.requests.clear()
        for name in "acdb":
            await fetcher.fetch(place.url(f"/{name}"))
        assert [each.target for each in place.public.requests] == ["/b"]


async def test_many_small_urls_are_bounded_too(tmp_path: Path) -> None:
    async with loopback(tmp_path, lambda request: reply(b"x")) as place:
        fetcher = place.fetcher(url_cache_size=5_000)
        for number in range(40):
            await fetcher.fetch(place.url(f"/{number}"))
        assert size_of(place.folder) <= 5_000


async def test_what_somebody_still_has_stays_even_without_room(tmp_path: Path) -> None:
    async with loopback(tmp_path, lambda request: reply(request.target.encode() * 100)) as place:
        fetcher = place.fetcher(url_cache_size=0)
        kept = await fetcher.fetch(place.url("/a"))
        dropped = (await fetcher.fetch(place.url("/b"))).path
        assert dropped.exists()
        last = await fetcher.fetch(place.url("/c"))
        assert kept.path.exists()
        assert last.path.exists()
        assert not dropped.exists()


async def test_calls_at_the_same_time_make_one_request(tmp_path: Path) -> None:
    go = asyncio.Event()

    async def slow(writer: asyncio.StreamWriter) -> None:
        await go.wait()
        writer.write(reply(b"once"))

    async with loopback(tmp_path, lambda request: slow) as place:
        fetcher = place.fetcher()
        calls = [asyncio.create_task(fetcher.fetch(place.url("/a#" + str(n)))) for n in range(20)]
        await place.public.until(requests=1)
        calls[0].cancel()  # who asked first may leave
        with contextlib.suppress(asyncio.CancelledError):
            await calls[0]
        go.set()
        found = await asyncio.gather(*calls[1:])
        assert len(set(found)) == 1
        assert len(place.public.requests) == 1


async def test_all_who_wait_hear_of_a_failure(tmp_path: Path) -> None:
    async with loopback(tmp_path, lambda request: reply(b"", 500)) as place:
        fetcher = place.fetcher()
        found = await asyncio.gather(*[fetcher.fetch(place.url("/a"))] * 1, *[
            fetcher.fetch(place.url("/a")) for _ in range(5)
        ], return_exceptions=True)  # fmt: skip
        assert [type(each) for each in found] == [FetchError] * 6
        assert len(place.public.requests) == 1


async def test_when_nobody_waits_any_more_the_fetch_ends(tmp_path: Path) -> None:
    ended = asyncio.Event()

    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(reply(length=1_000_000))
        with contextlib.suppress(OSError):
            while not writer.is_closing():
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(0.01)
        ended.set()

    async with loopback(tmp_path, lambda request: endless) as place:
        fetcher = place.fetcher()
        calls = [asyncio.create_task(fetcher.fetch(place.url("/a"))) for _ in range(3)]
        await place.public.until(requests=1)
        for call in calls:
            call.cancel()
        found = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(each) for each in found] == [asyncio.CancelledError] * 3
        await asyncio.wait_for(ended.wait(), 10)
        assert list(place.folder.glob("*")) == []


async def test_closing_ends_what_is_being_fetched(tmp_path: Path) -> None:
    async def never(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    async with loopback(tmp_path, lambda request: never) as place:
        fetcher = place.fetcher()
        call = asyncio.create_task(fetcher.fetch(place.url("/a")))
        await place.public.until(requests=1)
        await fetcher.close()
        with pytest.raises(asyncio.CancelledError):
            await call


async def test_without_a_folder_there_is_one_until_the_end(tmp_path: Path) -> None:
    async with loopback(tmp_path, Versions()) as place:
        template = place.fetcher()
        fetcher = Fetcher(template._policy, resolve=place.dns.resolve)
        path = (await fetcher.fetch(place.url("/a"))).path
        await fetcher.fetch(place.url("/a"))
        assert len(asked(place)) == 1
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        await fetcher.close()
        assert not path.parent.exists()
        await fetcher.close()


async def test_rules_that_have_become_stricter_hold_for_what_is_kept(tmp_path: Path) -> None:
    async with loopback(tmp_path, Versions()) as place:
        place.dns.records["b.example.org"] = [[PUBLIC]]
        place.public.answer = lambda request: (
            redirect(f"http://b.example.org:{place.port}/b") if request.target == "/a" else reply(b"there")
        )
        await place.fetcher().fetch(place.url("/a"))
        for changes in (
            {"url_fetch_enabled": False},
            {"url_schemes": ("https",)},
            {"url_ports": ("443",)},
            {"url_blocked_hosts": ("example.com",)},
            {"url_blocked_hosts": ("b.example.org",)},
        ):
            with pytest.raises(FetchBlockedError):
                await place.fetcher(**changes).fetch(place.url("/a"))


def test_what_was_begun_and_left_is_removed_in_time(tmp_path: Path) -> None:
    cache = FetchCache(tmp_path / "cache", 1000)
    old, young = cache.begin(), cache.begin()
    stranger = old.with_name("notes.txt")
    stranger.write_text("not ours")
    past = time.time() - ABANDONED - 1
    os.utime(old, (past, past))
    os.utime(stranger, (past, past))
    cache.trim()
    assert sorted(path.name for path in old.parent.iterdir()) == sorted([young.name, "notes.txt"])


CRASH = """
import os, sys
from pathlib import Path
from conjure_jupyter.artifacts.fetch.cache import FetchCache
from conjure_jupyter.artifacts.fetch.entries import Entry
import hashlib
cache = FetchCache(Path(sys.argv[1]), 10**9)
step, steps = int(sys.argv[2]), 0
def counted(event, arguments):
    global steps
    if event in ("open", "os.rename", "os.remove", "os.scandir") and sys.argv[1] in str(arguments):
        steps += 1
        if steps == step:
            os.kill(os.getpid(), 9)
sys.addaudithook(counted)
for text in (b"one", b"two"):
    begun = cache.begin()
    begun.write_bytes(text)
    digest = hashlib.sha256(text).hexdigest()
    url = "https://example.com/"
    entry = Entry(url=url, hops=(url,), sha256=digest, size=3, content_type="", name="x")
    cache.keep(entry, begun, reuse=True)
print("done")
"""


def test_a_crash_at_any_step_leaves_a_whole_entry_or_none(tmp_path: Path) -> None:
    found = set()
    for step in range(1, 60):
        folder = tmp_path / str(step)
        done = subprocess.run(
            [sys.executable, "-c", CRASH, str(folder), str(step)], capture_output=True, text=True, check=False
        )
        cache = FetchCache(folder, 10**9)
        entry = cache.find("https://example.com/")
        found.add(entry and cache.path(entry).read_text())
        if done.stdout:
            break
        assert done.returncode == -9, done.stderr
    assert found == {None, "one", "two"}
    assert step > 10


async def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async with loopback(tmp_path, Versions()) as place:
        monkeypatch.setattr(os, "write", full)
        with pytest.raises(ToolError, match="the disk is full"):
            await place.fetcher().fetch(place.url("/a"))
        monkeypatch.undo()
        assert list(place.folder.iterdir()) == []


def test_a_policy_takes_its_bounds_from_the_settings() -> None:
    policy = FetchPolicy.of(Settings(url_timeout=3, url_max_size=5, url_cache_ttl=7, url_cache_size=9))
    assert (policy.timeout, policy.max_size, policy.cache_ttl, policy.cache_size) == (3, 5, 7, 9)
    assert FetchPolicy.of(Settings()) == FetchPolicy()
