"""Whatever is logged, in whatever order: the API would take the history, and what was sent never changes."""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from conjure_jupyter.timeline import MessageProjection, Timeline, TurnsProjection, follow, repair

from .artifact_builders import made
from .builders import (
    answer,
    live,
    project,
    prompt,
    result,
    server_tool_result,
    server_tool_use,
    text,
    thinking,
    tool_use,
)
from .rules import assert_accepted

REASONS = ["end_turn", "tool_use", "max_tokens", "pause_turn", "refusal", "stop_sequence", None]
IDS = st.sampled_from("abcd")
PARTS = st.one_of(
    st.builds(text, st.sampled_from(["", " ", "x"])),
    st.builds(thinking, st.just("hm"), st.sampled_from(["", "sig"])),
    st.builds(tool_use, IDS),
    st.builds(server_tool_use, IDS),
    st.builds(server_tool_result, IDS),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KINDS = [
    "user",
    "assistant",
    "tool_result",
    "tool_call",
    "notice",
    "approval",
    "turn_end",
    "undo",
    "compaction",
    "artifact",
    "hide",
]
KEYS = [
    "content",
    "message",
    "partial",
    "tool_use_id",
    "text",
    "before_turn",
    "summary",
    "upto_turn",
    "calls",
    "artifact_path",
    "tool_call_ids",
]


class Conversation(RuleBasedStateMachine):
    """A log on disk, written in any order, reopened, repaired, and compared with what was sent."""

    @initialize()
    def create(self) -> None:
        self.home = tempfile.TemporaryDirectory()
        self.timeline = Timeline.create(Path(self.home.name) / "s1", {})
        self.projection, self.turns = MessageProjection(), TurnsProjection()
        follow(self.timeline, self.projection, self.turns)
        self.sent: list[dict[str, Any]] = []
        self.copies: list[dict[str, Any]] = []
        self.rewritten = False

    def teardown(self) -> None:
        self.timeline.close()
        self.home.cleanup()

    @rule(value=st.sampled_from(["", "go", "on"]), new=st.booleans())
    def user(self, value: str, new: bool) -> None:
        # Only a pause that the service meant to go on from lets a prompt replace what was sent.
        last = [block for block in self.timeline.blocks if block.kind in ("assistant", "user")]
        paused = [block.data.get("message", {}).get("stop_reason") == "pause_turn" for block in last]
        self.rewritten |= any(paused)
        if new:
            self.timeline.begin_turn()
        self.timeline.append("user", prompt(value))

    @rule(content=st.lists(PARTS, max_size=5), reason=st.sampled_from(REASONS), partial=st.booleans())
    def assistant(self, content: list[dict[str, Any]], reason: str | None, partial: bool) -> None:
        data = answer(*content, partial=partial)
        data["message"]["stop_reason"] = reason
        self.timeline.append("assistant", data)

    @rule(ids=st.lists(IDS, min_size=1, max_size=3, unique=True))
    def calls(self, ids: list[str]) -> None:
        self.timeline.append("assistant", answer(text("I look."), *map(tool_use, ids)))

    @rule(id_=IDS)
    def any_result(self, id_: str) -> None:
        self.timeline.append("tool_result", result(id_))

    @rule()
    def next_result(self) -> None:
        for call in self.projection.pending_calls()[-1:]:
            self.timeline.append("tool_call", {"id": call.id, "name": call.name, "decision": "allow"})
            self.timeline.append("tool_result", result(call.id))

    @rule()
    def notice(self) -> None:
        self.timeline.append("notice", {"text": "told"})

    @rule(name=st.sampled_from("xy"), ids=st.lists(IDS, max_size=2, unique=True))
    def artifact(self, name: str, ids: list[str]) -> None:
        made(self.timeline, name, call=ids[0] if ids else None, tool_call_ids=ids)

    @rule(name=st.sampled_from("xy"))
    def hide(self, name: str) -> None:
        logical = f"fi:turn_{self.timeline.turn:04d}.files/{name}"
        self.timeline.append("hide", {"artifact_path": logical, "replacement_text": "gone"})

    @rule(back=st.integers(0, 3))
    def undo(self, back: int) -> None:
        self.rewritten = True
        self.timeline.append("undo", {"before_turn": self.timeline.turn - back, "reason": "user"})

    @rule(back=st.integers(-1, 3))
    def compact(self, back: int) -> None:
        self.rewritten = True
        self.timeline.append("compaction", {"summary": "before", "upto_turn": self.timeline.turn - back})

    @rule()
    def repair(self) -> None:
        repair(self.timeline)
        assert self.projection.pending_calls() == []
        assert repair(self.timeline) == []

    @rule()
    def reopen(self) -> None:
        before = self.timeline.blocks
        self.timeline.close()
        self.timeline = Timeline.open(self.timeline.folder)
        assert self.timeline.problems == []
        assert self.timeline.blocks == before
        projection, turns = MessageProjection(), TurnsProjection()
        follow(self.timeline, projection, turns)
        assert projection.messages == self.projection.messages
        assert projection.pending_calls() == self.projection.pending_calls()
        assert turns.turns == self.turns.turns
        self.projection, self.turns = projection, turns
        self.sent = []

    @invariant()
    def the_api_accepts_it_and_what_was_sent_stands(self) -> None:
        messages = self.projection.messages
        assert_accepted(messages)
        assert [repr(message) for message in self.sent] == [
            repr(message) for message in self.copies[: len(self.sent)]
        ]
        if not self.rewritten:
            assert len(messages) >= len(self.sent)
            assert all(new is old for new, old in zip(messages, self.sent, strict=False))
        self.sent, self.copies = messages, copy.deepcopy(messages)
        self.rewritten = False


TestConversation = Conversation.TestCase
TestConversation.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(KINDS), st.dictionaries(st.sampled_from(KEYS), JSON | st.lists(PARTS), max_size=6)
        ),
        max_size=12,
    )
)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_data_that_nobody_would_write_breaks_nothing(blocks: list[tuple[str, dict[str, Any]]]) -> None:
    timeline, projection = live()
    turns = TurnsProjection()
    for kind, data in blocks:
        timeline.append(kind, data, turn=timeline.begin_turn())
    for block in timeline.blocks:
        turns.feed(block)
    repair(timeline)

    assert repr(project(timeline.blocks).messages) == repr(projection.messages)
    assert all(message["content"] for message in projection.messages)
