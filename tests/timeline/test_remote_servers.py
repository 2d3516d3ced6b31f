"""The same on real S3 servers: one keeps to conditional writes, one only says so; and one that goes away."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from conjure_jupyter.errors import StorageConflictError, StorageError, StorageUnavailableError
from conjure_jupyter.storage.bucket import Bucket
from conjure_jupyter.timeline.remote import LogMirror, blobs_of, erase, restore
from conjure_jupyter.timeline.remote.naming import named_in
from tests.s3 import KEY_ID, SECRET, Server, moto, rclone
from tests.storage.proxy import FAULTS, Fault, Proxy

from .crash import CrashServer
from .remote_machine import Machines, machines, remote_log, stranger, until
from .remote_stores import Remote, another_name, s3_bucket

KILLS = 24


@pytest.fixture(scope="module")
def strict() -> Iterator[Server]:
    with moto() as server:
        yield server


@pytest.fixture(scope="module")
def lax(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with rclone(tmp_path_factory.mktemp("rclone")) as server:
        yield server


@pytest.fixture(params=["strict", "lax"])
def server(request: pytest.FixtureRequest) -> Server:
    found: Server = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def remote(server: Server) -> Remote:
    return Remote(s3_bucket(server.port, another_name()))


@pytest.fixture
async def at(tmp_path: Path, remote: Remote) -> AsyncIterator[Machines]:
    async with machines(tmp_path, remote) as made:
        yield made


async def test_from_one_machine_to_another_and_back(at: Machines, remote: Remote) -> None:
    one = at("one")
    mirror = one.mirror()
    await mirror.start()
    for turn in range(3):
        one.artifact(b"%d" % turn * 1000)
        one.say("x" * 10_000)
        assert await mirror.synced()
    assert await mirror.close()
    one.timeline.close()

    report = await restore(remote, at.folder("two"))
    assert (report.lines, report.blobs, report.missing, report.damaged) == (7, 3, (), ())
    two = at("two")
    assert two.log == one.log
    mirror = two.mirror()
    await mirror.start()
    two.artifact(b"from two")
    assert await mirror.close()
    two.timeline.close()

    assert (await restore(remote, one.folder)).lines == 1
    assert one.log == two.log == await remote_log(remote)
    erased = await erase(remote)
    assert len(erased) == 4 + 4 + 1
    assert await remote.bucket.list() == []


async def test_the_same_bytes_are_known_by_their_etag(at: Machines, remote: Remote) -> None:
    one = at("one")
    mirror = one.mirror()
    await mirror.start()
    await mirror.synced()
    await mirror.close()
    read: list[str] = []
    real = remote.bucket.get_with_etag

    async def listening(key: str) -> tuple[bytes, str]:
        read.append(key)
        return await real(key)

    remote.bucket.get_with_etag = listening  # type: ignore[method-assign]  to see what is read
    await one.mirror().start()
    assert set(read) == {"lease.json"}


async def test_two_writers(at: Machines, remote: Remote, request: pytest.FixtureRequest) -> None:
    one, two = at("one"), at("two")
    started = await asyncio.gather(one.mirror().start(), two.mirror().start(), return_exceptions=True)
    assert all(result is True or isinstance(result, StorageConflictError) for result in started)
    held = [machine for machine in (one, two) if await _syncs(machine.mirrors[0])]
    there = await remote_log(remote)
    if "strict" in request.node.name:
        assert len(held) == 1
    assert len(held) <= 1, "without conditions both may have to stop, and never may both go on"
    assert [machine for machine in held if machine.log != there] == []
    assert one.log.startswith(there) or two.log.startswith(there)


async def _syncs(mirror: LogMirror) -> bool:
    try:
        return await mirror.synced()
    except StorageError:
        return False


async def test_takeover_after_expiry_and_the_old_writer_stops(at: Machines, remote: Remote) -> None:
    one = at("one")
    mirror = one.mirror()
    await mirror.start()
    one.say("sent")
    await mirror.synced()
    await restore(remote, at.folder("two"))
    two = at("two")
    assert mirror._sender is not None
    lease = mirror._sender._lease
    with pytest.raises(StorageConflictError, match="in use"):
        await two.mirror().start()
    # The first machine sleeps: its lease runs out there and, with the time it names, here.
    lease._ends = (0.0, 0.0)
    held = stranger(time.time() - 60, lease._me.token)
    await remote.bucket.put("lease.json", held.encode())
    second = two.mirror()
    assert await second.start()
    two.say("from two")
    assert await second.synced()
    one.say("never sent")
    with pytest.raises(StorageConflictError, match="taken over"):
        await mirror.synced()
    assert await mirror.synced() is False
    two.say("goes on")
    assert await second.synced()
    assert await remote_log(remote) == two.log
    assert b"never sent" in one.log


async def test_a_large_piece_and_a_large_blob(at: Machines, remote: Remote) -> None:
    one = at("one")
    mirror = one.mirror()
    await mirror.start()
    one.artifact(random.Random(1).randbytes(20_000_000))
    one.say("x" * 12_000_000)
    assert await mirror.synced()
    await restore(remote, at.folder("two"))
    assert at("two").log == one.log


async def test_a_server_that_goes_away(tmp_path: Path, strict: Server) -> None:
    with Proxy(strict.port) as proxy:
        remote = Remote(s3_bucket(proxy.port, another_name()))
        async with machines(tmp_path, remote) as at:
            one = at("one")
            mirror = one.mirror(interval=0.05)
            assert await mirror.start()
            assert await mirror.synced()
            proxy.online = False
            proxy.disconnect()
            for turn in range(5):
                one.say(f"turn {turn}")
                one.artifact(b"%d" % turn)
                mirror.flush()
            with pytest.raises(StorageUnavailableError):
                await mirror.synced()
            assert len([told for told in one.told if "sent later" in told]) == 1
            before = len(proxy.puts())
            proxy.online = True
            await until(lambda: not mirror.pending)
            assert await remote_log(remote) == one.log
            sent = [key.rpartition("/")[2] for key in proxy.puts()[before:] if "lease" not in key]
            # A blob whose request was cut while the server came back may travel twice; a piece goes once.
            assert len(set(sent)) == 6
            assert sent.count("00000002.jsonl") == 1
            assert sent[-1] == "00000002.jsonl"


@pytest.mark.parametrize("part", ["/log/", "/blobs/", "/lease.json"])
@pytest.mark.parametrize("kind", FAULTS)
async def test_a_server_that_fails(tmp_path: Path, strict: Server, kind: str, part: str) -> None:
    with Proxy(strict.port) as proxy:
        remote = Remote(s3_bucket(proxy.port, another_name()))
        async with machines(tmp_path, remote) as at:
            one = at("one")
            mirror = one.mirror(interval=0.05)
            proxy.faults.append(Fault(kind, "PUT", part, times=5))  # type: ignore[arg-type]  one of FAULTS
            await mirror.start()
            one.artifact(b"one")
            one.say("x" * 1000)
            await until(lambda: not mirror.pending)
            assert await mirror.synced()
            assert await remote_log(remote) == one.log
            assert len([told for told in one.told if "sent later" in told]) <= 1
            assert await mirror.close()
            one.timeline.close()
            assert (await restore(remote, at.folder("two"))).blobs == 1
            assert at("two").log == one.log


async def test_a_name_that_climbs_out_is_refused(at: Machines, strict: Server) -> None:
    import boto3

    remote = Remote(s3_bucket(strict.port, another_name()))
    async with machines(at.root / "climbing", remote) as there:
        one = there("one")
        await one.mirror().start()
        await one.mirrors[0].synced()
        client = boto3.client(
            "s3",
            endpoint_url=strict.endpoint,
            aws_access_key_id=KEY_ID,
            aws_secret_access_key=SECRET,
            region_name="us-east-1",
        )
        evil = remote.bucket.prefix + "blobs/../../../authorized_keys"
        client.put_object(Bucket="test", Key=evil, Body=b"evil")
        with pytest.raises(StorageError):
            await restore(remote, there.folder("two"))
        client.delete_object(Bucket="test", Key=evil)
        client.close()
        assert not there.folder("two").exists()


async def test_kill_at_any_point(tmp_path: Path, strict: Server) -> None:
    """``kill -9``, then another machine: what was said to be remote is there, and the first goes on."""
    chance = random.Random(20_261_121)
    kills = 0
    pieces = 0
    with CrashServer(preload=["tests.timeline.remote_writer", "obstore.store"]) as server:
        for session in range(4):
            name = another_name()
            bucket = s3_bucket(strict.port, name)
            folder = tmp_path / str(session) / "s1"
            acknowledged = 0
            for kill in range(KILLS // 4):
                args = [str(folder), str(strict.port), name, f"{session}_{kill}"]
                victim = server.start("tests.timeline.remote_writer:work", *args)
                await asyncio.to_thread(victim.wait_for, chance.choice([0, 1, 1, 2, 3]))
                said = await asyncio.to_thread(victim.kill, chance.random() * 0.05)
                acknowledged = int(said[-1]) if said else acknowledged
                kills += 1
                if not (folder / "timeline.jsonl").exists():
                    continue
                pieces = max(
                    pieces, await _check(bucket, folder, acknowledged, tmp_path / name.replace("/", "_"))
                )
    assert kills == KILLS
    assert pieces > 10, "no kill came late enough to count"


async def _check(bucket: Bucket, folder: Path, acknowledged: int, other: Path) -> int:
    remote = Remote(bucket)
    local = (folder / "timeline.jsonl").read_bytes()
    there = await remote_log(remote)
    assert local.startswith(there)
    assert len(there) >= acknowledged
    if not there:
        return 0
    report = await restore(remote, other)
    assert (report.missing, report.damaged) == ((), ())
    assert (other / "timeline.jsonl").read_bytes() == there
    named, _ = named_in(there, blobs_of)
    for digest in named:
        assert (other / "blobs" / digest).read_bytes() == (folder / "blobs" / digest).read_bytes()
    return len(await bucket.list("log/"))
