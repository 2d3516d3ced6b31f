"""What was said, found by logical path, and the history made readable for a summary."""

from __future__ import annotations

import json
from typing import Any

import pytest

from conjure_jupyter.errors import ArtifactNotFoundError, InvalidArtifactError
from conjure_jupyter.timeline import BaseTimeline, Entry
from conjure_jupyter.timeline.rendering import CALL_LIMIT, RESULT_LIMIT
from conjure_jupyter.timeline.transcript import bounded

from .artifact_builders import artifact, discovering, made
from .builders import answer, prompt, result, text, thinking, tool_use, whole_turn

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "eA=="}}


def compaction(timeline: BaseTimeline, upto: int, summary: Any, **more: Any) -> None:
    timeline.append("compaction", {"summary": summary, "upto_turn": upto, **more})


def told(entries: list[Entry]) -> list[str]:
    return [f"{entry.turn} {entry.role}: {entry.text}" for entry in entries]


def test_prompt_and_completion() -> None:
    timeline, discovery = discovering()
    timeline.begin_turn()
    timeline.append("user", {**prompt("attached: s.csv\ngo"), "prompt": "go"})
    timeline.append("assistant", answer(thinking("hm"), text("I look."), tool_use("a")))
    timeline.append("tool_result", result("a"))
    assert discovery.text_blocks("ar:turn_0001.assistant.completion") == [text("I look.")]
    timeline.append("assistant", answer(text("One."), text("Two.")))
    timeline.append("assistant", answer(thinking("hm")))
    timeline.begin_turn()
    timeline.append("user", {"content": [IMAGE, text("what is this")]})

    assert discovery.text_blocks("ar:turn_0001.user.prompt") == [text("go")]
    assert discovery.text_blocks("ar:turn_0001.assistant.completion") == [text("One."), text("Two.")]
    assert discovery.text_blocks("ar:turn_0002.user.prompt") == [text("what is this")]
    with pytest.raises(ArtifactNotFoundError):
        discovery.text_blocks("ar:turn_0002.assistant.completion")


def test_calls_and_results() -> None:
    timeline, discovery = discovering()
    timeline.begin_turn()
    timeline.append("assistant", answer(tool_use("a", "view", path="<x>"), tool_use("b")))
    timeline.append("tool_result", result("a", [text("seen"), IMAGE]))
    timeline.append("tool_result", result("a", "again"))
    timeline.begin_turn()
    timeline.append("tool_result", result("b", "late"))

    (call,) = discovery.text_blocks("tc:turn_0001.a.call")
    assert json.loads(call["text"]) == {"name": "view", "input": {"path": "<x>"}}
    assert discovery.text_blocks("tc:turn_0001.a.result") == [text("seen"), IMAGE]
    assert discovery.text_blocks("tc:turn_0001.b.result") == [text("late")]
    for path in ("tc:turn_0002.b.result", "tc:turn_0001.c.call", "tc:turn_0001.c.result"):
        with pytest.raises(ArtifactNotFoundError):
            discovery.text_blocks(path)


def test_an_id_used_again_in_a_turn_has_its_latest_result() -> None:
    timeline, discovery = discovering()
    timeline.begin_turn()
    for content in ("one", "two"):
        timeline.append("assistant", answer(tool_use("call_0", content)))
        timeline.append("tool_result", result("call_0", content))

    assert discovery.text_blocks("tc:turn_0001.call_0.result") == [text("two")]
    assert told(discovery.render(1))[1::2] == ["1 result: one", "1 result: two"]


def test_summaries_sources_and_files() -> None:
    timeline, discovery = discovering()
    whole_turn(timeline, "one")
    timeline.append("artifact", artifact("fi:turn_0001.user.attachments/<a>.csv"))
    made(timeline, "r.md", version=0)
    made(timeline, "r.md", version=1)
    timeline.begin_turn()
    compaction(timeline, 1, "Short.", summary_path="su:turn_0001.conv.range.summary")
    compaction(timeline, 1, [text("Shorter.")], summary_path="fi:turn_0001.files/r.md")

    assert discovery.text_blocks("su:turn_0001.conv.range.summary") == [text("Short.")]
    assert discovery.text_blocks("su:turn_0002.conv.range.summary") == [text("Shorter.")]
    (block,) = discovery.text_blocks("so:sources_pool[2,9,1]")
    lines = block["text"].splitlines()
    assert [json.loads(line)["artifact_path"] for line in lines] == [
        "fi:turn_0001.files/r.md",
        "fi:turn_0001.user.attachments/<a>.csv",
    ]
    assert "<" not in block["text"]
    (block,) = discovery.text_blocks("fi:turn_0001.files/r.md")
    assert json.loads(block["text"])["version"] == 1


