"""Server-sent events, cut anywhere."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conjure_jupyter.clients.sse import EventDecoder
from conjure_jupyter.errors import StreamInterruptedError

_events = st.lists(
    st.dictionaries(st.sampled_from(["type", "text", "n"]), st.text() | st.integers(), min_size=1), max_size=4
)


def decoded(body: bytes, cuts: list[int] | None = None) -> list[dict[str, Any]]:
    decoder = EventDecoder()
    places = [0, *sorted(cut % (len(body) + 1) for cut in cuts or ()), len(body)]
    events: list[dict[str, Any]] = []
    for start, end in itertools.pairwise(places):
        events += decoder.feed(body[start:end])
    return events + decoder.finish()


@given(
    _events,
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.lists(st.integers(0, 10_000), max_size=8),
    st.booleans(),
)
def test_any_cut_and_any_line_end(
    events: list[dict[str, Any]], newline: str, cuts: list[int], ascii_only: bool
) -> None:
    lines: list[str] = []
    for event in events:
        lines += [
            f"event: {event.get('type', 'x')}",
            ": a comment",
            "id: 7",
            *_data(event, ascii_only),
            "",
            "",
        ]
    body = newline.join(lines)
    found = decoded(body.encode("utf-8", "replace"), cuts)
    assert [{name: value for name, value in event.items() if name != "type"} for event in found] == [
        {name: value for name, value in event.items() if name != "type"} for event in events
    ]


def _data(event: dict[str, Any], ascii_only: bool) -> list[str]:
    # \u2028 and the like are no line ends here, whatever str.splitlines thinks.
    text = json.dumps(event, ensure_ascii=ascii_only, indent=1)
    return [f"data:{line}" for line in text.split("\n")]


def test_names_are_used_where_the_data_has_no_type() -> None:
    assert decoded(b'event: ping\ndata: {"a": 1}\n\n') == [{"a": 1, "type": "ping"}]
    assert decoded(b'data: {"type": "x"}\n\n') == [{"type": "x"}]


def test_a_byte_order_mark_and_other_peoples_endings() -> None:
    assert decoded(b'\xef\xbb\xbfdata: {"type": "x"}\n\ndata: [DONE]\n\nevent: y\n\ndata:\n\n') == [
        {"type": "x"}
    ]


def test_a_last_event_without_its_blank_line_counts_if_it_is_whole() -> None:
    assert decoded(b'data: {"type": "x"}') == [{"type": "x"}]
    assert decoded(b'data: {"type": "x') == []


@pytest.mark.parametrize("data", [b"{", b"[1]", b'"text"', b"\xff\xfe"])
def test_anything_but_objects_is_an_error(data: bytes) -> None:
    with pytest.raises(StreamInterruptedError, match="not a JSON object"):
        EventDecoder().feed(b"data: " + data + b"\n\n")


def test_a_line_without_end_is_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conjure_jupyter.clients.sse.MAX_LINE", 1000)
    decoder = EventDecoder()
    for _ in range(10):
        decoder.feed(b"x" * 100)
    with pytest.raises(StreamInterruptedError, match="1000 bytes"):
        decoder.feed(b"x")
