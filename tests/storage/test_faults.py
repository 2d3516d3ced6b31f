"""A service that fails in every way a network knows: the queue drains in full, in order, and only once."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conjure_jupyter.errors import StorageError, StorageUnavailableError
from conjure_jupyter.storage import Backoff, S3Storage
from tests.s3 import Server

from .proxy import FAULTS, Fault, Kind, Proxy

QUICK = Backoff(first=0.01, most=0.05)


@pytest.fixture
def proxy(files_server: Server) -> Iterator[Proxy]:
    with Proxy(files_server.port) as running:
        yield running


@contextlib.asynccontextmanager
async def opened(
    server: Server, proxy: Proxy, prefix: str, cache: Path, **more: Any
) -> AsyncIterator[S3Storage]:
    options = {**server.options(prefix, port=proxy.port), "cache_path": cache, "backoff": QUICK, **more}
    storage = S3Storage(**options)
    await storage.init("s1")
    try:
        yield storage
    finally:
        await storage.close()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110  the other side is a thread
            await asyncio.sleep(0.01)


def held(server: Server, prefix: str) -> dict[str, bytes]:
    return server.files(f"{prefix}/s1")


@pytest.mark.parametrize("kind", FAULTS)
async def test_a_fault_is_passed_over(
    files_server: Server, proxy: Proxy, prefix: str, cache: Path, kind: Kind
) -> None:
    proxy.faults = [Fault(kind, times=5), Fault(kind, key="log", times=3)]
    async with opened(files_server, proxy, prefix, cache) as storage:
        expected = {f"blobs/{n}": os.urandom(3000) for n in range(10)}
        for key, content in expected.items():
            await storage.write(key, content)
        for number in range(5):
            await storage.write("log", f"version {number}".encode())
        await storage.sync_to_remote()
        assert storage.pending == 0
    assert held(files_server, prefix) == {**expected, "log": b"version 4"}
    assert all(not fault.times for fault in proxy.faults)


@pytest.mark.parametrize("kind", FAULTS)
async def test_a_fault_in_the_middle_of_a_large_file(
    files_server: Server, proxy: Proxy, prefix: str, cache: Path, kind: Kind
) -> None:
    content = os.urandom(20_000_000)
    proxy.faults = [Fault(kind, times=8)]
    async with opened(files_server, proxy, prefix, cache) as storage:
        await storage.write("one request", content)
        (storage.local_path() / "in parts").write_bytes(content)
        await storage.publish("in parts", immutable=True)
        await storage.sync_to_remote()
    assert held(files_server, prefix) == {"one request": content, "in parts": content}
    assert all(not fault.times for fault in proxy.faults)


async def test_offline_the_queue_waits_and_then_drains_once_and_in_order(
    files_server: Server, proxy: Proxy, prefix: str, cache: Path
) -> None:
    proxy.online = False
    keys = [f"log/{n:04}" for n in range(25)]
    async with opened(files_server, proxy, prefix, cache, patience=0.2) as storage:
        for key in keys:
            (storage.local_path() / "log").mkdir(exist_ok=True, mode=0o700)
            (storage.local_path() / key).write_bytes(key.encode())
            await storage.publish(key, ordered=True, new=True, immutable=True)
        assert storage.pending == len(keys)
        assert await storage.read(keys[3]) == keys[3].encode()
        with pytest.raises(StorageUnavailableError):
            await storage.sync_to_remote()
        assert storage.pending == len(keys)
        assert held(files_server, prefix) == {}
        assert proxy.refused
        proxy.online = True
        await storage.sync_to_remote()
    assert held(files_server, prefix) == {key: key.encode() for key in keys}
    assert proxy.puts() == [f"/test/{prefix}/s1/{key}" for key in keys]


async def test_it_drains_by_itself_when_the_service_is_back(
    files_server: Server, proxy: Proxy, prefix: str, cache: Path
) -> None:
    proxy.online = False
    async with opened(files_server, proxy, prefix, cache) as storage:
        await storage.write("a", b"1")
        await until(lambda: proxy.refused >= 5)
        proxy.online = True
        await until(lambda: not storage.pending)
    assert held(files_server, prefix) == {"a": b"1"}
    assert len(proxy.puts()) == 1


async def test_a_service_that_goes_away_in_the_middle(
    files_server: Server, proxy: Proxy, prefix: str, cache: Path
) -> None:
    expected = {f"blobs/{n:03}": os.urandom(500) for n in range(150)}
    async with opened(files_server, proxy, prefix, cache) as storage:
        for number, (key, content) in enumerate(expected.items()):
            if number in (40, 90):
                proxy.online = False
                proxy.disconnect()
            if number in (60, 120):
                proxy.online = True
            await storage.write(key, content)
        await storage.sync_to_remote()
    assert held(files_server, prefix) == expected


async def test_ordered_ones_wait_for_all_before_them_and_the_others_do_not_wait(
    files_server: Server, proxy: Proxy, prefix: str, cache: Path
) -> None:
    proxy.online = False
    async with opened(files_server, proxy, prefix, cache) as storage:
        for number in range(30):
            await storage.write(f"blobs/{number}", b"x" * number)
        (storage.local_path() / "segment").write_bytes(b"names the blobs")
        await storage.publish("segment", ordered=True)
        await storage.write("later", b"1")
        proxy.faults = [Fault("503", key="blobs/7", times=6)]
        proxy.online = True
        await storage.sync_to_remote()
    names = [key.rpartition("/s1/")[2] for key in proxy.puts()]
    assert sorted(names) == sorted([*(f"blobs/{n}" for n in range(30)), "segment", "later"])
    assert names.index("segment") > max(names.index(f"blobs/{number}") for number in range(30))
    assert names.index("later") < names.index("blobs/7")


async def test_deletes_keep_their_place_among_writes(
    files_server: Server, proxy: Proxy, prefix: str, cache: Path
) -> None:
    proxy.online = False
    async with opened(files_server, proxy, prefix, cache) as storage:
        for round_ in range(4):
            await storage.write("a", str(round_).encode())
            await storage.write("b", str(round_).encode())
            await storage.delete("a")
        assert not await storage.exists("a")
        proxy.online = True
        await storage.sync_to_remote()
        assert not await storage.exists("a")
    assert held(files_server, prefix) == {"b": b"3"}


@pytest.mark.parametrize("size", [200_000, 20_000_000])
async def test_a_download_that_breaks_off_is_tried_again(
    files_server: Server, proxy: Proxy, prefix: str, cache: Path, size: int
) -> None:
    content = os.urandom(size)
    async with opened(files_server, proxy, prefix, cache) as storage:
        await storage.write("a", content)
        await storage.write("b/c", b"small")
        await storage.sync_to_remote()
    proxy.faults = [Fault("cut download", "GET", "/a", times=4), Fault("reset", "GET", "b/c", times=4)]
    async with opened(files_server, proxy, prefix, cache / "elsewhere") as storage:
        refs = await storage.sync_from_remote()
        assert [(ref.path, ref.size) for ref in refs] == [("a", size), ("b/c", 5)]
        assert await storage.read("a") == content
        assert await storage.sync_from_remote() == []


async def test_a_download_that_always_breaks_off_leaves_nothing(
    files_server: Server, proxy: Proxy, prefix: str, cache: Path, tmp_path: Path
) -> None:
    async with opened(files_server, proxy, prefix, cache) as storage:
        await storage.write("a", b"x" * 100_000)
        await storage.sync_to_remote()
    proxy.faults = [Fault("cut download", "GET", "/a", times=1_000)]
    async with opened(files_server, proxy, prefix, tmp_path / "elsewhere") as storage:
        with pytest.raises(StorageUnavailableError):
            await storage.bucket.get("a")
        with pytest.raises(StorageUnavailableError):
            await storage.sync_from_remote()
        files = [path for path in storage.local_path().rglob("*") if ".conjure-queue" not in path.parts]
        assert files == []


async def test_a_refusal_stops_the_queue_and_is_told(
    files_server: Server, proxy: Proxy, prefix: str, cache: Path
) -> None:
    wrong = {"secret_key": "not-the-secret"}
    async with opened(files_server, proxy, prefix, cache, **wrong) as storage:
        await storage.write("a", b"1")
        with pytest.raises(StorageError, match="refused"):
            await storage.sync_to_remote()
        with pytest.raises(StorageError, match="refused"):
            await storage.write("b", b"2")
        assert storage.pending == 1
    async with opened(files_server, proxy, prefix, cache) as storage:  # with the right one it goes on
        await storage.sync_to_remote()
    assert held(files_server, prefix) == {"a": b"1"}