@pytest.mark.parametrize(
    "path", ["fi:turn_0001.files/none", "so:sources_pool[7]", "su:turn_0001.conv.range.summary"]
)
def test_what_there_is_not(path: str) -> None:
    timeline, discovery = discovering()
    timeline.begin_turn()
    made(timeline, "x.md")

    with pytest.raises(ArtifactNotFoundError, match=r"x\.md|1 sources|no such entry"):
        discovery.text_blocks(path)
    with pytest.raises(InvalidArtifactError):
        discovery.text_blocks("outputs/x.md")


def test_undone_turns_can_still_be_read() -> None:
    timeline, discovery = discovering()
    whole_turn(timeline, "one", ["a"])
    timeline.append("undo", {"before_turn": 1, "reason": "user"})
    whole_turn(timeline, "two")

    assert discovery.text_blocks("ar:turn_0001.user.prompt") == [text("one")]
    assert discovery.text_blocks("tc:turn_0001.a.result") == [text("ok")]
    assert told(discovery.render(2)) == ["2 user: two", "2 assistant: Answer to two"]


def test_a_history_to_read() -> None:
    timeline, discovery = discovering()
    timeline.append("notice", {"text": "before"})
    timeline.begin_turn()
    timeline.append("artifact", artifact("fi:turn_0001.user.attachments/s.csv"))
    timeline.append("user", {"content": [text("chart it"), IMAGE]})
    timeline.append(
        "assistant", answer(thinking("hm"), text("I look."), tool_use("a", "bash_tool", command="x"))
    )
    made(timeline, "c.png", call="a", version=0)
    made(timeline, "c.png", call="a", version=1)
    timeline.append("tool_result", result("a", [text("done"), IMAGE]))
    timeline.append("assistant", answer(text("There."), partial=True))
    whole_turn(timeline, "later")

    entries = discovery.render(1)
    assert [(entry.turn, entry.role) for entry in entries] == [
        (0, "notice"), (1, "artifact"), (1, "user"), (1, "assistant"), (1, "call"), (1, "artifact"),
        (1, "result"), (1, "assistant"),
    ]  # fmt: skip
    assert [entry.text for entry in entries if entry.role not in ("artifact", "call")] == [
        "before", "chart it\n[image]", "I look.", "done\n[image]", "There.",
    ]  # fmt: skip
    assert json.loads(entries[4].text) == {"name": "bash_tool", "input": {"command": "x"}}
    assert json.loads(entries[5].text)["version"] == 1
    assert told(discovery.render(2))[-2:] == ["2 user: later", "2 assistant: Answer to later"]
    assert discovery.render(-1) == []


def test_hidden_artifacts_are_shown_once_as_their_replacement() -> None:
    timeline, discovery = discovering()
    timeline.begin_turn()
    for call in ("a", "b"):
        made(timeline, "c.png", call=call)
        made(timeline, "d.png", call=call)
    timeline.append("hide", {"artifact_path": "fi:turn_0001.files/c.png", "replacement_text": "A chart."})
    timeline.append("hide", {"artifact_path": "fi:turn_0001.files/gone.png"})

    texts = [entry.text for entry in discovery.render(1)]
    assert texts.count("A chart.") == 1
    assert len(texts) == 3
    assert not any("c.png" in each for each in texts)


def test_a_hidden_artifact_without_a_replacement() -> None:
    timeline, discovery = discovering()
    made(timeline, "c.png")
    timeline.append("hide", {"artifact_path": "fi:turn_0000.files/c.png", "replacement_text": None})

    assert told(discovery.render(0)) == ["0 artifact: [hidden]"]
    assert json.loads(discovery.artifacts_section(0))["replacement_text"] == "[hidden]"


