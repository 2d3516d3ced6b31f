"""Pure functions of a response."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from conjure_jupyter.conversation import (
    conversation_complete,
    extract_tool_uses,
    format_tool_results,
    format_tool_results_message,
    parse_response,
)
from conjure_jupyter.testing import message, text, tool_use
from conjure_jupyter.types import ToolCall, ToolResult


def test_calls_are_extracted_in_order() -> None:
    answer = message("On it", tool_use("view", {"path": "a"}, "t1"), tool_use("view", {"path": "b"}, "t2"))
    assert extract_tool_uses(answer) == [
        ToolCall("t1", "view", {"path": "a"}),
        ToolCall("t2", "view", {"path": "b"}),
    ]


def test_a_call_that_was_cut_does_not_run() -> None:
    answer = message(tool_use("create_file", {"path": "a"}, "t1"), stop_reason="max_tokens")
    assert extract_tool_uses(answer) == []
    assert conversation_complete(answer)


@pytest.mark.parametrize(
    ("stop_reason", "complete"),
    [("end_turn", True), ("refusal", True), ("max_tokens", True), ("pause_turn", False)],
)
def test_stop_reason_decides(stop_reason: str, complete: bool) -> None:
    assert conversation_complete(message("…", stop_reason=stop_reason)) is complete


def test_a_call_makes_it_incomplete() -> None:
    assert not conversation_complete(message(tool_use("view", {"path": "a"})))


def test_sdk_objects_are_taken_as_well() -> None:
    answer = SimpleNamespace(to_dict=lambda: message(text("Hello"), text("there")))
    parsed = parse_response(answer)
    assert parsed.text_blocks == ["Hello", "there"]
    assert parsed.stop_reason == "end_turn"


def test_something_else_is_refused() -> None:
    with pytest.raises(TypeError, match="not int"):
        parse_response(3)


def test_results_become_one_user_message() -> None:
    results = [ToolResult("t1", "fine"), ToolResult("t2", "broken", is_error=True)]
    assert format_tool_results_message(results) == {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": "fine"},
            {"type": "tool_result", "tool_use_id": "t2", "content": "broken", "is_error": True},
        ],
    }
    assert format_tool_results([]) == []
