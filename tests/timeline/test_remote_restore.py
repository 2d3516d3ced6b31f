"""A session on another machine: all of it, nothing overwritten, and nothing hostile taken."""

from __future__ import annotations

import asyncio
import json
import os
import random
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conjure_jupyter.errors import (
    SessionLockedError,
    StorageConflictError,
    StorageError,
    StorageNotFoundError,
    StorageUnavailableError,
    TimelineError,
)
from conjure_jupyter.timeline import Timeline
from conjure_jupyter.timeline.line import MAX_LINE, encode
from conjure_jupyter.timeline.remote import LogMirror, restore
from conjure_jupyter.timeline.remote.keys import read_listing
from conjure_jupyter.types import Block

from .remote_machine import Machine, Machines, machines, remote_log
from .remote_stores import Remote, memory_bucket

LINE = encode(Block(0, 0, "session", {"id": "s1"}, "2026-01-01T00:00:00Z"))
DIGEST = "ab" * 32


@pytest.fixture
def remote() -> Remote:
    return Remote(memory_bucket())


@pytest.fixture
async def at(tmp_path: Path, remote: Remote) -> AsyncIterator[Machines]:
    async with machines(tmp_path, remote) as made:
        yield made


async def mirrored(here: Machine) -> LogMirror:
    mirror = here.mirror()
    await mirror.start()
    await mirror.synced()
    return mirror


def files_of(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} - {
        "lock",
        "remote.json",
    }


@pytest.mark.parametrize("umask", [0, 0o777])
async def test_a_whole_session(at: Machines, remote: Remote, umask: int) -> None:
    here = at("one")
    mirror = await mirrored(here)
    digests = {here.artifact(b"one" * 1000), here.blob(b"inside")}
    digests.add(here.snapshot({"a.txt": b"inside"}))
    for turn in range(5):
        here.say(f"turn {turn}")
        await mirror.synced()
    old = os.umask(umask)
    try:
        folder = at.folder("two")
        report = await restore(remote, folder)
    finally:
        os.umask(old)
    assert (folder / "timeline.jsonl").read_bytes() == here.log
    assert files_of(folder) == {"timeline.jsonl", *(f"blobs/{digest}" for digest in digests)}
    for digest in digests:
        assert (folder / "blobs" / digest).read_bytes() == (here.folder / "blobs" / digest).read_bytes()
    assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IMODE((folder / "blobs").stat().st_mode) == 0o700
    assert {stat.S_IMODE((folder / name).stat().st_mode) for name in files_of(folder)} == {0o600}
    assert (report.folder, report.lines, report.size) == (folder, 8, len(here.log))
    assert report.blobs == 3
    assert report.blob_bytes == sum((folder / "blobs" / digest).stat().st_size for digest in digests)
    assert (report.kept_local, report.missing, report.damaged) == (False, (), ())
    assert at("two").timeline.blocks == here.timeline.blocks


async def test_only_what_is_new_comes(at: Machines, remote: Remote) -> None:
    here = at("one")
    mirror = await mirrored(here)
    here.artifact(b"one")
    await mirror.synced()
    folder = at.folder("two")
    await restore(remote, folder)
    before = (folder / "timeline.jsonl").read_bytes()
    here.artifact(b"two")
    here.say("more")
    await mirror.synced()
    report = await restore(remote, folder)
    assert (report.lines, report.blobs, report.blob_bytes) == (2, 1, 3)
    assert (folder / "timeline.jsonl").read_bytes() == here.log
    assert here.log.startswith(before)
    again = await restore(remote, folder)
    assert (again.lines, again.blobs, again.size) == (0, 0, len(here.log))


async def test_a_piece_that_is_half_here_is_completed(at: Machines, remote: Remote) -> None:
    here = at("one")
    here.say("a", "b", "c")
    await mirrored(here)
    folder = at.folder("two")
    folder.mkdir(parents=True)
    (folder / "timeline.jsonl").write_bytes(b"".join(here.log.splitlines(keepends=True)[:2]))
    await restore(remote, folder)
    assert (folder / "timeline.jsonl").read_bytes() == here.log