def test_what_a_summary_stands_for_is_left_out() -> None:
    timeline, discovery = discovering()
    for value in ("one", "two", "three", "four"):
        whole_turn(timeline, value)
    compaction(timeline, 2, "One and two.")
    whole_turn(timeline, "five")

    assert told(discovery.render(3)) == [
        "2 summary: One and two.",
        "3 user: three",
        "3 assistant: Answer to three",
    ]
    assert told(discovery.render(1))[0] == "1 user: one"
    compaction(timeline, 3, "To three.")
    assert told(discovery.render(5))[:2] == ["3 summary: To three.", "4 user: four"]
    assert told(discovery.render(2))[0] == "2 summary: One and two."
    timeline.append("undo", {"before_turn": 5, "reason": "user"})
    assert told(discovery.render(4))[0] == "2 summary: One and two."
    timeline.append("undo", {"before_turn": 3, "reason": "user"})
    assert told(discovery.render(4))[0] == "1 user: one"


def test_long_inputs_and_results_are_cut_in_the_middle() -> None:
    timeline, discovery = discovering()
    timeline.begin_turn()
    timeline.append("user", prompt("p" * 5000))
    timeline.append("assistant", answer(tool_use("a", body="x" * 9000)))
    timeline.append("tool_result", result("a", "start" + "y" * 9000 + "end"))
    user, call, answered = discovery.render(1)

    assert user.text == "p" * 5000
    assert len(call.text) == CALL_LIMIT
    assert "characters and more left out" in call.text
    assert len(answered.text) == RESULT_LIMIT
    assert answered.text.startswith("starty")
    assert answered.text.endswith("yend")


def test_the_newest_are_kept_whole_within_the_limit() -> None:
    timeline, discovery = discovering()
    for turn in range(1, 41):
        whole_turn(timeline, f"{turn} {'x' * 100}")
    whole = discovery.render(40)
    entries = discovery.render(40, limit=3000)

    assert sum(len(entry.text) for entry in entries) <= 3000
    assert entries[0].role == "left_out"
    assert entries[-20:] == whole[-20:]
    assert len(entries[1].text) < 120 or entries[1] in whole
    missing = len(whole) - (len(entries) - 1)
    assert entries[0].text.startswith(f"{missing} earlier entries of turns 1 to ")


def test_the_earlier_summary_is_kept_when_the_rest_has_to_go() -> None:
    timeline, discovery = discovering()
    whole_turn(timeline, "one")
    whole_turn(timeline, "x" * 5000)
    compaction(timeline, 1, "s" * 5000)
    summary, *rest = discovery.render(2, limit=2000)

    assert (summary.role, summary.turn) == ("summary", 1)
    assert summary.text.startswith("sss")
    assert sum(len(entry.text) for entry in (summary, *rest)) <= 2000
    assert rest[-1].text.endswith("xxx")
    assert discovery.render(2, limit=0) == discovery.render(2, limit=1000)


@pytest.mark.parametrize("length", [0, 1, 99, 100, 101, 5000])
@pytest.mark.parametrize("limit", [0, 1, 60, 100])
def test_a_cut_text_is_never_longer_than_allowed(length: int, limit: int) -> None:
    cut = bounded("a" * length, limit)

    assert len(cut) <= limit
    assert length > limit or cut == "a" * length


def test_a_result_with_half_a_surrogate_pair_can_be_sent() -> None:
    timeline, discovery = discovering()
    timeline.begin_turn()
    timeline.append("assistant", answer(tool_use("a", path="\ud800")))
    timeline.append("tool_result", result("a", "x\udcff"))

    for entry in discovery.render(1):
        entry.text.encode()


def test_the_artifacts_for_a_summary() -> None:
    timeline, discovery = discovering()
    timeline.begin_turn()
    timeline.append("artifact", artifact("fi:turn_0001.internal/tmp/x"))
    for name in ("a", "b", "c"):
        made(timeline, name)
    timeline.begin_turn()
    made(timeline, "a", version=1)
    paths = [json.loads(line)["artifact_path"] for line in discovery.artifacts_section(1).splitlines()]
    section = discovery.artifacts_section(2, most=2).splitlines()

    assert paths == [f"fi:turn_0001.{rest}" for rest in ("internal/tmp/x", "files/a", "files/b", "files/c")]
    assert [json.loads(line)["artifact_path"] for line in section[:2]] == [
        "fi:turn_0001.files/c",
        "fi:turn_0002.files/a",
    ]
    assert section[2:] == ["and 2 more"]
    assert discovery.artifacts_section(2, limit=10) == "and 4 more"
    assert discovery.artifacts_section(0) == ""
    timeline.append("undo", {"before_turn": 1, "reason": "user"})
    assert discovery.artifacts_section(2) == ""
