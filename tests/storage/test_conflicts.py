"""Two writers: neither overwrites the other's version unseen, and what is our own is no conflict."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from conjure_jupyter.errors import StorageConflictError
from conjure_jupyter.storage import Backoff, S3Storage
from tests.s3 import Server

from .proxy import Fault, Proxy

#: Sizes of a file that goes in one conditional request, and of one that goes in parts.
SIZES = [10, 33 * 1024 * 1024]


@pytest.fixture
def proxy(strict_server: Server) -> Iterator[Proxy]:
    with Proxy(strict_server.port) as running:
        yield running


class Machines:
    """Storages of the same session with local copies of their own."""

    def __init__(self, options: dict[str, Any], folder: Path) -> None:
        self._options, self._folder = options, folder

    @contextlib.asynccontextmanager
    async def opened(self, name: str, **more: Any) -> AsyncIterator[S3Storage]:
        backoff = Backoff(first=0.01, most=0.05)
        storage = S3Storage(**self._options, cache_path=self._folder / name, backoff=backoff, **more)
        await storage.init("s1")
        try:
            yield storage
        finally:
            await storage.close()


@pytest.fixture
def machines(strict_server: Server, proxy: Proxy, prefix: str, tmp_path: Path) -> Machines:
    return Machines(strict_server.options(prefix, port=proxy.port), tmp_path)


@pytest.mark.parametrize("size", SIZES)
async def test_two_that_write_the_same_key(machines: Machines, size: int) -> None:
    first, second = b"a" * size, b"b" * size
    async with machines.opened("one") as one, machines.opened("two") as two:
        await one.write("k", first)
        await one.sync_to_remote()
        await two.write("k", second)
        with pytest.raises(StorageConflictError):
            await two.sync_to_remote()
        with pytest.raises(StorageConflictError):
            await two.write("other", b"1")
        assert two.pending == 1
        assert await one.bucket.get("k") == first


@pytest.mark.parametrize("size", SIZES)
async def test_one_that_has_read_may_replace_and_the_other_then_may_not(
    machines: Machines, size: int
) -> None:
    first, second, third = (letter * size for letter in (b"a", b"b", b"c"))
    async with machines.opened("one") as one, machines.opened("two") as two:
        await one.write("k", first)
        await one.sync_to_remote()
        assert await two.read("k") == first
        await two.write("k", second)
        await two.sync_to_remote()
        await one.write("k", third)
        with pytest.raises(StorageConflictError):
            await one.sync_to_remote()
        assert await two.bucket.get("k") == second


async def test_a_conflict_is_settled_by_discarding(machines: Machines) -> None:
    async with machines.opened("one") as one, machines.opened("two") as two:
        await one.write("k", b"1")
        await one.sync_to_remote()
        await two.write("k", b"2")
        with pytest.raises(StorageConflictError):
            await two.sync_to_remote()
        assert [entry.key for entry in await two.queue.discard()] == ["k"]
        assert [ref.path for ref in await two.sync_from_remote()] == ["k"]
        assert await two.read("k") == b"1"
        await two.write("k", b"3")
        await two.sync_to_remote()
        assert await one.bucket.get("k") == b"3"


async def test_deleting_what_somebody_else_changed(machines: Machines) -> None:
    async with machines.opened("one") as one, machines.opened("two") as two:
        await one.write("k", b"1")
        await one.sync_to_remote()
        await two.sync_from_remote()
        await two.write("k", b"2")
        await two.sync_to_remote()
        await one.delete("k")
        with pytest.raises(StorageConflictError):
            await one.sync_to_remote()
        assert await two.bucket.get("k") == b"2"


async def test_a_new_key_that_exists(machines: Machines) -> None:
    async with machines.opened("one") as one, machines.opened("two") as two:
        for storage, content in ((one, b"1"), (two, b"2")):
            (storage.local_path() / "segment").write_bytes(content)
            (storage.local_path() / "same").write_bytes(b"same")
        await one.publish("same", new=True, immutable=True)
        await one.publish("segment", new=True, immutable=True, ordered=True)
        await one.sync_to_remote()
        await two.publish("same", new=True, immutable=True)
        await two.publish("segment", new=True, immutable=True, ordered=True)
        with pytest.raises(StorageConflictError):
            await two.sync_to_remote()
        assert [entry.key for entry in await two.queue.discard()] == ["segment"]
        assert await one.bucket.get("segment") == b"1"


@pytest.mark.parametrize("kind", ["500 after", "reset after"])
@pytest.mark.parametrize("size", [10, 300_000])
async def test_an_answer_that_was_lost_is_no_conflict(
    machines: Machines, proxy: Proxy, kind: Any, size: int
) -> None:
    versions = [os.urandom(size) for _ in range(3)]
    async with machines.opened("one") as one:
        for version in versions:
            proxy.faults.append(Fault(kind, times=2))
            await one.write("k", version)
            await one.sync_to_remote()
        (one.local_path() / "new").write_bytes(b"new")
        proxy.faults.append(Fault(kind, times=2))
        await one.publish("new", new=True, immutable=True)
        await one.sync_to_remote()
        assert await one.bucket.get("k") == versions[-1]


@pytest.mark.parametrize("forget", [False, True])
async def test_after_a_crash_the_own_version_is_known(machines: Machines, proxy: Proxy, forget: bool) -> None:
    async with machines.opened("one") as one:
        folder = one.local_path()
        await one.write("k", b"1")
        await one.sync_to_remote()
        proxy.online = False
        await one.write("k", b"2")
        await one.write("k", b"3")
    proxy.online = True
    if forget:
        (folder / ".conjure-queue" / "seen").unlink()
    async with machines.opened("one") as one:
        assert one.pending == 2 or await one.bucket.get("k") in (b"2", b"3")
        await one.write("k", b"4")
        await one.sync_to_remote()
        assert await one.bucket.get("k") == b"4"


async def test_a_torn_record_of_what_was_seen_is_no_harm(machines: Machines) -> None:
    async with machines.opened("one") as one:
        seen = one.local_path() / ".conjure-queue" / "seen"
        await one.write("k", b"1")
        await one.write("l", b"1")
        await one.sync_to_remote()
    seen.write_bytes(b'nonsense\n[1]\n["l", 5]\n' + seen.read_bytes()[:-9])
    async with machines.opened("one") as one:
        await one.write("k", b"2")
        await one.write("l", b"2")
        await one.sync_to_remote()
        assert [await one.bucket.get(key) for key in "kl"] == [b"2", b"2"]


async def test_a_storage_that_stopped_can_still_be_cleaned_up(machines: Machines) -> None:
    async with machines.opened("one") as one, machines.opened("two") as two:
        await one.write("k", b"1")
        await one.sync_to_remote()
        await two.write("k", b"2")
        with pytest.raises(StorageConflictError):
            await two.sync_to_remote()
        folder = two.local_path()
        assert [ref.path for ref in await two.cleanup()] == ["k"]
        assert not folder.exists()
        assert await one.bucket.list() == []


async def test_a_caller_that_is_cancelled_leaves_no_half_write(machines: Machines) -> None:
    async with machines.opened("one") as one:
        for delay in range(12):
            task = asyncio.create_task(one.write("k", bytes([delay]) * 200_000))
            await asyncio.sleep(delay / 2000)
            task.cancel()
            await asyncio.wait([task])
        await one.sync_to_remote()
        if await one.exists("k"):
            there = await one.bucket.get("k")
            assert there == await one.read("k") == there[:1] * 200_000
        await one.write("k", b"after")
        await one.sync_to_remote()
        assert await one.bucket.get("k") == b"after"
