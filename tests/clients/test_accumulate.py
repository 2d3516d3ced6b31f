"""Messages built from events, and events made from messages."""

from __future__ import annotations

import json
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conjure_jupyter.clients import MessageAccumulator, message_events
from conjure_jupyter.errors import StreamInterruptedError
from conjure_jupyter.testing import message, redacted_thinking, thinking, tool_use

START = {
    "type": "message_start",
    "message": {"role": "assistant", "content": [], "usage": {"input_tokens": 7}},
}


def collected(*events: dict[str, Any]) -> MessageAccumulator:
    accumulator = MessageAccumulator()
    for event in events:
        accumulator.add(event)
    return accumulator


def started(block: dict[str, Any], index: int = 0) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int = 0, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": fields}


def stopped(index: int = 0) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
_block = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, st.text()),
    st.builds(thinking, st.text()),
    st.builds(redacted_thinking, st.text()),
    st.builds(tool_use, st.just("view"), st.dictionaries(st.text(), _json, max_size=3)),
    st.builds(lambda value: {"type": "novelty", "payload": value, "input": None}, _json).map(
        lambda block: {name: value for name, value in block.items() if name != "input"}
    ),
)


@given(st.lists(_block, max_size=5), st.integers(1, 7) | st.none())
def test_a_message_survives_the_way_through_events(blocks: list[dict[str, Any]], chunk: int | None) -> None:
    said = message(*blocks)
    accumulator = collected(*message_events(said, chunk=chunk))
    assert accumulator.complete
    assert accumulator.message["content"] == blocks
    assert accumulator.message["stop_reason"] == said["stop_reason"]


@given(st.lists(_block, max_size=4), st.data())
def test_a_cut_anywhere_leaves_something_that_can_be_sent_back(
    blocks: list[dict[str, Any]], data: st.DataObject
) -> None:
    events = list(message_events(message(*blocks), chunk=3))
    accumulator = collected(*events[: data.draw(st.integers(1, len(events)))])
    kept = accumulator.partial()["content"]
    for block in kept:
        if block["type"] == "text":
            assert block["text"].strip()
        else:
            assert block in blocks, "only whole blocks are kept"
    if kept:
        assert kept[-1]["type"] not in ("thinking", "redacted_thinking")


def test_a_large_tool_input_is_parsed_once() -> None:
    value = {"path": "big.txt", "file_text": "x" * 200_000}
    events = list(message_events(message(tool_use("create_file", value)), chunk=20))
    with mock.patch("conjure_jupyter.clients.accumulate.json.loads", wraps=json.loads) as loads:
        accumulator = collected(*events)
        assert loads.call_count == 1
    assert accumulator.message["content"][0]["input"] == value


@pytest.mark.parametrize("text", ['{"path": "a', "[1, 2]", '{"x": NaN}', '{"x": -Infinity}', "nonsense"])
def test_an_input_that_is_no_object_is_told_and_not_guessed(text: str) -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "view", "input": {}}
    accumulator = collected(
        START, started(call), delta(type="input_json_delta", partial_json=text), stopped()
    )
    assert accumulator.invalid_inputs == {"toolu_1": text}
    assert accumulator.message["content"][0]["input"] == {}
    assert accumulator.partial()["content"] == []


def test_an_input_sent_whole_at_the_start_is_kept() -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "view", "input": {"path": "a"}}
    assert collected(START, started(call), stopped()).message["content"] == [call]


def test_signatures_citations_and_unknown_deltas() -> None:
    accumulator = collected(
        START,
        started({"type": "thinking", "thinking": "", "signature": ""}),
        delta(type="thinking_delta", thinking="Hm"),
        delta(type="thinking_delta", thinking="m."),
        delta(type="signature_delta", signature="abc"),
        stopped(),
        started({"type": "text", "text": "", "citations": None}, 1),
        delta(1, type="text_delta", text="As they say"),
        delta(1, type="citations_delta", citation={"cited_text": "one"}),
        delta(1, type="citations_delta", citation={"cited_text": "two"}),
        stopped(1),
        started({"type": "compaction", "content": None}, 2),
        delta(2, type="compaction_delta", content="So far …"),
        stopped(2),
    )
    thought, words, compaction = accumulator.message["content"]
    assert thought == {"type": "thinking", "thinking": "Hmm.", "signature": "abc"}
    assert words["citations"] == [{"cited_text": "one"}, {"cited_text": "two"}]
    assert compaction == {"type": "compaction", "content": "So far …"}


def test_usage_is_merged_and_totals_replace() -> None:
    accumulator = collected(
        {
            "type": "message_start",
            "message": {
                "content": [],
                "usage": {"input_tokens": 7, "output_tokens": 1, "service_tier": "standard"},
            },
        },
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None, "container": {"id": "c"}},
            "usage": {"output_tokens": 90, "input_tokens": None, "cache_read_input_tokens": 5},
            "context_management": {"applied_edits": []},
        },
        {"type": "message_delta", "delta": {"container": None}, "usage": {"output_tokens": 95}},
        {"type": "message_stop"},
    )
    said = accumulator.message
    assert said["usage"] == {
        "input_tokens": 7,
        "output_tokens": 95,
        "service_tier": "standard",
        "cache_read_input_tokens": 5,
    }
    assert said["stop_reason"] == "end_turn"
    assert said["stop_sequence"] is None
    assert said["container"] == {"id": "c"}
    assert said["context_management"] == {"applied_edits": []}


def test_the_message_can_be_read_while_it_grows() -> None:
    accumulator = collected(START, started({"type": "text", "text": ""}), delta(type="text_delta", text="a"))
    first = accumulator.message
    assert first["content"][0]["text"] == "a"
    accumulator.add(delta(type="text_delta", text="b"))
    assert accumulator.message is first
    assert first["content"][0]["text"] == "ab"
    assert not accumulator.complete


def test_a_character_cut_in_two_is_put_together() -> None:
    accumulator = collected(
        START,
        started({"type": "text", "text": ""}),
        delta(type="text_delta", text="\ud83c"),
    )
    assert accumulator.message["content"][0]["text"] == "\ufffd"
    accumulator.add(delta(type="text_delta", text="\udf88!"))
    accumulator.add(stopped())
    assert accumulator.message["content"][0]["text"] == "🎈!"


def test_a_server_call_goes_back_with_its_result_only() -> None:
    call = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
    result = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
    alone = collected(START, started(call), stopped())
    assert alone.partial()["content"] == []
    both = collected(START, started(call), stopped(), started(result, 1), stopped(1))
    assert both.partial()["content"] == [call, result]


@pytest.mark.parametrize(
    "events",
    [
        [started({"type": "text", "text": ""})],
        [{"type": "message_stop"}],
        [START, delta(type="text_delta", text="x")],
        [START, stopped()],
        [START, started({"type": "text", "text": ""}), stopped(), delta(type="text_delta", text="x")],
    ],
)
def test_events_out_of_order_are_an_error(events: list[dict[str, Any]]) -> None:
    with pytest.raises(StreamInterruptedError):
        collected(*events)


def test_unknown_events_are_passed_over() -> None:
    assert collected({"type": "ping"}, START, {"type": "news", "x": 1}).message["content"] == []
