"""What Claude sees of captured artifacts, and what a compaction leaves as it is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from conjure_jupyter.timeline import Discovery, follow
from conjure_jupyter.timeline.rendering import CAPTURED, CAPTURED_HEAD

from .artifact_builders import artifact, made
from .builders import (
    answer,
    live,
    prompt,
    result,
    server_tool_result,
    server_tool_use,
    shape,
    text,
    tool_use,
    whole_turn,
)
from .rules import assert_accepted


def captured(block: dict[str, Any]) -> list[dict[str, Any]]:
    """The digests at the end of a result."""
    head, *lines = block["content"][-1]["text"].splitlines()
    assert head == CAPTURED_HEAD
    return [json.loads(line) for line in lines if line.startswith("{")]


def test_a_result_ends_with_the_digests_of_what_its_call_made() -> None:
    timeline, projection = live()
    discovery = Discovery()
    follow(timeline, discovery)
    timeline.begin_turn()
    timeline.append("artifact", artifact("fi:turn_0001.user.attachments/s.csv"))
    timeline.append("user", prompt("go"))
    timeline.append("assistant", answer(tool_use("a"), tool_use("b")))
    made(timeline, "r.md", call="b", version=0)
    made(timeline, "r.md", call="b", version=1)
    made(timeline, "c.png", call="b")
    made(timeline, "other", call="elsewhere")
    made(timeline, "nobody")
    timeline.append("tool_result", result("b", [text("wrote")], is_error=True))
    timeline.append("tool_result", result("a", "seen"))
    first, second = projection.messages[-1]["content"]

    assert first["content"] == "seen"
    assert second["content"][0] == text("wrote")
    assert second["is_error"] is True
    assert [(each["path"], each["version"]) for each in captured(second)] == [
        ("outputs/r.md", 1),
        ("outputs/c.png", 0),
    ]
    assert captured(second) == [
        found.digest() for path in ("outputs/r.md", "outputs/c.png") if (found := discovery.latest(path))
    ]
    assert captured(second)[0]["source"] == 2
    assert timeline.blocks[-2].data["content"] == [text("wrote")]
    assert_accepted(projection.messages)


@pytest.mark.parametrize("content", ["", [], [text(" ")], "ok"])
def test_whatever_the_result_was_the_digests_are_text(content: Any) -> None:
    timeline, projection = live()
    timeline.append("user", prompt("go"))
    timeline.append("assistant", answer(tool_use("a")))
    made(timeline, "r.md", call="a")
    timeline.append("tool_result", result("a", content))

    (block,) = projection.messages[-1]["content"]
    assert len(block["content"]) == (2 if content == "ok" else 1)
    assert len(captured(block)) == 1
    assert_accepted(projection.messages)


def test_files_of_overlapping_calls_are_told_once_and_may_come_late() -> None:
    timeline, projection = live()
    timeline.append("user", prompt("go"))
    timeline.append("assistant", answer(tool_use("a"), tool_use("b")))
    timeline.append("tool_result", result("a"))
    made(timeline, "r.md", tool_call_ids=["gone", "a", "b"])
    assert len(projection.messages) == 1
    timeline.append("tool_result", result("b"))

    first, second = projection.messages[-1]["content"]
    assert [each["path"] for each in captured(first)] == ["outputs/r.md"]
    assert second["content"] == "ok"


def test_many_artifacts_are_counted() -> None:
    timeline, projection = live()
    timeline.append("user", prompt("go"))
    timeline.append("assistant", answer(tool_use("a")))
    for number in range(CAPTURED + 5):
        made(timeline, f"{number}.txt", call="a")
    timeline.append("tool_result", result("a"))

    (block,) = projection.messages[-1]["content"]
    assert len(captured(block)) == CAPTURED
    assert block["content"][-1]["text"].endswith("\nand 5 more")


def test_an_artifact_that_was_hidden_meanwhile_is_shown_as_its_replacement() -> None:
    timeline, projection = live()
    timeline.append("user", prompt("go"))
    timeline.append("assistant", answer(tool_use("a")))
    made(timeline, "r.md", call="a")
    hidden = {"artifact_path": "fi:turn_0000.files/r.md", "replacement_text": "A draft."}
    timeline.append("hide", hidden)
    timeline.append("tool_result", result("a"))
    sent = repr(projection.messages)

    assert captured(projection.messages[-1]["content"][0]) == [hidden]
    timeline.append("hide", {**hidden, "replacement_text": "Later."})
    made(timeline, "r.md", call="a")
    assert repr(projection.messages) == sent


def test_undo_brings_back_what_was_captured_for_a_waiting_call() -> None:
    timeline, projection = live()
    timeline.begin_turn()
    timeline.append("user", prompt("one"))
    timeline.append("assistant", answer(tool_use("a")))
    made(timeline, "r.md", call="a")
    timeline.begin_turn()
    made(timeline, "later.md", call="a")
    timeline.append("user", prompt("two"))
    timeline.append("tool_result", result("a"))
    timeline.append("undo", {"before_turn": 2, "reason": "user"})
    timeline.append("tool_result", result("a"))

    (block,) = projection.messages[-1]["content"]
    assert [each["path"] for each in captured(block)] == ["outputs/r.md"]


def test_after_a_compaction_its_summary_comes_first_with_all_it_carries() -> None:
    timeline, projection = live()
    discovery = Discovery()
    follow(timeline, discovery)
    for value in ("one", "two", "three"):
        whole_turn(timeline, value, [f"call-{value}"])
        made(timeline, f"{value}.md")
    original = projection.messages
    summary = [text("What was said."), text(discovery.artifacts_section(2)), text("Skills: csv-helper")]
    timeline.begin_turn()
    timeline.append("compaction", {"summary": summary, "upto_turn": 2})
    timeline.append("user", prompt("four"))
    messages = projection.messages

    assert messages[0] == {"role": "user", "content": summary}
    told = [json.loads(line)["path"] for line in summary[1]["text"].splitlines()]
    assert told == ["outputs/one.md", "outputs/two.md"]
    assert messages[1:-1] == original[8:]
    assert_accepted(messages)
    for _ in range(2):
        timeline.append("undo", {"before_turn": 4, "reason": "user"})
        assert [id(message) for message in projection.messages] == [id(message) for message in original]
    assert discovery.find("fi:turn_0001.files/one.md") is not None


def test_a_compaction_never_parts_a_call_from_its_result() -> None:
    timeline, projection = live()
    whole_turn(timeline, "one")
    timeline.begin_turn()
    timeline.append("user", prompt("two"))
    timeline.append("assistant", answer(tool_use("a"), tool_use("b")))
    timeline.append("tool_result", result("a"))
    made(timeline, "r.md", call="b")
    timeline.append("compaction", {"summary": "Before.", "upto_turn": 2})
    assert [call.id for call in projection.pending_calls()] == ["b"]
    assert shape(projection.messages) == ["user: Before."]
    timeline.append("tool_result", result("b"))

    assert shape(projection.messages) == [
        "user: Before.",
        "assistant: call a, call b",
        "user: result a, result b",
    ]
    assert captured(projection.messages[-1]["content"][1])
    assert_accepted(projection.messages)


def test_a_compaction_keeps_the_answer_that_the_service_goes_on_from() -> None:
    timeline, projection = live()
    whole_turn(timeline, "one")
    timeline.begin_turn()
    timeline.append("user", prompt("two"))
    timeline.append("assistant", answer(server_tool_use("s"), reason="pause_turn"))
    timeline.append("compaction", {"summary": "Before.", "upto_turn": 2})
    timeline.append("assistant", answer(server_tool_result("s"), text("found")))

    assert shape(projection.messages) == [
        "user: Before.",
        "assistant: server_tool_use",
        "assistant: web_search_tool_result, found",
    ]
    timeline.append("undo", {"before_turn": 2, "reason": "user"})
    assert shape(projection.messages) == ["user: one", "assistant: Answer to one"]
