"""What is sent, in which order, who may send it, and what is told when nothing can be sent."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import stat
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from conjure_jupyter.errors import (
    SessionLockedError,
    StorageConflictError,
    StorageError,
    StorageNotFoundError,
    StorageUnavailableError,
)
from conjure_jupyter.timeline.remote import LogMirror, erase, restore
from conjure_jupyter.timeline.remote import lease as leases

from .builders import prompt, turn_end
from .remote_machine import Machines, machines, remote_log, stranger, until
from .remote_stores import Remote, memory_bucket


@pytest.fixture
def remote() -> Remote:
    return Remote(memory_bucket())


@pytest.fixture
async def at(tmp_path: Path, remote: Remote) -> AsyncIterator[Machines]:
    async with machines(tmp_path, remote) as made:
        yield made


async def test_what_is_sent_is_the_log(at: Machines, remote: Remote) -> None:
    here = at("one")
    mirror = here.mirror()
    assert await mirror.start()
    assert await mirror.synced()
    assert await remote_log(remote) == here.log
    here.say("a", "b")
    here.timeline.append("user", prompt("ü\u2028 and more"))
    assert mirror.pending > 0
    assert await mirror.synced()
    assert mirror.pending == 0
    assert await remote_log(remote) == here.log
    assert [item.key for item in await remote.bucket.list("log/")] == [
        "log/00000001.jsonl",
        "log/00000002.jsonl",
    ]


async def test_a_turns_end_is_sent_by_itself(at: Machines, remote: Remote) -> None:
    here = at("one")
    mirror = here.mirror()
    await mirror.start()
    await mirror.synced()
    here.say("not yet")
    await asyncio.to_thread(here.timeline.append, "turn_end", turn_end())
    await until(lambda: not mirror.pending)
    assert await remote_log(remote) == here.log


@pytest.mark.parametrize("plenty", [False, True])
async def test_a_long_turn_is_sent_meanwhile(at: Machines, remote: Remote, plenty: bool) -> None:
    here = at("one")
    mirror = here.mirror(interval=3600.0 if plenty else 0.01)
    await mirror.start()
    here.say("x" * (2_000_000 if plenty else 10))
    await until(lambda: not mirror.pending)
    assert await remote_log(remote) == here.log


async def test_pieces_end_with_lines_and_a_long_line_is_one(
    at: Machines, remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("conjure_jupyter.timeline.remote.pieces.SEGMENT_SIZE", 1000)
    here = at("one")
    here.say(*("x" * 300 for _ in range(10)), "y" * 5000, "z")
    mirror = here.mirror()
    await mirror.start()
    await mirror.synced()
    sizes = [item.size for item in await remote.bucket.list("log/")]
    assert len(sizes) > 4
    assert [size for size in sizes if size > 1000] == [len(here.log.splitlines(keepends=True)[-2])]
    assert await remote_log(remote) == here.log


async def test_blobs_go_before_the_lines_that_name_them(at: Machines, remote: Remote) -> None:
    here = at("one")
    mirror = here.mirror()
    await mirror.start()
    await mirror.synced()
    digests = {here.artifact(b"one"), here.artifact(b"two"), here.blob(b"inside")}
    digests.add(here.snapshot({"a.txt": b"inside", "b.txt": b"one"}))
    unkept = here.blob(b"too large to keep")
    here.timeline.append("artifact", {"path": "outputs/y", "sha256": unkept, "kept": False})
    remote.puts.clear()
    await mirror.synced()
    *blobs, segment = remote.puts
    assert segment == "log/00000002.jsonl"
    assert sorted(blobs) == sorted(f"blobs/{digest}" for digest in digests)


async def test_a_blob_is_sent_once(at: Machines, remote: Remote) -> None:
    here = at("one")
    mirror = here.mirror()
    await mirror.start()
    here.artifact(b"one")
    await mirror.synced()
    here.artifact(b"one")
    await mirror.synced()
    await here.crash()
    here = at("one")
    here.artifact(b"one")
    mirror = here.mirror()
    await mirror.start()
    await mirror.synced()
    assert len([key for key in remote.puts if key.startswith("blobs/")]) == 1


async def test_callers_may_say_which_blobs_a_block_names(at: Machines, remote: Remote) -> None:
    here = at("one")
    digest = here.blob(b"mine")
    here.timeline.append("place", {"image": digest})
    mirror = here.mirror(blobs_of=lambda block: [block.data["image"]] if block.kind == "place" else [])
    await mirror.start()
    await mirror.synced()
    assert f"blobs/{digest}" in remote.puts


@pytest.mark.parametrize("damage", ["missing", "other bytes"])
async def test_a_blob_that_cannot_be_sent_is_told_and_holds_up_nothing(
    at: Machines, remote: Remote, damage: str
) -> None:
    here = at("one")
    digest = here.artifact(b"one")
    path = here.folder / "blobs" / digest
    path.unlink() if damage == "missing" else path.write_bytes(b"two")
    mirror = here.mirror()
    await mirror.start()
    assert await mirror.synced()
    here.artifact(b"three")
    assert await mirror.synced()
    assert await remote_log(remote) == here.log
    assert [digest in told for told in here.told] == [True]
    assert f"blobs/{digest}" not in remote.puts


async def test_a_half_blob_there_is_sent_again(at: Machines, remote: Remote) -> None:
    here = at("one")
    digest = here.artifact(b"whole")
    await remote.bucket.put(f"blobs/{digest}", b"who")
    mirror = here.mirror()
    await mirror.start()
    await mirror.synced()
    assert await remote.bucket.get(f"blobs/{digest}") == b"whole"


async def test_the_second_writer_is_refused_and_told_who_the_first_is(at: Machines, remote: Remote) -> None:
    one, two = at("one"), at("two")
    mirror = one.mirror(kernel="sales.ipynb")
    await mirror.start()
    await mirror.synced()
    before = list(remote.puts)
    with pytest.raises(
        StorageConflictError, match=rf"in use by process {os.getpid()} on .*sales\.ipynb.*until"
    ):
        await two.mirror().start()
    assert remote.puts == before
    one.say("still mine")
    assert await mirror.synced()


async def test_what_is_let_go_can_be_taken_at_once(at: Machines, tmp_path: Path) -> None:
    one = at("one")
    mirror = one.mirror()
    await mirror.start()
    one.say("said at the last moment")
    assert await mirror.close()
    await restore(one.remote, at.folder("two"))
    two = at("two")
    assert two.log == one.log
    assert await two.mirror().start()


@pytest.mark.parametrize("ago", [11, 3600])
async def test_an_expired_lease_is_taken_over(at: Machines, remote: Remote, ago: int) -> None:
    await remote.bucket.put("lease.json", stranger(time.time() - ago).encode())
    assert await at("one").mirror().start()


@pytest.mark.parametrize("left", [-8, 60])
async def test_a_lease_that_holds_is_not(at: Machines, remote: Remote, left: int) -> None:
    data = stranger(time.time() + left).encode()
    await remote.bucket.put("lease.json", data)
    with pytest.raises(StorageConflictError, match=r"process 4711 on elsewhere, notebook analysis\.ipynb"):
        await at("one").mirror().start()
    assert await remote.bucket.get("lease.json") == data


async def test_force_takes_it_all_the_same(at: Machines, remote: Remote) -> None:
    await remote.bucket.put("lease.json", stranger(time.time() + 60).encode())
    assert await at("one").mirror().start(force=True)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"\xff", b'{"token": 1}', b"[" * 9_999, b"x" * 20_000, b'{"expires": "2999"}']
)
async def test_what_is_no_lease_is_refused(at: Machines, remote: Remote, content: bytes) -> None:
    await remote.bucket.put("lease.json", content)
    with pytest.raises(StorageConflictError, match="no lease that Conjure can read"):
        await at("one").mirror().start()
    assert await remote.bucket.get("lease.json") == content


async def test_a_lease_cannot_write_on_the_terminal(at: Machines, remote: Remote) -> None:
    said = json.loads(stranger(time.time() + 60).encode())
    said |= {"host": "evil\x1b[2J\u202e", "kernel": "x" * 5_000}
    await remote.bucket.put("lease.json", json.dumps(said).encode())
    with pytest.raises(StorageConflictError) as caught:
        await at("one").mirror().start()
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500


async def test_a_restart_knows_its_own_lease(at: Machines) -> None:
    here = at("one")
    await here.mirror().start()
    await here.crash()
    assert await at("one").mirror().start()


async def test_a_copied_folder_is_somebody_else(
    at: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = at("one")
    await here.mirror().start()
    await here.crash()
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    with pytest.raises(StorageConflictError, match="in use"):
        await at("two").mirror().start()
    monkeypatch.setattr("socket.gethostname", lambda: "another")
    with pytest.raises(StorageConflictError, match="in use"):
        await at("one").mirror().start()


async def test_a_lost_lease_ends_the_sending_and_is_told_once(at: Machines, remote: Remote) -> None:
    here = at("one")
    mirror = here.mirror()
    await mirror.start()
    here.say("sent")
    await mirror.synced()
    sent = here.log
    await remote.bucket.put("lease.json", stranger(time.time() + 60).encode())
    await _run_out(mirror)
    remote.puts.clear()
    here.say("not sent")
    with pytest.raises(StorageConflictError, match="taken over by process 4711 on elsewhere"):
        await mirror.synced()
    here.say("nor this")
    assert await mirror.synced() is False
    assert not await mirror.close()
    assert remote.puts == []
    assert await remote_log(remote) == sent
    assert here.log.startswith(sent)
    assert len(here.timeline.blocks) == 4
    assert [("taken over" in told) for told in here.told] == [True]
    assert (await remote.bucket.get("lease.json")).find(b"elsewhere") > 0


async def test_a_lost_lease_is_found_by_renewing_and_told_at_the_next_sync(
    at: Machines, remote: Remote
) -> None:
    here = at("one")
    mirror = here.mirror(lifetime=0.3)
    await mirror.start()
    await mirror.synced()
    await remote.bucket.put("lease.json", stranger(time.time() + 60).encode())
    await until(lambda: here.told)
    with pytest.raises(StorageConflictError, match="taken over"):
        await mirror.synced()
    assert await mirror.synced() is False
    assert len(here.told) == 1


async def test_a_lease_is_renewed(at: Machines, remote: Remote) -> None:
    mirror = at("one").mirror(lifetime=3.0)
    await mirror.start()
    await mirror.synced()
    first = json.loads(await remote.bucket.get("lease.json"))
    count = len(remote.puts)
    await until(lambda: len(remote.puts) > count)
    again = json.loads(await remote.bucket.get("lease.json"))
    assert again["expires"] > first["expires"]
    assert again["token"] == first["token"]


async def test_a_lease_that_ran_out_and_that_nobody_took_is_renewed(at: Machines, remote: Remote) -> None:
    here = at("one")
    mirror = here.mirror()
    await mirror.start()
    await mirror.synced()
    await _run_out(mirror)
    here.say("after a night in the bag")
    assert await mirror.synced()
    assert await remote_log(remote) == here.log


async def test_a_renewal_whose_answer_is_lost_is_no_conflict(at: Machines, remote: Remote) -> None:
    here = at("one")
    mirror = here.mirror()
    await mirror.start()
    await mirror.synced()
    await _run_out(mirror)
    remote.lose = 1
    here.say("more")
    with pytest.raises(StorageUnavailableError):
        await mirror.synced()
    assert await mirror.synced()


async def test_no_piece_is_made_while_the_lease_has_run_out(
    at: Machines, remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = at("one")
    mirror = here.mirror(lifetime=0.5)
    await mirror.start()
    await mirror.synced()
    arrived = len(await remote.bucket.list("log/"))
    stuck = asyncio.Event()
    real = remote.bucket._put

    async def slow(key: str, *args: Any) -> str:
        if key.startswith("log/"):
            stuck.set()
            remote.down = True  # the lease cannot be renewed either
            await asyncio.Event().wait()
        return await real(key, *args)

    monkeypatch.setattr(remote.bucket, "_put", slow)
    here.say("more")
    with pytest.raises(StorageUnavailableError, match="lease ran out"):
        await mirror.synced()
    assert stuck.is_set()
    remote.down = False
    assert len(await remote.bucket.list("log/")) == arrived
    monkeypatch.undo()
    assert await mirror.synced()
    assert await remote_log(remote) == here.log


async def _run_out(mirror: LogMirror) -> None:
    """Let the lease run out, as in a machine that slept."""
    assert mirror._sender is not None
    lease = mirror._sender._lease
    assert lease.held
    lease._ends = (time.time() - 1, lease._ends[1])
    assert not lease.held


async def test_a_deleted_session_is_not_written_to(at: Machines, remote: Remote) -> None:
    here, other = at("one"), at("two")
    mirror = here.mirror()
    await mirror.start()
    await mirror.synced()
    with pytest.raises(StorageConflictError, match="in use"):
        await erase(other.remote, other.folder)
    assert len(await erase(other.remote, other.folder, force=True)) == 2
    await _run_out(mirror)
    here.say("more")
    with pytest.raises(StorageConflictError, match="was deleted there"):
        await mirror.synced()
    assert await remote.bucket.list() == []


async def test_offline_from_the_start(at: Machines, remote: Remote) -> None:
    here = at("one")
    mirror = here.mirror()
    remote.down = True
    assert await mirror.start() is False
    for turn in range(3):
        here.say(f"turn {turn}")
        here.artifact(b"%d" % turn)
        with pytest.raises(StorageUnavailableError):
            await mirror.synced()
    assert len(here.told) == 1
    assert "nobody answers" in here.told[0]
    assert "whole on this machine" in here.told[0]
    remote.down = False
    assert await mirror.synced()
    assert await remote_log(remote) == here.log
    assert [key[:5] for key in remote.puts] == ["lease", "blobs", "blobs", "blobs", "log/0"]


async def test_a_time_offline_ends_in_one_ordered_drain(at: Machines, remote: Remote) -> None:
    here = at("one")
    mirror = here.mirror(interval=0.01)
    await mirror.start()
    await mirror.synced()
    remote.down = True
    for turn in range(20):
        here.say(f"turn {turn}")
        mirror.flush()
        await asyncio.sleep(0.002)
    await here.crash()

    here = at("one")
    mirror = here.mirror(interval=0.01)
    assert await mirror.start() is False
    here.say("one more")
    remote.puts.clear()
    remote.down = False
    await until(lambda: not mirror.pending)
    assert await remote_log(remote) == here.log
    assert [key for key in remote.puts if key != "lease.json"] == ["log/00000002.jsonl"]


async def test_a_piece_whose_answer_is_lost_is_sent_once(at: Machines, remote: Remote) -> None:
    here = at("one")
    mirror = here.mirror()
    await mirror.start()
    await mirror.synced()
    here.say("a")
    remote.lose = 1
    with pytest.raises(StorageUnavailableError):
        await mirror.synced()
    here.say("b")
    assert await mirror.synced()
    assert await remote_log(remote) == here.log
    assert [key for key in remote.puts if key != "lease.json"] == [f"log/{n:08d}.jsonl" for n in (1, 2, 3)]


async def test_an_earlier_shorter_piece_of_ones_own_counts(at: Machines, remote: Remote) -> None:
    """A write that was given up at a crash may still arrive after the restart has looked."""
    here = at("one")
    mirror = here.mirror()
    await mirror.start()
    await mirror.synced()
    before = len(here.log)
    here.say("a")
    late = here.log[before:]
    here.say("b")
    await remote.bucket.put("log/00000002.jsonl", late)
    assert await mirror.synced()
    assert await remote_log(remote) == here.log


async def test_another_writers_piece_is_a_conflict_and_stays(at: Machines, remote: Remote) -> None:
    here = at("one")
    mirror = here.mirror()
    await mirror.start()
    await mirror.synced()
    await remote.bucket.put("log/00000002.jsonl", b"theirs\n")
    here.say("ours")
    with pytest.raises(StorageConflictError, match="continued in two places"):
        await mirror.synced()
    here.say("ours")
    assert await mirror.synced() is False
    assert await remote.bucket.get("log/00000002.jsonl") == b"theirs\n"
    assert len(here.told) == 1
    assert b'"expires": "1970-' in await remote.bucket.get("lease.json"), "who sends nothing holds nothing"


async def test_logs_that_went_different_ways(at: Machines, tmp_path: Path) -> None:
    one = at("one")
    mirror = one.mirror()
    await mirror.start()
    await mirror.close()
    await restore(one.remote, at.folder("two"))
    two = at("two")
    two.say("at home")
    mirror = two.mirror()
    await mirror.start()
    await mirror.close()
    remote, there = list(one.remote.puts), await remote_log(one.remote)

    with pytest.raises(StorageConflictError, match=r"goes on where the one in .*Resume memory://s1 to bring"):
        await one.mirror().start()
    one.say("at work")
    with pytest.raises(StorageConflictError, match=r"differ after .* bytes.*move .*one/s1 away"):
        await one.mirror().start()
    with pytest.raises(SessionLockedError):
        await restore(one.remote, one.folder)
    one.timeline.close()
    log = one.log
    with pytest.raises(StorageConflictError, match="continued in two places"):
        await restore(one.remote, one.folder)
    assert one.log == log
    assert await remote_log(one.remote) == there
    assert set(one.remote.puts[len(remote) :]) <= {"lease.json"}
    assert await two.mirror().start(), "the lease was let go"


async def test_a_gap_is_told(at: Machines, remote: Remote) -> None:
    here = at("one")
    mirror = here.mirror()
    await mirror.start()
    for text in "abc":
        here.say(text)
        await mirror.synced()
    await mirror.close()
    await remote.bucket.delete("log/00000002.jsonl")
    with pytest.raises(StorageError, match=r"gap: log/00000002\.jsonl"):
        await here.mirror().start()


async def test_without_conditions_writers_are_kept_apart_by_looking(
    at: Machines, remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = remote.bucket._put

    async def unconditional(key: str, data: Any, mode: Any, content_type: str | None) -> str:
        return await real(key, data, None, content_type)

    monkeypatch.setattr(remote.bucket, "_put", unconditional)
    one, two = at("one"), at("two")
    mirror = one.mirror()
    await mirror.start()
    assert await mirror.synced()
    assert ["does not keep to conditional writes" in told for told in one.told] == [True]
    with pytest.raises(StorageConflictError, match="in use"):
        await two.mirror().start()
    sent = await remote_log(remote)
    await remote.bucket.put("lease.json", stranger(time.time() + 60).encode())
    one.say("nobody may overwrite this")
    with pytest.raises(StorageConflictError, match="taken over"):
        await mirror.synced()
    assert await remote_log(remote) == sent


async def test_whoever_loses_a_race_for_the_lease_leaves_it_alone(
    at: Machines, remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = remote.bucket._put
    theirs = stranger(time.time() + 60).encode()

    async def overtaken(key: str, data: Any, mode: Any, content_type: str | None) -> str:
        await real(key, data, None, content_type)
        return await real(key, theirs, None, content_type)

    monkeypatch.setattr(remote.bucket, "_put", overtaken)
    with pytest.raises(StorageConflictError, match="in use by process 4711"):
        await at("one").mirror().start()
    monkeypatch.undo()
    assert await remote.bucket.get("lease.json") == theirs


@pytest.mark.parametrize("when", ["before", "after"])
async def test_without_conditions_an_overwritten_piece_is_noticed(
    at: Machines, remote: Remote, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    real = remote.bucket._put

    async def unconditional(key: str, data: Any, mode: Any, content_type: str | None) -> str:
        etag = await real(key, data, None, content_type)
        if key == "log/00000002.jsonl" and when == "after":
            etag = await real(key, b"theirs\n", None, content_type)
        return etag

    monkeypatch.setattr(remote.bucket, "_put", unconditional)
    one = at("one")
    mirror = one.mirror()
    await mirror.start()
    await mirror.synced()
    if when == "before":
        await real("log/00000002.jsonl", b"theirs\n", None, None)
    one.say("ours")
    with pytest.raises(StorageConflictError, match="continued in two places"):
        await mirror.synced()
    assert await remote.bucket.get("log/00000002.jsonl") == b"theirs\n"


async def test_blocks_from_many_threads_arrive_in_order(at: Machines, remote: Remote) -> None:
    here = at("one")
    mirror = here.mirror(interval=0.001)
    await mirror.start()
    threads = [threading.Thread(target=here.say, args=[f"{n} {i}" for i in range(50)]) for n in range(4)]
    for thread in threads:
        thread.start()
    await until(lambda: not any(thread.is_alive() for thread in threads))
    assert await mirror.synced()
    assert await remote_log(remote) == here.log
    assert len(here.log.splitlines()) == 201


async def test_a_closed_log_ends_the_mirror(at: Machines) -> None:
    here = at("one")
    mirror = here.mirror()
    await mirror.start()
    await mirror.synced()
    here.say("never synced")
    here.timeline.close()
    assert not await mirror.close()
    here = at("one")
    assert await here.mirror().start()


async def test_closing_is_bounded_and_can_be_repeated(at: Machines, remote: Remote) -> None:
    here = at("one")
    never = here.mirror()
    assert not await never.close()
    mirror = here.mirror()
    await mirror.start()
    await mirror.synced()
    remote.down = True
    here.say("waits")
    assert not await mirror.close(0.2)
    assert not await mirror.close(0.2)
    remote.down = False
    again = here.mirror()
    await again.start()
    assert await again.synced()
    assert await remote_log(remote) == here.log


async def test_the_tokens_file_is_private(at: Machines) -> None:
    here = at("one")
    await here.mirror().start()
    assert stat.S_IMODE((here.folder / "remote.json").stat().st_mode) == 0o600


async def test_erasing_says_what_it_erased_and_leaves_the_rest(
    at: Machines, remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = at("one")
    mirror = here.mirror()
    await mirror.start()
    digest = here.artifact(b"one")
    await mirror.synced()
    here.say("more")
    await mirror.close()
    await remote.bucket.put("outputs/report.pdf", b"not ours to delete")
    monkeypatch.setattr("conjure_jupyter.timeline.remote.erasing._AT_ONCE", 1)
    erased = await erase(remote)
    assert erased == ["log/00000002.jsonl", "log/00000001.jsonl", f"blobs/{digest}", "lease.json"]
    assert [item.key for item in await remote.bucket.list()] == ["outputs/report.pdf"]
    assert await erase(remote) == []
    with pytest.raises(StorageNotFoundError):
        await restore(remote, here.folder.parent / "gone")


async def test_erasing_after_a_crash_here(at: Machines, remote: Remote) -> None:
    here = at("one")
    mirror = here.mirror()
    await mirror.start()
    await mirror.synced()
    await here.crash()
    with pytest.raises(StorageConflictError, match="in use"):
        await erase(remote)
    assert await remote_log(remote) == here.log
    assert await erase(remote, here.folder) == ["log/00000001.jsonl", "lease.json"]
    assert await remote.bucket.list() == []


def test_a_lease_lasts_longer_than_its_renewals_take() -> None:
    assert leases.LIFETIME / 3 > 10
