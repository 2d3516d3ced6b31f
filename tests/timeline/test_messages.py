"""The API's messages from blocks: each rule of the pairing, of the cache, and of what is left out."""

from __future__ import annotations

from typing import Any

import pytest

from conjure_jupyter.timeline.messages import LOST_MESSAGE, LOST_RESULT

from .builders import (
    answer,
    live,
    project,
    prompt,
    result,
    server_tool_result,
    server_tool_use,
    shape,
    text,
    thinking,
    tool_use,
    whole_turn,
)
from .rules import assert_accepted


def test_a_turn_with_calls() -> None:
    timeline, projection = live()
    whole_turn(timeline, "hello", ["a", "b"])

    assert shape(projection.messages) == [
        "user: hello",
        "assistant: I look., call a, call b",
        "user: result a, result b",
        "assistant: Answer to hello",
    ]
    assert_accepted(projection.messages)


def test_results_stand_in_the_order_of_the_calls_and_notices_after_them() -> None:
    timeline, projection = live()
    timeline.append("user", prompt("go"))
    timeline.append("assistant", answer(tool_use("a"), tool_use("b"), tool_use("c")))
    timeline.append("tool_result", result("c"))
    timeline.append("notice", {"text": "a skill was loaded"})
    timeline.append("tool_result", result("a"))
    assert [call.id for call in projection.pending_calls()] == ["b"]
    assert shape(projection.messages) == ["user: go"]

    timeline.append("tool_result", result("b"))

    assert projection.pending_calls() == []
    assert shape(projection.messages)[1:] == [
        "assistant: call a, call b, call c",
        "user: result a, result b, result c, a skill was loaded",
    ]


def test_only_the_first_result_of_a_call_counts_and_orphans_do_not() -> None:
    timeline, projection = live()
    timeline.append("tool_result", result("never asked"))
    timeline.append("user", prompt("go"))
    timeline.append("assistant", answer(tool_use("a"), tool_use("b")))
    timeline.append("tool_result", result("a", "first"))
    timeline.append("tool_result", result("a", "second"))
    timeline.append("tool_result", result("b"))
    timeline.append("tool_result", result("b", "late"))

    assert [block["content"] for block in projection.messages[-1]["content"]] == ["first", "ok"]
    assert len(projection.messages) == 3


def test_an_id_used_again_in_a_later_answer_waits_for_its_own_result() -> None:
    timeline, projection = live()
    timeline.append("user", prompt("go"))
    for content in ("one", "two"):
        timeline.append("assistant", answer(tool_use("call_0")))
        assert [call.id for call in projection.pending_calls()] == ["call_0"]
        timeline.append("tool_result", result("call_0", content))

    assert_accepted(projection.messages)
    assert projection.messages[-1]["content"][0]["content"] == "two"


def test_a_prompt_after_a_stop_follows_the_results_in_one_message() -> None:
    timeline, projection = live()
    timeline.append("user", prompt("go"))
    timeline.append("assistant", answer(tool_use("a"), tool_use("b")))
    timeline.append("tool_result", result("a"))
    timeline.begin_turn()
    timeline.append("notice", {"text": "stopped"})
    timeline.append("user", prompt("something else"))
    assert shape(projection.messages) == ["user: go"]

    timeline.append("tool_result", result("b", "interrupted", is_error=True))

    assert shape(projection.messages)[2:] == ["user: result a, result b, stopped, something else"]
    assert projection.messages[2]["content"][1]["is_error"] is True
    assert "is_error" not in projection.messages[2]["content"][0]


def test_notices_before_a_prompt_come_with_it() -> None:
    timeline, projection = live()
    timeline.append("notice", {"text": "first"})
    timeline.append("user", prompt("go"))
    timeline.append("assistant", answer(text("yes")))
    timeline.append("notice", {"text": "second"})
    assert shape(projection.messages) == ["user: first, go", "assistant: yes"]

    timeline.append("user", prompt("on"))
    assert shape(projection.messages)[2:] == ["user: second, on"]


def test_a_late_notice_never_changes_a_message_that_may_have_been_sent() -> None:
    timeline, projection = live()
    timeline.append("user", prompt("go"))
    sent = projection.messages
    before = repr(sent)
    timeline.append("notice", {"text": "by the way"})

    assert repr(sent) == before
    assert shape(projection.messages) == ["user: go", "user: by the way"]
    assert projection.messages[0] is sent[0]


def test_the_same_objects_from_call_to_call() -> None:
    timeline, projection = live()
    whole_turn(timeline, "one", ["a"])
    first = projection.messages
    whole_turn(timeline, "two", ["b"])

    assert all(old is new for old, new in zip(first, projection.messages, strict=False))
    logged = [block.data["message"]["content"][0] for block in timeline.blocks if block.kind == "assistant"]
    assert projection.messages[1]["content"][0] is logged[0]


THINK = thinking("hm")
REDACTED = {"type": "redacted_thinking", "data": "xyz"}
UNKNOWN = {"type": "container_upload", "file_id": "file_1"}
CUT = {"stop_reason": "max_tokens"}