async def test_a_log_with_more_is_kept(at: Machines, remote: Remote) -> None:
    here = at("one")
    await mirrored(here)
    folder = at.folder("two")
    await restore(remote, folder)
    two = at("two")
    two.say("more")
    log = two.log
    two.timeline.close()
    report = await restore(remote, folder)
    assert report.kept_local
    assert report.lines == 0
    assert (folder / "timeline.jsonl").read_bytes() == log


async def test_a_log_with_other_lines_is_kept(at: Machines, remote: Remote) -> None:
    here = at("one")
    mirror = await mirrored(here)
    folder = at.folder("two")
    await restore(remote, folder)
    two = at("two")
    two.say("other")
    two.timeline.close()
    log = two.log
    here.say("more", "and more")
    await mirror.synced()
    with pytest.raises(StorageConflictError, match=r"continued in two places.*give that folder another name"):
        await restore(remote, folder)
    assert (folder / "timeline.jsonl").read_bytes() == log
    assert files_of(folder) == {"timeline.jsonl"}


async def test_a_torn_end_is_kept_aside_and_replaced(at: Machines, remote: Remote) -> None:
    here = at("one")
    mirror = await mirrored(here)
    folder = at.folder("two")
    await restore(remote, folder)
    with (folder / "timeline.jsonl").open("ab") as log:
        log.write(b'{"v":1,"seq":1,"turn":0,"kind":"not')
    here.say("more")
    await mirror.synced()
    await restore(remote, folder)
    assert (folder / "timeline.jsonl").read_bytes() == here.log
    assert json.loads((folder / "timeline.damaged").read_bytes())["length"] == 35


async def test_a_whole_last_line_without_its_end_counts_as_a_line(at: Machines, remote: Remote) -> None:
    here = at("one")
    mirror = await mirrored(here)
    folder = at.folder("two")
    await restore(remote, folder)
    line = encode(Block(1, 0, "notice", {"text": "other"}, "2026-01-01T00:00:00Z"))
    with (folder / "timeline.jsonl").open("ab") as log:
        log.write(line[:-1])
    assert (await restore(remote, folder)).kept_local
    here.say("more, and longer than the other line")
    await mirror.synced()
    with pytest.raises(StorageConflictError):
        await restore(remote, folder)
    assert (folder / "timeline.jsonl").read_bytes().endswith(line[:-1])


async def test_a_session_in_use_here_is_left_alone(at: Machines, remote: Remote) -> None:
    here = at("one")
    mirror = await mirrored(here)
    with pytest.raises(SessionLockedError):
        await restore(remote, here.folder)
    here.say("goes on")
    assert await mirror.synced()


async def test_there_is_no_such_session(tmp_path: Path, remote: Remote) -> None:
    with pytest.raises(StorageNotFoundError, match="no session of that name"):
        await restore(remote, tmp_path / "s1")
    assert not (tmp_path / "s1").exists()


