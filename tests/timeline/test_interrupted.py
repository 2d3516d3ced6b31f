"""What is appended after a crash, so that every call has a result and every turn an end."""

from __future__ import annotations

from typing import Any

import pytest

from conjure_jupyter.timeline import MemoryTimeline, repair
from conjure_jupyter.timeline.interrupted import NOT_STARTED, STARTED
from conjure_jupyter.types import Block

from .builders import answer, live, prompt, result, shape, text, tool_use, turn_end, whole_turn
from .rules import assert_accepted


def crashed(*blocks: tuple[str, dict[str, Any]]) -> MemoryTimeline:
    """A turn that broke off after these blocks."""
    timeline = MemoryTimeline()
    whole_turn(timeline, "before")
    timeline.begin_turn()
    for kind, data in blocks:
        timeline.append(kind, data)
    return timeline


def kinds(blocks: list[Block]) -> list[str]:
    return [block.kind for block in blocks]


CALLS = ("assistant", answer(tool_use("a"), tool_use("b"), tool_use("c")))
START_A = ("tool_call", {"id": "a", "name": "view", "decision": "allow"})
START_B = ("tool_call", {"id": "b", "name": "view", "decision": "deny"})
ASK = ("approval", {"calls": ["b", {"id": "c"}], "verdicts": None})
USER = ("user", prompt("go"))


def test_calls_get_a_result_that_says_whether_they_ran() -> None:
    timeline = crashed(USER, CALLS, START_A, START_B)
    new = repair(timeline)

    assert kinds(new) == ["tool_result", "tool_result", "tool_result", "turn_end"]
    assert [block.data["content"] for block in new[:3]] == [STARTED, NOT_STARTED, NOT_STARTED]
    assert all(block.data["is_error"] and block.turn == 2 for block in new[:3])
    assert new[3].data["reason"] == "interrupted"
    assert new[3].data["usage"]["input_tokens"] == 10
    assert repair(timeline) == []


def test_results_that_are_there_stay() -> None:
    timeline, projection = live()
    timeline.begin_turn()
    for kind, data in (USER, CALLS, START_A, ("tool_result", result("a", "read"))):
        timeline.append(kind, data)
    new = repair(timeline)
    messages = projection.messages

    assert kinds(new) == ["tool_result", "tool_result", "turn_end"]
    assert shape(messages)[-1] == "user: result a, result b, result c"
    assert [block["content"] for block in messages[-1]["content"]] == ["read", NOT_STARTED, NOT_STARTED]
    assert_accepted(messages)


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        pytest.param([], [], id="nothing began"),
        pytest.param([("notice", {"text": "x"})], [], id="only a notice"),
        pytest.param([USER], ["turn_end"], id="before the first answer"),
        pytest.param([USER, ("assistant", answer(text("x"), partial=True))], ["turn_end"], id="in an answer"),
        pytest.param([USER, ("turn_end", turn_end())], [], id="after the end"),
        pytest.param([USER, CALLS, ("turn_end", turn_end("stopped"))], ["tool_result"] * 3, id="a stop"),
        pytest.param([USER, ("undo", {"before_turn": 2})], [], id="undone"),
        pytest.param([USER, CALLS, ("undo", {"before_turn": 2})], [], id="undone with calls"),
    ],
)
def test_only_what_is_missing_is_added(blocks: list[tuple[str, dict[str, Any]]], expected: list[str]) -> None:
    timeline = crashed(*blocks)

    assert kinds(repair(timeline)) == expected
    assert repair(timeline) == []


def test_a_crash_while_repairing_is_repaired() -> None:
    timeline = crashed(USER, CALLS)
    partly = crashed(USER, CALLS)
    for block in repair(timeline)[:2]:
        partly.append(block.kind, block.data)

    assert kinds(repair(partly)) == ["tool_result", "turn_end"]


def test_calls_that_wait_for_the_user_can_still_be_approved() -> None:
    timeline = crashed(
        USER, CALLS, START_A, ("tool_result", result("a")), ASK, ("turn_end", turn_end("approval"))
    )

    assert repair(timeline) == []
    assert kinds(repair(timeline, waiting=True)) == ["tool_result", "tool_result"]


def test_a_crash_before_the_pause_was_logged_leaves_the_waiting_calls() -> None:
    timeline = crashed(USER, CALLS, START_A, ASK)

    assert kinds(repair(timeline)) == ["tool_result"]
    assert timeline.blocks[-1].data["tool_use_id"] == "a"


def test_calls_that_were_approved_and_did_not_run_wait_no_more() -> None:
    approved = ("approval", {"calls": ["b", "c"], "verdicts": [True, True]})
    timeline = crashed(
        USER, CALLS, START_A, ("tool_result", result("a")), ASK, ("turn_end", turn_end("approval")), approved
    )

    assert kinds(repair(timeline)) == ["tool_result", "tool_result", "turn_end"]


def test_an_id_used_again_says_nothing_of_the_earlier_call() -> None:
    first = ("assistant", answer(tool_use("b")))
    ran = ("tool_call", {"id": "b", "name": "view", "decision": "allow"})
    asked = ("approval", {"calls": ["b"], "verdicts": None})
    for earlier in (ran, asked):
        timeline = crashed(USER, first, earlier, ("tool_result", result("b")), first)
        new = repair(timeline)

        assert [block.data.get("content") for block in new] == [NOT_STARTED, None]