@pytest.mark.parametrize(
    ("data", "kept"),
    [
        pytest.param(answer(THINK, text("x")), [THINK, text("x")], id="signed thinking stays as it is"),
        pytest.param(answer(thinking("hm", ""), text("x")), [text("x")], id="unsigned thinking goes"),
        pytest.param(answer(REDACTED, text("x")), [REDACTED, text("x")], id="redacted thinking stays"),
        pytest.param(answer(text(""), text(" \n"), text("x")), [text("x")], id="blank text goes"),
        pytest.param(answer(text("x"), THINK), [text("x")], id="thinking at the end goes"),
        pytest.param(answer(THINK), [], id="thinking alone is no message"),
        pytest.param(answer(text("")), [], id="nothing left is no message"),
        pytest.param(answer(), [], id="nothing at all is no message"),
        pytest.param(answer(UNKNOWN), [UNKNOWN], id="unknown blocks stay"),
        pytest.param(
            answer(text("x"), tool_use("a"), reason="max_tokens"),
            [text("x")],
            id="a call cut by max_tokens goes",
        ),
        pytest.param(answer(THINK, tool_use("a"), reason="refusal"), [], id="and the thinking before it"),
        pytest.param(answer(text("x"), tool_use("a"), partial=True), [text("x")], id="a call of a part goes"),
        pytest.param(
            answer(text("x"), server_tool_use("s"), partial=True), [text("x")], id="an open server call goes"
        ),
        pytest.param(
            answer(server_tool_use("s"), server_tool_result("s"), text("x")),
            [server_tool_use("s"), server_tool_result("s"), text("x")],
            id="an answered server call stays",
        ),
        pytest.param(
            answer(text("x"), server_tool_use("s"), reason="pause_turn"),
            [text("x"), server_tool_use("s")],
            id="a paused one too",
        ),
        pytest.param({"message": {"content": "plain"}, "partial": False}, [text("plain")], id="a string"),
        pytest.param({"message": {"content": [{"type": "text", "text": None}, 3, {}]}}, [], id="nonsense"),
        pytest.param({"message": None, "partial": True}, [], id="no message"),
        pytest.param({}, [], id="no data"),
    ],
)
def test_what_of_an_answer_goes_back(data: dict[str, Any], kept: list[dict[str, Any]]) -> None:
    timeline, projection = live()
    timeline.append("user", prompt("go"))
    timeline.append("assistant", data)

    assert [message["content"] for message in projection.messages[1:]] == ([kept] if kept else [])
    assert projection.pending_calls() == []


def test_a_call_whose_input_is_no_object_is_sent_as_one() -> None:
    timeline, projection = live()
    timeline.append("user", prompt("go"))
    broken = {**tool_use("a"), "input": '{"path": "x'}
    timeline.append("assistant", answer(broken, tool_use("a"), {**tool_use("b"), "id": None}))
    (call,) = projection.pending_calls()
    timeline.append("tool_result", result("a"))

    assert call.input == {"INVALID_JSON": '{"path": "x'}
    assert projection.messages[1]["content"] == [{**broken, "input": call.input}]


def test_results_keep_images_and_lose_blank_text() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "eA=="}}
    timeline, projection = live()
    timeline.append("user", prompt("go"))
    timeline.append("assistant", answer(tool_use("a"), tool_use("b"), tool_use("c")))
    timeline.append("tool_result", result("a", [text(""), image]))
    timeline.append("tool_result", result("b", [text(" ")]))
    timeline.append("tool_result", result("c", ""))

    assert [block["content"] for block in projection.messages[-1]["content"]] == [[image], "", ""]


def test_a_paused_answer_goes_on_in_the_next() -> None:
    timeline, projection = live()
    timeline.append("user", prompt("go"))
    timeline.append("assistant", answer(server_tool_use("s"), reason="pause_turn"))
    timeline.append("notice", {"text": "not between"})
    assert [message["role"] for message in projection.messages] == ["user", "assistant"]
    timeline.append("assistant", answer(server_tool_result("s"), text("found")))
    timeline.append("user", prompt("thanks"))

    assert shape(projection.messages) == [
        "user: go",
        "assistant: server_tool_use",
        "assistant: web_search_tool_result, found",
        "user: not between, thanks",
    ]


@pytest.mark.parametrize("more", [[], [answer(text("well"), partial=True)]], ids=["at once", "after a part"])
def test_a_prompt_after_a_paused_answer_closes_its_open_calls(more: list[dict[str, Any]]) -> None:
    timeline, projection = live()
    timeline.append("user", prompt("go"))
    timeline.append("assistant", answer(text("I search."), server_tool_use("s"), reason="pause_turn"))
    sent = projection.messages
    for data in more:
        timeline.append("assistant", data)
    timeline.append("user", prompt("never mind"))

    said = ["assistant: well"] if more else []
    assert shape(projection.messages) == ["user: go", "assistant: I search.", *said, "user: never mind"]
    assert shape(sent) == ["user: go", "assistant: I search., server_tool_use"]


