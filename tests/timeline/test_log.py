"""The log's file: who may write it, what stands in it, and what happens when it cannot be written."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import stat
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conjure_jupyter.errors import SessionClosedError, SessionLockedError, SessionNotFoundError, TimelineError
from conjure_jupyter.timeline import Timeline, log

from .builders import whole_turn


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "sessions" / "s1"


@pytest.fixture(params=[0o000, 0o022, 0o777], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    old = os.umask(request.param)
    yield
    os.umask(old)


@pytest.mark.usefixtures("umask")
def test_nobody_else_can_read_a_session(tmp_path: Path) -> None:
    folder = tmp_path / "s1"
    Timeline.create(folder, {}).close()

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for name in ("timeline.jsonl", "lock"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600


def test_opening_takes_others_rights_away_again(folder: Path) -> None:
    Timeline.create(folder, {}).close()
    folder.chmod(0o755)
    (folder / "timeline.jsonl").chmod(0o644)
    Timeline.open(folder).close()

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "timeline.jsonl").stat().st_mode) == 0o600


def test_a_line_can_be_read_and_checked_by_any_tool(folder: Path) -> None:
    timeline = Timeline.create(folder, {})
    timeline.append("notice", {"text": 'Grüße "x"\n\u2028', "lone": "\ud800", "inf": float("inf")}, turn=3)
    timeline.close()
    raw = (folder / "timeline.jsonl").read_bytes().splitlines(keepends=True)[1]
    record = json.loads(raw)

    assert list(record) == ["v", "seq", "turn", "kind", "time", "data", "crc"]
    assert (record["v"], record["seq"], record["turn"], record["kind"]) == (1, 1, 3, "notice")
    assert int(record["crc"], 16) == zlib.crc32(raw.partition(b',"crc"')[0])
    assert Timeline.open(folder, readonly=True).blocks == timeline.blocks


def test_text_stands_as_it_is(folder: Path) -> None:
    timeline = Timeline.create(folder, {})
    timeline.append("notice", {"text": "Grüße 你好"})
    timeline.close()

    assert "Grüße 你好".encode() in (folder / "timeline.jsonl").read_bytes()


def test_a_block_is_in_the_file_when_append_returns(folder: Path) -> None:
    timeline = Timeline.create(folder, {})
    for i in range(3):
        timeline.append("notice", {"i": i})
        assert len(Timeline.open(folder, readonly=True).blocks) == i + 2
    timeline.close()


def test_a_session_goes_on_where_it_was(folder: Path) -> None:
    timeline = Timeline.create(folder, {})
    whole_turn(timeline, "one", ["a"])
    timeline.close()
    before = timeline.path.read_bytes()
    again = Timeline.open(folder)
    whole_turn(again, "two")
    again.close()

    assert timeline.path.read_bytes().startswith(before)
    assert [block.seq for block in again.blocks] == list(range(len(again.blocks)))
    assert again.turn == 2
    assert again.problems == []


def test_a_relative_folder_stays_the_same_when_the_working_directory_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    timeline = Timeline.create(Path("s1"), {})
    monkeypatch.chdir("/")
    timeline.append("notice", {})

    assert timeline.sync()
    assert timeline.folder == tmp_path / "s1"
    timeline.close()


def test_one_writer(folder: Path) -> None:
    timeline = Timeline.create(folder, {})
    with pytest.raises(
        SessionLockedError, match=rf"process {os.getpid()} of this kernel on .* since 20"
    ) as caught:
        Timeline.open(folder)
    assert caught.value.session_id == "s1"
    assert len(Timeline.open(folder, readonly=True).blocks) == 1
    timeline.close()
    Timeline.open(folder).close()


def test_one_writer_among_processes_and_none_once_it_is_gone(folder: Path) -> None:
    script = (
        "import sys, pathlib; from conjure_jupyter.timeline import Timeline\n"
        "t = Timeline.create(pathlib.Path(sys.argv[1]), {}); print('made', flush=True); sys.stdin.read()"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "made\n"
    with pytest.raises(SessionLockedError, match=f"process {child.pid} on "):
        Timeline.open(folder)
    child.kill()
    child.communicate()

    Timeline.open(folder).close()


@pytest.mark.parametrize("content", [b"", b"junk", b"[]", b'{"pid": "x"}', b"\xff" * 5000])
def test_what_a_lock_file_says_does_not_matter(folder: Path, content: bytes) -> None:
    Timeline.create(folder, {}).close()
    (folder / "lock").write_bytes(content)
    timeline = Timeline.open(folder)
    (folder / "lock").write_bytes(content)

    with pytest.raises(SessionLockedError, match="in use by another process"):
        Timeline.open(folder)
    timeline.close()


def test_a_file_system_without_locks_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(fd: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", flock)
    timeline = Timeline.create(folder, {})

    assert "no locks" in timeline.problems[0]
    assert timeline.append("notice", {}).seq == 1
    timeline.close()


def test_a_forked_child_writes_nothing_and_keeps_no_lock(folder: Path) -> None:
    timeline = Timeline.create(folder, {})
    read, write = os.pipe()
    gate_read, gate_write = os.pipe()
    child = os.fork()
    if child == 0:  # only os.* from here on: this is a copy of the test run
        try:
            timeline.append("notice", {"text": "from the child"})
            os.write(write, b"written")
        except SessionClosedError:
            os.write(write, b"refused")
        os.read(gate_read, 1)
        os._exit(0)
    said = os.read(read, 100)
    timeline.append("notice", {"text": "from the parent"})
    timeline.close()
    again = Timeline.open(folder)
    again.close()
    os.write(gate_write, b".")
    os.waitpid(child, 0)
    for fd in (read, write, gate_read, gate_write):
        os.close(fd)

    assert said == b"refused"
    assert [block.data.get("text") for block in again.blocks[1:]] == ["from the parent"]


def test_a_session_is_made_once(folder: Path) -> None:
    timeline = Timeline.create(folder, {"notebook": "first"})
    with pytest.raises(SessionLockedError):
        Timeline.create(folder, {})
    timeline.close()
    with pytest.raises(TimelineError, match="already"):
        Timeline.create(folder, {"notebook": "second"})

    assert Timeline.open(folder, readonly=True).blocks[0].data["notebook"] == "first"


def test_what_cannot_be_opened(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(SessionNotFoundError):
        Timeline.open(folder)
    folder.mkdir(parents=True)
    with pytest.raises(SessionNotFoundError):
        Timeline.open(folder)
    assert list(folder.iterdir()) == []

    target = tmp_path / "mine"
    target.write_text("precious")
    (folder / "timeline.jsonl").symlink_to(target)
    for readonly in (True, False):
        with pytest.raises(TimelineError, match="link"):
            Timeline.open(folder, readonly=readonly)
    assert target.read_text() == "precious"

    (folder / "timeline.jsonl").unlink()
    os.mkfifo(folder / "timeline.jsonl")
    with pytest.raises(TimelineError, match="not a file"):
        Timeline.open(folder)
    with pytest.raises(TimelineError, match="cannot be made"):
        Timeline.create(target / "below a file", {})


def test_reading_changes_nothing(folder: Path) -> None:
    Timeline.create(folder, {}).close()
    path = folder / "timeline.jsonl"
    torn = path.read_bytes() + b'{"v":1,"se'
    path.write_bytes(torn)
    (folder / "lock").unlink()
    folder.chmod(0o755)
    reader = Timeline.open(folder, readonly=True)

    assert reader.readonly
    assert len(reader.problems) == 1
    for refused in (lambda: reader.append("notice", {}), reader.sync):
        with pytest.raises(TimelineError, match="read-only"):
            refused()
    with pytest.raises(TimelineError, match="read-only"):
        asyncio.run(reader.synced())
    assert path.read_bytes() == torn
    assert [entry.name for entry in folder.iterdir()] == ["timeline.jsonl"]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755


def test_a_block_too_large_to_be_read_again_is_not_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "MAX_LINE", 2 << 20)
    timeline = Timeline.create(folder, {})
    size = timeline.path.stat().st_size
    with pytest.raises(TimelineError, match="3 MiB is larger than the log takes"):
        timeline.append("user", {"text": "x" * (3 << 20)})

    assert timeline.path.stat().st_size == size
    assert timeline.append("user", {"text": "x" * (1 << 20)}).seq == 1
    timeline.close()


class Disk:
    """Stands before ``os.write``: takes ``room`` bytes in all, then fails."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
        self.room: int | None = None
        self.cuts = True
        self._code = code
        self._write, self._truncate = os.write, os.ftruncate
        monkeypatch.setattr(os, "write", self.write)
        monkeypatch.setattr(os, "ftruncate", self.truncate)

    def write(self, fd: int, data: Any) -> int:
        if self.room is None:
            return self._write(fd, data)
        if self.room == 0:
            raise OSError(self._code, os.strerror(self._code))
        written = self._write(fd, memoryview(data)[: self.room])
        self.room -= written
        return written

    def truncate(self, fd: int, size: int) -> None:
        if not self.cuts:
            raise OSError(errno.EIO, "Input/output error")
        self._truncate(fd, size)


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (errno.ENOSPC, "free some space"),
        (errno.EDQUOT, "quota"),
        (errno.EIO, "disk failed"),
        (errno.EPIPE, "Broken pipe"),
    ],
)
@pytest.mark.parametrize("room", [0, 1, 50])
def test_a_write_that_fails_leaves_no_trace(
    folder: Path, monkeypatch: pytest.MonkeyPatch, room: int, code: int, advice: str
) -> None:
    timeline = Timeline.create(folder, {})
    before = timeline.path.read_bytes()
    disk = Disk(monkeypatch, code)
    disk.room = room
    for _ in range(2):
        with pytest.raises(TimelineError, match=advice):
            timeline.append("notice", {"text": "lost"})
        assert timeline.path.read_bytes() == before
        disk.room = room
    disk.room = None

    assert timeline.append("notice", {"text": "kept"}).seq == 1
    timeline.close()
    again = Timeline.open(folder)
    assert [block.data.get("text") for block in again.blocks] == [None, "kept"]
    assert again.problems == []
    again.close()