async def test_an_interruption_leaves_nothing_half(
    at: Machines, remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = at("one")
    mirror = await mirrored(here)
    for text in ("a", "b", "c"):
        here.say(text)
        here.artifact(text.encode())
        await mirror.synced()
    folder = at.folder("two")
    real = remote.bucket.get_with_etag

    async def breaks(key: str) -> Any:
        if key == "log/00000003.jsonl":
            raise StorageUnavailableError(key, "cut off")
        return await real(key)

    monkeypatch.setattr(remote.bucket, "get_with_etag", breaks)
    with pytest.raises(StorageUnavailableError):
        await restore(remote, folder)
    assert not (folder / "timeline.jsonl").exists()
    assert len(files_of(folder)) == 3, "only the blobs, to be kept for the next time"
    monkeypatch.undo()
    report = await restore(remote, folder)
    assert report.blobs == 0
    assert (folder / "timeline.jsonl").read_bytes() == here.log
    assert sorted(path.name for path in folder.iterdir()) == ["blobs", "lock", "timeline.jsonl"]


async def test_a_disk_without_room(at: Machines, remote: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    here = at("one")
    here.artifact(b"x" * 100)
    await mirrored(here)
    usage = type("Usage", (), {"free": 300})()
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage)
    with pytest.raises(StorageError, match=r"needs [0-9]{3} bytes and 300 are free"):
        await restore(remote, at.folder("two"))
    assert files_of(at.folder("two")) == set()


async def test_a_file_in_the_folders_place(tmp_path: Path, at: Machines, remote: Remote) -> None:
    await mirrored(at("one"))
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(TimelineError):
        await restore(remote, tmp_path / "file")


async def test_a_link_in_the_logs_place_is_not_followed(tmp_path: Path, at: Machines, remote: Remote) -> None:
    await mirrored(at("one"))
    folder = at.folder("two")
    folder.mkdir(parents=True)
    (tmp_path / "precious").write_bytes(LINE)
    (folder / "timeline.jsonl").symlink_to(tmp_path / "precious")
    with pytest.raises(TimelineError):
        await restore(remote, folder)
    assert (tmp_path / "precious").read_bytes() == LINE


async def test_a_blob_with_other_bytes_is_not_kept(at: Machines, remote: Remote) -> None:
    here = at("one")
    good, bad, gone = here.artifact(b"good"), here.artifact(b"bad"), here.artifact(b"gone")
    await mirrored(here)
    await remote.bucket.put(f"blobs/{bad}", b"evil")
    await remote.bucket.delete(f"blobs/{gone}")
    folder = at.folder("two")
    report = await restore(remote, folder)
    assert report.damaged == (bad,)
    assert report.missing == tuple(sorted((bad, gone)))
    assert files_of(folder) == {"timeline.jsonl", f"blobs/{good}"}


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("log/1.jsonl", "no name of a piece of a log"),
        ("log/00000000.jsonl", "no name of a piece of a log"),
        ("log/00000002.jsonl.bak", "no name of a piece of a log"),
        ("log/0000000\uff12.jsonl", "no name of a piece of a log"),
        ("log/sub/00000002.jsonl", "no name of a piece of a log"),
        ("log/00000003.jsonl", "gap: log/00000002"),
        ("blobs/" + "A" * 64, "no name of a blob"),
        ("blobs/" + "a" * 63, "no name of a blob"),
        (f"blobs/{DIGEST}/x", "no name of a blob"),
        ("blobs/x/../../../.ssh/authorized_keys", "no name of a blob"),
        ("blobs/.bashrc", "no name of a blob"),
        ("blobs/" + "x" * 800, "no name of a blob"),
    ],
)
async def test_names_that_conjure_never_writes(tmp_path: Path, key: str, told: str) -> None:
    entries = [("log/00000001.jsonl", len(LINE), ""), (key, 5, "")]
    with pytest.raises(StorageError, match=told) as caught:
        read_listing("s3://b/s1", entries)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("key", ["log/2.jsonl", "log/00000003.jsonl", "blobs/x", "blobs/.ssh/id_rsa"])
async def test_hostile_names_bring_nothing(at: Machines, remote: Remote, key: str) -> None:
    here = at("one")
    here.artifact(b"one")
    await mirrored(here)
    await remote.bucket.put(key, b"evil\n")
    with pytest.raises(StorageError):
        await restore(remote, at.folder("two"))
    assert not at.folder("two").exists()


@pytest.mark.parametrize("size", [-1, 0, MAX_LINE + 1, 2**63])
def test_sizes_that_no_piece_has(size: int) -> None:
    with pytest.raises(StorageError, match="which no piece of a log has"):
        read_listing("s3://b/s1", [("log/00000001.jsonl", size, "")])


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (LINE + b"{", "ends within a line"),
        (b"\n\n\n", "no block of a session"),
        (b"<html>404</html>\n", "no block of a session"),
        (b"\0" * 100 + b"\n", "no block of a session"),
        (LINE + b"x" * 3000 + b"\n", "has a line of 3,001 bytes"),
    ],
)
async def test_pieces_that_conjure_never_writes(
    tmp_path: Path, remote: Remote, monkeypatch: pytest.MonkeyPatch, content: bytes, told: str
) -> None:
    monkeypatch.setattr("conjure_jupyter.timeline.remote.pieces.MAX_LINE", 3000)
    await remote.bucket.put("log/00000001.jsonl", content)
    with pytest.raises(StorageError, match=told):
        await restore(remote, tmp_path / "s1")
    assert files_of(tmp_path / "s1") == set()