def test_undo_goes_back_to_before_a_turn_and_drops_its_notices() -> None:
    timeline, projection = live()
    whole_turn(timeline, "one", ["a"])
    timeline.append("notice", {"text": "kept"})
    before = projection.messages
    whole_turn(timeline, "two", ["b"])
    timeline.append("notice", {"text": "dropped"})
    timeline.begin_turn()
    timeline.append("user", prompt("three"))
    timeline.append("assistant", answer(tool_use("c")))
    timeline.append("undo", {"before_turn": 2, "reason": "user"})

    assert [id(message) for message in projection.messages] == [id(message) for message in before]
    assert projection.pending_calls() == []
    assert timeline.begin_turn() == 4
    timeline.append("user", prompt("four"))
    assert shape(projection.messages)[-1] == "user: kept, four"
    timeline.append("undo", {"before_turn": 4, "reason": "user"})
    timeline.append("undo", {"before_turn": 1, "reason": "user"})
    timeline.append("undo", {"before_turn": 1, "reason": "again"})
    assert projection.messages == []


def test_undo_drops_a_notice_that_waited_for_the_undone_prompt() -> None:
    timeline, projection = live()
    timeline.append("user", prompt("before any turn"))
    timeline.append("assistant", answer(text("yes")))
    timeline.append("notice", {"text": "kept"})
    turn = timeline.begin_turn()
    timeline.append("notice", {"text": "dropped"})
    timeline.append("undo", {"before_turn": turn, "reason": "user"})
    timeline.begin_turn()
    timeline.append("user", prompt("again"))
    assert shape(projection.messages)[-1] == "user: kept, again"

    timeline.append("undo", {"before_turn": 0, "reason": "all of it"})
    assert projection.messages == []


def test_undo_brings_back_what_waited() -> None:
    timeline, projection = live()
    timeline.begin_turn()
    timeline.append("user", prompt("one"))
    timeline.append("assistant", answer(tool_use("a"), tool_use("b")))
    timeline.append("tool_result", result("a"))
    timeline.begin_turn()
    timeline.append("user", prompt("two"))
    timeline.append("tool_result", result("b"))
    assert len(projection.messages) == 3
    timeline.append("undo", {"before_turn": 2, "reason": "user"})

    assert shape(projection.messages) == ["user: one"]
    assert [call.id for call in projection.pending_calls()] == ["b"]
    timeline.append("tool_result", result("b"))
    assert shape(projection.messages)[-1] == "user: result a, result b"


def test_compaction_stands_for_older_turns_and_undo_goes_behind_it() -> None:
    timeline, projection = live()
    for value in ("one", "two", "three"):
        whole_turn(timeline, value, [f"call-{value}"])
    original = projection.messages
    timeline.begin_turn()
    timeline.append("compaction", {"summary": "What was said.", "upto_turn": 2})

    assert shape(projection.messages) == ["user: What was said.", *shape(original)[8:]]
    assert all(new is old for new, old in zip(projection.messages[1:], original[8:], strict=True))
    assert len(original) == 12
    whole_turn(timeline, "five", ["e"])
    timeline.append("compaction", {"summary": "More.", "upto_turn": 3})
    assert shape(projection.messages)[:2] == ["user: More.", "user: five"]
    assert_accepted(projection.messages)

    timeline.append("undo", {"before_turn": 3, "reason": "user"})
    assert projection.messages == original[:8]


@pytest.mark.parametrize("data", [{}, {"summary": " ", "upto_turn": 1}, {"summary": "x", "upto_turn": 0}])
def test_a_compaction_of_nothing_changes_nothing(data: dict[str, Any]) -> None:
    timeline, projection = live()
    whole_turn(timeline, "one")
    before = projection.messages
    timeline.append("compaction", data)

    assert projection.messages == before


def test_a_lost_result_is_made_up_so_that_the_rest_can_be_used() -> None:
    timeline, _ = live()
    whole_turn(timeline, "one", ["a", "b"])
    blocks = [block for block in timeline.blocks if block.data.get("tool_use_id") != "a"]

    messages = project(blocks).messages

    assert_accepted(messages)
    assert [block["content"] for block in messages[2]["content"]] == [LOST_RESULT, "ok"]
    assert messages[2]["content"][0]["is_error"] is True


def test_a_lost_first_prompt_is_made_up() -> None:
    timeline, _ = live()
    whole_turn(timeline, "one")

    messages = project(block for block in timeline.blocks if block.kind != "user").messages

    assert shape(messages) == [f"user: {LOST_MESSAGE}", "assistant: Answer to one"]


def test_kinds_that_say_nothing_to_claude_are_passed_over() -> None:
    timeline, projection = live()
    for kind in ("prefix", "place", "approval", "turn_end", "artifact", "something of a later version"):
        timeline.append(kind, {"text": "x", "content": [text("x")]})

    assert projection.messages == []
