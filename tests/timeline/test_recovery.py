"""Logs as power losses, editors, copies and bad disks leave them."""

from __future__ import annotations

import base64
import json
import stat
import tempfile
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conjure_jupyter.errors import SessionNotFoundError, TimelineError
from conjure_jupyter.timeline import Timeline, line, read_session, recovery, repair
from conjure_jupyter.types import Block

from .builders import project, whole_turn
from .rules import assert_accepted


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A log of three turns, closed."""
    return sample(tmp_path / "s1")


def sample(folder: Path) -> Path:
    timeline = Timeline.create(folder, {})
    for value in ("one", "two", "three"):
        whole_turn(timeline, value, [f"{value}-a", f"{value}-b"])
    timeline.close()
    return timeline.path


def raw_lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def kept_aside(path: Path) -> list[bytes]:
    file = path.with_name("timeline.damaged")
    records = [json.loads(line) for line in file.read_bytes().splitlines()] if file.exists() else []
    return [base64.b64decode(record["base64"]) + b"\0" * record["nul"] for record in records]


def reopened(path: Path) -> Timeline:
    """The log as a writer finds it; closed again."""
    timeline = Timeline.open(path.parent)
    timeline.close()
    return timeline


def made(seq: int, **changes: Any) -> bytes:
    """A good line."""
    block = Block(
        seq, changes.pop("turn", 3), changes.pop("kind", "notice"), {"text": "x"}, "2026-11-21T00:00:00+00:00"
    )
    return line.encode(block)


def changed(raw: bytes, **changes: Any) -> bytes:
    """A line with other keys and a checksum that fits."""
    record = {**json.loads(raw), **changes}
    record.pop("crc")
    body = json.dumps(record, separators=(",", ":"))[:-1].encode()
    return b'%b,"crc":"%08x"}\n' % (body, zlib.crc32(body))


@pytest.mark.parametrize("cut", [1, 2, 19, 20, 100])
def test_a_torn_last_line_is_kept_aside_and_everything_before_it_stands(path: Path, cut: int) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    blocks = Timeline.open(path.parent, readonly=True).blocks
    timeline = reopened(path)
    last = raw_lines(path)[-1]

    assert timeline.blocks == blocks
    if cut == 1:  # only the line end is missing: the block is whole
        assert path.read_bytes() == whole
        assert timeline.problems == []
        return
    torn = whole.splitlines(keepends=True)[-1][:-cut]
    assert timeline.problems == [f"the last line was not written to its end ({len(torn)} bytes)"]
    assert kept_aside(path) == [torn]
    assert whole == path.read_bytes() + torn + whole[-cut:]
    assert last.endswith(b"\n")
    assert reopened(path).problems == []


def test_what_is_kept_aside_is_private_and_survives_a_second_crash(path: Path) -> None:
    whole = path.read_bytes()
    for tail in (b'{"v":1,"a', b'{"v":1,"b', b'{"v":1,"b'):
        path.write_bytes(whole + tail)
        reopened(path)
    aside = path.with_name("timeline.damaged")
    aside.write_bytes(aside.read_bytes()[:-5])  # a crash while it was written
    path.write_bytes(whole + b'{"v":1,"b')
    reopened(path)

    assert stat.S_IMODE(aside.stat().st_mode) == 0o600
    records = [row for row in aside.read_bytes().splitlines() if row.endswith(b"}")]
    assert [base64.b64decode(json.loads(row)["base64"]) for row in records] == [b'{"v":1,"a', b'{"v":1,"b']


def test_a_torn_end_that_cannot_be_kept_is_not_cut(path: Path) -> None:
    whole = path.read_bytes() + b'{"v":1,"se'
    path.write_bytes(whole)
    path.with_name("timeline.damaged").mkdir()
    with pytest.raises(TimelineError):
        Timeline.open(path.parent)

    assert path.read_bytes() == whole
    assert len(Timeline.open(path.parent, readonly=True).blocks) == len(whole.splitlines()) - 1


BAD: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "flipped": (lambda raw: raw.replace(b'"kind"', b'"kinb"'), "checksum"),
    "shortened": (lambda raw: raw[:40] + b"\n", "not whole"),
    "no checksum": (lambda raw: raw.partition(b',"crc"')[0] + b"}\n", "no checksum"),
    "junk": (lambda raw: b"hello\n", "not whole"),
    "bytes": (lambda raw: b"\xff\xfe\x00\x01\n", "not whole"),
    "a list": (lambda raw: b"[]\n", "not an object"),
    "deep": (lambda raw: b"[" * 100_000 + b"\n", "not whole"),
    "wrong seq": (lambda raw: changed(raw, seq=-1), "no block"),
    "wrong turn": (lambda raw: changed(raw, turn=True), "no block"),
    "wrong kind": (lambda raw: changed(raw, kind=None), "no block"),
    "wrong data": (lambda raw: changed(raw, data=[]), "no block"),
    "huge number": (lambda raw: b'{"v":1,"seq":' + b"9" * 10_000 + b"}\n", "not whole"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_line_in_the_middle_is_passed_over_told_and_kept_aside(path: Path, case: str) -> None:
    damage, reason = BAD[case]
    rows = raw_lines(path)
    bad = damage(rows[5])
    damaged = b"".join([*rows[:5], bad, *rows[6:]])
    path.write_bytes(damaged)
    timeline = Timeline.open(path.parent)
    timeline.append("notice", {})
    timeline.close()

    assert timeline.problems == [f"line 6 cannot be read ({timeline.problems[0].partition('(')[2]}"]
    assert reason in timeline.problems[0]
    assert [block.seq for block in timeline.blocks] == [*range(5), *range(6, len(rows)), len(rows)]
    assert path.read_bytes().startswith(damaged), "a log is never rewritten"
    assert kept_aside(path) == [bad]
    reopened(path)
    assert kept_aside(path) == [bad], "what is kept is kept once"
    repair(timeline := Timeline.open(path.parent))
    timeline.close()
    assert_accepted(project(timeline.blocks).messages)


def test_a_bad_last_line_keeps_its_place_and_its_turn(path: Path) -> None:
    rows = raw_lines(path)
    lost = made(len(rows), turn=4).replace(b"notice", b"nitoce")
    path.write_bytes(b"".join(rows) + lost)
    timeline = Timeline.open(path.parent)

    assert timeline.begin_turn() == 5
    assert timeline.append("notice", {}).seq == len(rows) + 1
    timeline.close()
    assert len(reopened(path).problems) == 1


def test_a_garbled_turn_number_does_not_count(path: Path) -> None:
    path.write_bytes(path.read_bytes() + made(30, turn=900_000).replace(b"notice", b"nitoce"))

    assert reopened(path).turn == 4


def test_many_problems_are_counted(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"junk\n" * 1000)
    timeline = reopened(path)

    assert len(timeline.problems) == recovery.TOLD + 1
    assert timeline.problems[-1] == f"{1000 - recovery.TOLD} more problems of this kind"


@pytest.mark.parametrize(
    ("order", "problems"),
    [
        ([0, 1, 2, 4, 5], ["1 block(s) are missing before line 4"]),
        ([0, 1, 5], ["3 block(s) are missing before line 3"]),
        ([0, 1, 1, 2], ["line 3 repeats block 1; it is passed over"]),
        ([0, 2, 1, 3], ["1 block(s) are missing before line 2", "line 3 is out of order (block 1)"]),
        ([1, 2], ["1 block(s) are missing before line 1"]),
    ],
)
def test_gaps_and_repetitions_are_told(path: Path, order: list[int], problems: list[str]) -> None:
    rows = raw_lines(path)
    path.write_bytes(b"".join(rows[i] for i in order))
    timeline = reopened(path)

    assert timeline.problems == problems
    assert [block.seq for block in timeline.blocks] == list(dict.fromkeys(order))


def test_two_writers_positions_are_both_kept_and_told(path: Path) -> None:
    rows = raw_lines(path)
    path.write_bytes(b"".join(rows) + made(3, kind="other"))
    timeline = reopened(path)

    assert timeline.problems == [f"line {len(rows) + 1} is out of order (block 3)"]
    assert timeline.blocks[-1].kind == "other"


@pytest.mark.parametrize("size", [1, 4096, 3_000_000])
def test_nul_bytes_of_a_power_loss_are_cut(path: Path, size: int) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole + b"\0" * size)
    timeline = Timeline.open(path.parent)
    timeline.append("notice", {})
    timeline.close()

    assert timeline.problems == [f"the last line was not written to its end ({size} bytes)"]
    assert path.read_bytes()[: len(whole) + 1] == whole + b"{"
    assert b"".join(kept_aside(path)) == b"\0" * size
    assert path.with_name("timeline.damaged").stat().st_size < 2000


@pytest.mark.parametrize("padding", [b"\0" * 10 + b"%b", b"%b" + b"\0" * 10])
def test_a_good_line_among_nul_bytes_is_found(path: Path, padding: bytes) -> None:
    rows = raw_lines(path)
    path.write_bytes(b"".join(rows[:-1]) + padding % rows[-1].rstrip(b"\n"))
    for _ in range(2):
        timeline = reopened(path)
        assert timeline.problems == []
        assert len(timeline.blocks) == len(rows)


def test_blank_lines_bom_and_crlf_do_no_harm(path: Path) -> None:
    rows = raw_lines(path)
    path.write_bytes(b"\xef\xbb\xbf" + b"".join(row.replace(b"\n", b"\r\n") for row in rows) + b"\r\n\n")
    timeline = Timeline.open(path.parent)
    timeline.append("notice", {})
    timeline.close()

    assert timeline.problems == []
    assert len(reopened(path).blocks) == len(rows) + 1


def test_another_encoding_is_all_damage(path: Path) -> None:
    path.write_text(path.read_text(), encoding="utf-16")
    before = path.read_bytes()
    timeline = reopened(path)

    assert list(timeline.blocks) == []
    assert "no block could be read" in timeline.problems[-1] or len(timeline.problems) > recovery.TOLD
    assert before.startswith(path.read_bytes())


def test_an_empty_log_is_no_session_and_can_be_begun(tmp_path: Path) -> None:
    folder = tmp_path / "s1"
    folder.mkdir()
    (folder / "timeline.jsonl").touch()
    for readonly in (True, False):
        with pytest.raises(SessionNotFoundError):
            Timeline.open(folder, readonly=readonly)

    Timeline.create(folder, {}).close()
    assert len(reopened(folder / "timeline.jsonl").blocks) == 1


NEWER: dict[str, Callable[[bytes], bytes]] = {
    "same shape": lambda raw: changed(raw, v=2),
    "another shape": lambda raw: b'{"v":3,"block":["packed"]}\n',
    "another order": lambda raw: b'{"crc":"none","v":2,"seq":5,"turn":1,"kind":"x","time":"t","data":{}}\n',
}


@pytest.mark.parametrize("case", NEWER)
def test_a_later_format_can_be_read_but_not_written(path: Path, case: str) -> None:
    rows = raw_lines(path)
    path.write_bytes(b"".join([*rows[:5], NEWER[case](rows[5]), *rows[6:]]))
    before = path.read_bytes() + b'{"v":2,"torn'
    path.write_bytes(before)
    reader = Timeline.open(path.parent, readonly=True)

    assert [block.seq for block in reader.blocks[:5]] == [0, 1, 2, 3, 4]
    assert len(reader.blocks) >= len(rows) - 1
    assert "later version" in reader.problems[-1]
    with pytest.raises(TimelineError, match=r"later version of Conjure .* update conjure-jupyter"):
        Timeline.open(path.parent)
    assert path.read_bytes() == before
    assert {entry.name for entry in path.parent.iterdir()} == {"lock", "timeline.jsonl"}


def test_a_session_of_a_later_format_cannot_be_written(tmp_path: Path) -> None:
    Timeline.create(tmp_path / "s1", {"format": 2}).close()

    with pytest.raises(TimelineError, match="format 2, this one writes 1"):
        Timeline.open(tmp_path / "s1")


def test_a_flipped_bit_in_the_version_is_damage_not_a_later_format(path: Path) -> None:
    rows = raw_lines(path)
    path.write_bytes(b"".join([*rows[:5], rows[5].replace(b'"v":1', b'"v":3'), *rows[6:]]))

    assert "checksum" in reopened(path).problems[0]


def test_unknown_kinds_and_keys_are_kept(path: Path) -> None:
    rows = raw_lines(path)
    extra = changed(
        made(len(rows), kind="artifact.v9"), data={"new": [1, {"deep": None}]}, meta={"hidden": True}
    )
    path.write_bytes(b"".join(rows) + extra)
    timeline = reopened(path)

    assert timeline.problems == []
    assert timeline.blocks[-1].kind == "artifact.v9"
    assert timeline.blocks[-1].data == {"new": [1, {"deep": None}]}
    assert raw_lines(path)[-1] == extra


@pytest.mark.parametrize("ended", [True, False])
def test_an_endless_line_takes_no_memory(path: Path, monkeypatch: pytest.MonkeyPatch, ended: bool) -> None:
    monkeypatch.setattr(recovery, "MAX_LINE", 1 << 20)
    monkeypatch.setattr(recovery, "PIECE", 1 << 16)
    rows = raw_lines(path)
    size = 96 << 20
    with path.open("r+b") as file:  # sparse where the file system can: it is the reading that counts
        file.seek(len(b"".join(rows)))
        file.write(b"x")
        file.seek(size)
        file.write(b"x\n" if ended else b"x")
        if ended:
            file.write(made(len(rows) + 1))
    tracemalloc.start()
    reader = Timeline.open(path.parent, readonly=True)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 16 << 20
    assert len(reader.blocks) == len(rows) + ended
    writer = Timeline.open(path.parent)
    block = writer.append("notice", {"text": "after"})
    writer.close()
    assert path.stat().st_size > size
    assert kept_aside(path) == []
    assert Timeline.open(path.parent, readonly=True).blocks[-1] == block
    assert read_session(path.parent).turns == 3


ORIGINAL: list[bytes] = []


def original() -> bytes:
    if not ORIGINAL:
        with tempfile.TemporaryDirectory() as home:
            ORIGINAL.append(sample(Path(home) / "s1").read_bytes())
    return ORIGINAL[0]


DAMAGE = st.tuples(
    st.sampled_from(["cut", "flip", "overwrite", "insert", "remove"]),
    st.floats(0, 1, exclude_max=True),
    st.binary(min_size=1, max_size=300) | st.sampled_from([b"\n", b"\0" * 50, b"}\n{", b'"', b"\r\n"]),
)


def spoil(data: bytes, kind: str, where: float, junk: bytes) -> tuple[bytes, int]:
    """Damaged bytes, and how many at the start are untouched."""
    at = int(where * len(data))
    if kind == "cut":
        return data[:at], at
    if kind == "flip":
        return data[:at] + bytes([data[at] ^ (junk[0] or 1)]) + data[at + 1 :], at
    if kind == "overwrite":
        return data[:at] + junk + data[at + len(junk) :], at
    if kind == "insert":
        return data[:at] + junk + data[at:], at
    return data[:at] + data[at + len(junk) :], at


@given(st.lists(DAMAGE, min_size=1, max_size=3))
@settings(max_examples=200, deadline=None)
def test_whatever_happens_to_the_bytes(damage: list[tuple[str, float, bytes]]) -> None:
    whole = data = original()
    untouched = len(whole)
    for kind, where, junk in damage:
        if data:
            data, at = spoil(data, kind, where, junk)
            untouched = min(untouched, at)
    if not data:
        return
    safe = whole[:untouched].count(b"\n")
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "s1"
        folder.mkdir()
        path = folder / "timeline.jsonl"
        path.write_bytes(data)
        reader = Timeline.open(folder, readonly=True)
        assert path.read_bytes() == data
        writer = Timeline.open(folder)
        repair(writer)
        writer.begin_turn()
        last = writer.append("user", {"content": "on"})
        writer.close()

        written = path.read_bytes()
        torn = data[data.rfind(b"\n") + 1 :]
        assert written.startswith(data.removesuffix(torn)), "only a torn end may go"
        assert written.startswith(data) or torn in b"".join(kept_aside(path))
        assert [block.seq for block in reader.blocks[:safe]] == list(range(safe))
        assert writer.blocks[: len(reader.blocks)] == reader.blocks
        assert last.seq == max(block.seq for block in writer.blocks)
        assert last.turn > max((block.turn for block in reader.blocks), default=0)
        again = Timeline.open(folder, readonly=True)
        assert again.blocks == writer.blocks
        assert_accepted(project(again.blocks).messages)
        read_session(folder)
        assert path.stat().st_mode & 0o077 == 0
