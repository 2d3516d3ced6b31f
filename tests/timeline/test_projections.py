"""Turns, usage and cost from blocks."""

from __future__ import annotations

import pytest

from conjure_jupyter.timeline import MemoryTimeline, TurnsProjection, add_usage, follow
from conjure_jupyter.timeline.projections import prompt_text
from conjure_jupyter.types import Block

from .builders import answer, prompt, result, text, tool_use, turn_end, whole_turn


def test_a_turn_in_short() -> None:
    timeline, projection = MemoryTimeline(), TurnsProjection()
    end = follow(timeline, projection)
    timeline.begin_turn()
    timeline.append("user", prompt("Summarise\n  sales.csv"))
    timeline.append("assistant", answer(tool_use("a")))
    timeline.append("tool_result", result("a"))
    timeline.append("assistant", answer(text("done")))
    turn = projection.turns[1]

    assert (turn.prompt, turn.model) == ("Summarise sales.csv", "claude-sonnet-5-5")
    assert (turn.requests, turn.tool_calls) == (2, 1)
    assert turn.usage == {
        "input_tokens": 20,
        "output_tokens": 10,
        "cache_creation": {"ephemeral_5m_input_tokens": 6},
    }
    assert (turn.stop_reason, turn.duration, turn.cost) == (None, None, None)

    timeline.append("turn_end", turn_end(files=["outputs/x.png"]))
    assert (turn.stop_reason, turn.cost, turn.files) == ("end_turn", 0.01, ["outputs/x.png"])
    assert turn.usage == {"input_tokens": 7}
    assert turn.duration is not None
    end()
    whole_turn(timeline, "unheard")
    assert list(projection.turns) == [1]


def test_the_last_end_of_a_turn_speaks_for_the_whole_of_it() -> None:
    timeline, projection = MemoryTimeline(), TurnsProjection()
    follow(timeline, projection)
    timeline.begin_turn()
    timeline.append("user", prompt("go"))
    timeline.append("turn_end", turn_end("approval", cost=0.01))
    timeline.append("turn_end", turn_end("error", cost=0.03, error="no network"))

    turn = projection.turns[1]
    assert (turn.stop_reason, turn.cost, turn.error) == ("error", 0.03, "no network")
    assert projection.cost == 0.03


def test_what_undone_turns_cost_stays_counted() -> None:
    timeline, projection = MemoryTimeline(), TurnsProjection()
    follow(timeline, projection)
    for value in ("one", "two"):
        whole_turn(timeline, value)
    timeline.append("undo", {"before_turn": 2, "reason": "user"})
    whole_turn(timeline, "three")

    assert [turn.undone for turn in projection.turns.values()] == [False, True, False]
    assert projection.cost == pytest.approx(0.03)
    assert projection.usage == {"input_tokens": 21}


def test_an_unknown_cost_stays_unknown() -> None:
    timeline, projection = MemoryTimeline(), TurnsProjection()
    follow(timeline, projection)
    timeline.begin_turn()
    timeline.append("turn_end", turn_end(cost=None))

    assert projection.cost is None


def test_usage_adds_numbers_only() -> None:
    total: dict[str, object] = {"input_tokens": 1, "service_tier": "x", "odd": {"n": 1}}
    add_usage(total, {"input_tokens": 2, "service_tier": "standard", "new": {"n": 2}, "odd": 5, "flag": True})
    add_usage(total, {"new": {"n": 3}, "none": None})
    add_usage(total, None)

    assert total == {"input_tokens": 3, "service_tier": "x", "odd": {"n": 1}, "new": {"n": 5}}


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("plain  text", "plain text"),
        ([text("a"), {"type": "image"}, text("b\n")], "a b"),
        ([text("x" * 500)], "x" * 199 + "…"),
        (None, ""),
        ([{"type": "text", "text": 3}], ""),
    ],
)
def test_a_prompt_on_one_line(content: object, line: str) -> None:
    assert prompt_text(content) == line


def test_a_clock_that_goes_back_gives_no_negative_duration() -> None:
    projection = TurnsProjection()
    projection.feed(Block(0, 1, "user", prompt("x"), "2026-11-21T10:00:01.000+00:00"))
    projection.feed(Block(1, 1, "turn_end", turn_end(), "2026-11-21T10:00:00.000+00:00"))
    assert projection.turns[1].duration == 0.0

    projection.feed(Block(2, 1, "turn_end", turn_end(), "not a time"))
    assert projection.turns[1].duration is None