async def test_bad_lines_in_the_middle_travel_as_they_are(tmp_path: Path, remote: Remote) -> None:
    notice = encode(Block(2, 0, "notice", {}, "2026-01-01T00:00:00Z"))
    content = LINE + b"\xff damaged\n" + b"[" * 100_000 + b"\n" + notice
    await remote.bucket.put("log/00000001.jsonl", content)
    report = await restore(remote, tmp_path / "s1")
    assert report.lines == 4
    assert (tmp_path / "s1" / "timeline.jsonl").read_bytes() == content
    assert [block.seq for block in Timeline.open(tmp_path / "s1", readonly=True).blocks] == [0, 2]


@pytest.mark.parametrize(
    "manifest",
    [
        b"",
        b"[]",
        b"[" * 200_000,
        b'{"a": 1, "b": [], "c": [null], "d": ["../../etc/passwd", 0, 0], "e": [["x"]]}',
    ],
)
async def test_a_strange_list_of_files(at: Machines, remote: Remote, manifest: bytes) -> None:
    here = at("one")
    digest = here.blob(manifest)
    here.timeline.append("snapshot", {"manifest": digest})
    for strange in (7, None, "../x", "AB" * 32, ["a"], DIGEST + "\n"):
        here.timeline.append("artifact", {"sha256": strange, "kept": True})
        here.timeline.append("snapshot", {"manifest": strange})
    await mirrored(here)
    report = await restore(remote, at.folder("two"))
    assert (report.blobs, report.missing) == (1, ())


names = st.text(st.characters(codec="utf-8"), max_size=40)
keys = st.one_of(
    names,
    names.map("log/".__add__),
    names.map("blobs/".__add__),
    st.integers(0, 6).map("log/{:08d}.jsonl".format),
    st.from_regex(r"blobs/[0-9a-f]{64}", fullmatch=True),
)


@given(st.lists(st.tuples(keys, st.integers(-5, MAX_LINE + 5), names), max_size=12))
def test_any_listing_is_read_or_refused(entries: list[tuple[str, int, str]]) -> None:
    try:
        listing = read_listing("s3://b/s1", entries)
    except StorageError:
        return
    assert [segment.number for segment in listing.segments] == list(range(1, len(listing.segments) + 1))
    assert all(0 < segment.size <= MAX_LINE for segment in listing.segments)
    assert all(len(digest) == 64 and digest.isalnum() and digest.isascii() for digest in listing.blobs)


async def test_random_bytes_there_never_leave_the_folder(
    tmp_path: Path, at: Machines, remote: Remote
) -> None:
    chance = random.Random(20_261_121)
    here = at("one")
    mirror = await mirrored(here)
    for text in ("a", "b"):
        here.artifact(text.encode())
        await mirror.synced()
    whole = {item.key: await remote.bucket.get(item.key) for item in await remote.bucket.list()}
    refused = 0
    for attempt in range(60):
        key = chance.choice([name for name in whole if name != "lease.json"])
        data = bytearray(whole[key])
        for _ in range(chance.randint(1, 5)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        if chance.random() < 0.3:
            del data[chance.randrange(len(data)) :]
        await remote.bucket.put(key, bytes(data))
        folder = tmp_path / "tries" / str(attempt)
        try:
            report = await restore(remote, folder)
        except StorageError:
            refused += 1
            assert not (folder / "timeline.jsonl").exists()
        else:
            assert (folder / "timeline.jsonl").read_bytes() == await remote_log(remote)
            assert (len(report.damaged) == 1) == (key.startswith("blobs/") and bytes(data) != whole[key])
        await remote.bucket.put(key, whole[key])
    assert 0 < refused < 60
    assert sorted(await asyncio.to_thread(os.listdir, tmp_path)) == ["one", "tries"]
