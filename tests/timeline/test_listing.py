"""A session in a list, from whole, running and damaged logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from conjure_jupyter.errors import SessionNotFoundError, TimelineError
from conjure_jupyter.timeline import Timeline, read_session

from .builders import prompt, turn_end, whole_turn


def test_a_session_in_short(tmp_path: Path) -> None:
    timeline = Timeline.create(tmp_path / "s1", {"notebook": "sales.ipynb"})
    for value in ("Summarise\nsales.csv", "two"):
        whole_turn(timeline, value, ["a"])
    timeline.begin_turn()
    last = timeline.append("user", prompt("running"))
    info = read_session(tmp_path / "s1")
    timeline.close()

    assert (info.id, info.folder, info.notebook) == ("s1", tmp_path / "s1", "sales.ipynb")
    assert (info.turns, info.first_prompt) == (3, "Summarise sales.csv")
    assert info.created == timeline.blocks[0].data["created"]
    assert info.last_time == last.time
    assert info.cost == pytest.approx(0.02)
    assert info.size == timeline.path.stat().st_size


def test_a_turn_with_two_ends_is_counted_once(tmp_path: Path) -> None:
    timeline = Timeline.create(tmp_path / "s1", {})
    timeline.begin_turn()
    timeline.append("turn_end", turn_end("approval", cost=0.01))
    timeline.append("turn_end", turn_end(cost=0.02))
    timeline.close()

    assert read_session(tmp_path / "s1").cost == 0.02


def test_a_damaged_log_gives_what_it_still_says(tmp_path: Path) -> None:
    timeline = Timeline.create(tmp_path / "s1", {})
    whole_turn(timeline, "one")
    timeline.close()
    _, *rest = timeline.path.read_bytes().splitlines(keepends=True)
    timeline.path.write_bytes(b"junk\n" + b"".join(rest) + b'{"v":1,"torn')
    info = read_session(tmp_path / "s1")

    assert (info.created, info.turns, info.first_prompt, info.cost) == (None, 1, "one", 0.01)
    assert info.last_time == timeline.blocks[-1].time
    assert timeline.path.read_bytes().startswith(b"junk")


def test_what_is_no_session(tmp_path: Path) -> None:
    for make in (
        lambda folder: None,
        Path.touch,
        Path.mkdir,
        lambda folder: (folder / "timeline.jsonl").touch(),
    ):
        folder = tmp_path / "s1"
        make(folder)
        with pytest.raises(SessionNotFoundError):
            read_session(folder)
        if folder.is_file():
            folder.unlink()

    (folder / "timeline.jsonl").unlink()
    (folder / "timeline.jsonl").symlink_to("/etc/passwd")
    with pytest.raises(TimelineError, match="cannot be read"):
        read_session(folder)