def test_torn_bytes_that_cannot_be_cut_at_once_are_cut_before_the_next_block(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timeline = Timeline.create(folder, {})
    disk = Disk(monkeypatch, errno.ENOSPC)
    disk.room, disk.cuts = 20, False
    with pytest.raises(TimelineError):
        timeline.append("notice", {"text": "lost"})
    disk.room = None
    with pytest.raises(TimelineError, match="disk failed"):
        timeline.append("notice", {"text": "lost as well"})
    disk.cuts = True
    timeline.append("notice", {"text": "kept"})
    timeline.close()

    again = Timeline.open(folder, readonly=True)
    assert [block.data.get("text") for block in again.blocks] == [None, "kept"]
    assert again.problems == []


def test_a_short_write_that_can_go_on_goes_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    timeline = Timeline.create(folder, {})
    whole = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: whole(fd, memoryview(data)[:7]))
    timeline.append("notice", {"text": "x" * 100})
    timeline.close()

    assert Timeline.open(folder, readonly=True).blocks == timeline.blocks


def test_a_session_that_cannot_be_begun_leaves_no_log(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch, errno.ENOSPC)
    disk.room = 10
    with pytest.raises(TimelineError, match="disk is full"):
        Timeline.create(folder, {})
    disk.room = None

    Timeline.create(folder, {}).close()
