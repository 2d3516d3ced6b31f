"""``kill -9`` at 200 random points: nothing acknowledged is lost, every session goes on."""

from __future__ import annotations

import random
from pathlib import Path

from conjure_jupyter.timeline import Timeline, read_session, repair

from .builders import project, prompt
from .crash import CrashServer
from .rules import assert_accepted
from .writer import mark

SESSIONS = 40
KILLS_EACH = 5


def test_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    chance = random.Random(20_261_121)
    kept_bytes = 0
    with CrashServer(preload=["tests.timeline.writer"]) as server:
        for session in range(SESSIONS):
            folder = tmp_path / f"s{session}"
            acknowledged: list[str] = []
            before = b""
            for kill in range(KILLS_EACH):
                victim = server.start("tests.timeline.writer:work", str(folder), f"{session}_{kill}")
                victim.wait_for(chance.choice([0, 1, 1, 2, 3, 5, 8, 13, 21, 34]))
                acknowledged += victim.kill(after=chance.choice([0, 1, 1]) * chance.random() * 0.002)
                path = folder / "timeline.jsonl"
                if not path.exists() or not path.stat().st_size:
                    assert acknowledged == []  # killed before there was a session
                    continue
                raw = path.read_bytes()
                assert raw.startswith(before)
                before = raw[: raw.rfind(b"\n") + 1]
                kept_bytes = max(kept_bytes, len(raw))
                reader = Timeline.open(folder, readonly=True)
                assert [problem for problem in reader.problems if "last line" not in problem] == []
                written = [mark(block) for block in reader.blocks]
                assert written[: len(acknowledged)] == acknowledged
                assert len(written) <= len(acknowledged) + 1  # at most the block that was being written
                acknowledged = written
                assert_accepted(project(reader.blocks).messages)
            _goes_on(folder)
    assert kept_bytes > 300_000, "no kill came late enough to count"


def _goes_on(folder: Path) -> None:
    timeline = Timeline.open(folder)
    blocks = len(timeline.blocks)
    repair(timeline)
    turn = timeline.begin_turn()
    timeline.append("user", prompt("and now?"))
    timeline.close()
    again = Timeline.open(folder, readonly=True)
    projection = project(again.blocks)

    assert again.problems == []
    assert again.blocks[:blocks] == timeline.blocks[:blocks]
    assert projection.pending_calls() == []
    assert_accepted(projection.messages)
    assert projection.messages[-1]["content"][-1]["text"] == "and now?"
    assert read_session(folder).turns == turn
