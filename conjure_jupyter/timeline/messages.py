"""The conversation in the Messages API's form, derived from blocks alone.

At every moment ``messages`` is a history that the API accepts, and one that only grows: a message that may
have been sent is never touched again, so the service's prompt cache keeps matching. From this follows

* an answer with tool calls appears together with the message that holds all its results, not before;
* the results come first in that message, in the order of the calls, then the notices logged by then;
* a result ends with the digests of the artifacts that were captured while it was waited for;
* a notice logged after its message was complete becomes a user message of its own (the API joins
  neighbours of one role), unless Claude spoke last: then it waits for what the user says next;
* what the user says while results are missing waits for them and follows them in the same message.

Only ``undo``, ``compaction`` and a prompt after an answer that the service had paused replace earlier
messages. Results lost from a damaged log are made up as errors, so that the rest of it can be used.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from ..types import Block, Content, Message, ToolCall
from . import sanitise
from .artifact import Artifact
from .index import ArtifactIndex
from .rendering import captured_text

LOST_MESSAGE = "[An earlier message was lost.]"
LOST_RESULT = "The result of this call was lost. It may have run; check before you run it again."


@dataclass(slots=True)
class _State:
    """Everything that an undo brings back. ``messages`` and ``turns`` only grow, so a length restores them.

    Attributes:
        messages: the history.
        turns: the turn of each message.
        answer: an answer whose results are not all there.
        calls: its calls by id, in order.
        results: what they gave, by id.
        captured: the artifacts they made, by id and logical path.
        prompt: what the user said meanwhile.
        notices: what Claude is told with the next user message.
        paused: whether the service paused since the last user message.
    """

    messages: list[Message] = field(default_factory=list)
    turns: list[int] = field(default_factory=list)
    answer: Message | None = None
    calls: dict[str, ToolCall] = field(default_factory=dict)
    results: dict[str, Content] = field(default_factory=dict)
    captured: dict[str, dict[str, Artifact]] = field(default_factory=dict)
    prompt: list[Content] = field(default_factory=list)
    notices: list[Content] = field(default_factory=list)
    paused: bool = False


@dataclass(frozen=True, slots=True)
class _Checkpoint:
    turn: int
    length: int
    state: _State


class MessageProjection:
    """Feed it every block in order; read ``messages`` before each request."""

    def __init__(self) -> None:
        self._state = _State()
        self._checkpoints: list[_Checkpoint] = []
        self._turn = -1
        self._artifacts = ArtifactIndex()

    @property
    def messages(self) -> list[Message]:
        """The history: a new list of the same objects at each call. Do not change them."""
        return list(self._state.messages)

    def pending_calls(self) -> list[ToolCall]:
        """Calls that wait for their result, in order."""
        state = self._state
        return [call for id_, call in state.calls.items() if id_ not in state.results]

    def feed(self, block: Block) -> None:
        """Take the next block; kinds that say nothing to Claude are passed over."""
        known = len(self._artifacts.all)
        self._artifacts.feed(block)
        if block.kind == "undo":
            self._undo(block.data.get("before_turn"))
            return
        if block.turn > self._turn:
            self._turn = block.turn
            self._checkpoints.append(_Checkpoint(block.turn, len(self._state.messages), _copy(self._state)))
        if block.kind == "user":
            self._user(block)
        elif block.kind == "assistant":
            self._assistant(block)
        elif block.kind == "tool_result":
            self._result(block)
        elif block.kind == "notice":
            self._notice(block)
        elif block.kind == "compaction":
            self._compact(block.data)
        for artifact in self._artifacts.all[known:]:
            self._capture(artifact)

    def _user(self, block: Block) -> None:
        state = self._state
        content = sanitise.user_content(block.data.get("content"))
        content = [
            part for part in content if part["type"] != "tool_result"
        ]  # results are blocks of their own
        if state.answer is not None:
            state.prompt += content
            return
        if state.paused:
            self._close_pause()
        if content:
            self._say([*state.notices, *content], block.turn)
            state.notices = []

    def _assistant(self, block: Block) -> None:
        message = block.data.get("message")
        if not isinstance(message, dict):
            return
        state = self._state
        partial = bool(block.data.get("partial"))
        content = sanitise.assistant_content(message, partial=partial)
        if state.answer is not None:  # Claude went on, so the results were there once
            for call in self.pending_calls():
                state.results[call.id] = sanitise.tool_result(
                    {"tool_use_id": call.id, "content": LOST_RESULT, "is_error": True}
                )
            self._flush(block.turn)
        if not content:
            return
        if not state.messages:
            self._say([sanitise.text(LOST_MESSAGE)], block.turn)
        answer: Message = {"role": "assistant", "content": content}
        calls = [b for b in content if b["type"] == "tool_use"]
        state.paused |= message.get("stop_reason") == "pause_turn"
        if calls:
            state.answer = answer
            state.calls = {b["id"]: ToolCall(b["id"], b["name"], b["input"]) for b in calls}
            state.results, state.captured = {}, {}
        else:
            self._add(answer, block.turn)

    def _result(self, block: Block) -> None:
        state = self._state
        id_ = str(block.data.get("tool_use_id"))
        if id_ not in state.calls or id_ in state.results:
            return  # its call was undone or lost, or it was answered before
        state.results[id_] = sanitise.tool_result(block.data)
        if len(state.results) == len(state.calls):
            self._flush(block.turn)

    def _capture(self, artifact: Artifact) -> None:
        """Note an artifact of a call whose results were not sent yet; of several calls, with the first."""
        state = self._state
        call = next((id_ for id_ in artifact.tool_call_ids if id_ in state.calls), None)
        if call is not None:
            state.captured.setdefault(call, {})[artifact.artifact_path] = artifact

    def _notice(self, block: Block) -> None:
        state = self._state
        content = sanitise.user_content(block.data.get("text"))
        if state.answer is None and state.messages and state.messages[-1]["role"] == "user":
            if content:
                self._say(content, block.turn)
        else:
            state.notices += content

    def _flush(self, turn: int) -> None:
        """All results are there: the answer and what follows it become part of the history."""
        state = self._state
        if state.answer is None:
            return
        self._add(state.answer, turn)
        results = [self._with_digests(state.results[id_], state.captured.get(id_)) for id_ in state.calls]
        self._say([*results, *state.notices, *state.prompt], turn)
        state.answer, state.calls, state.results, state.captured = None, {}, {}, {}
        state.prompt, state.notices = [], []

    def _with_digests(self, result: Content, captured: dict[str, Artifact] | None) -> Content:
        if not captured:
            return result
        told = sanitise.text(captured_text(list(captured.values()), self._artifacts.hidden))
        return {**result, "content": [*sanitise.user_content(result["content"]), told]}

    def _close_pause(self) -> None:
        """The user speaks where the service meant to go on: calls it left open cannot stay."""
        state = self._state
        state.paused = False
        start = self._last_run()
        run = state.messages[start:]
        answered = sanitise.answered_calls(part for message in run for part in message["content"])
        closed = [sanitise.without_open_calls(message["content"], answered) for message in run]
        if all(len(new) == len(old["content"]) for new, old in zip(closed, run, strict=True)):
            return
        answers = [
            ({**message, "content": new}, turn)
            for message, new, turn in zip(run, closed, state.turns[start:], strict=True)
            if new
        ]
        # New lists, because checkpoints hold the old ones.
        state.messages = [*state.messages[:start], *(message for message, _ in answers)]
        state.turns = [*state.turns[:start], *(turn for _, turn in answers)]

    def _last_run(self) -> int:
        """Where the answers start that stand at the end of the history."""
        messages = self._state.messages
        start = len(messages)
        while start and messages[start - 1]["role"] == "assistant":
            start -= 1
        return start

    def _undo(self, before: Any) -> None:
        if not isinstance(before, int):
            return
        at = None
        while self._checkpoints and self._checkpoints[-1].turn >= before:
            at = self._checkpoints.pop()
        if at is not None:
            del at.state.messages[at.length :], at.state.turns[at.length :]
            self._state = at.state

    def _compact(self, data: dict[str, Any]) -> None:
        state = self._state
        summary, upto = sanitise.user_content(data.get("summary")), data.get("upto_turn")
        if not summary or not isinstance(upto, int):
            return
        kept = next((i for i, turn in enumerate(state.turns) if turn > upto), len(state.turns))
        if state.paused:  # the service goes on from its answer, whose calls are open
            kept = min(kept, self._last_run())
        if not kept:
            return
        # An answer and its results carry the same turn, so they are never parted here.
        state.messages = [{"role": "user", "content": summary}, *state.messages[kept:]]
        state.turns = [upto, *state.turns[kept:]]

    def _say(self, content: list[Content], turn: int) -> None:
        self._add({"role": "user", "content": content}, turn)
        self._state.paused = False

    def _add(self, message: Message, turn: int) -> None:
        self._state.messages.append(message)
        self._state.turns.append(turn)


def _copy(state: _State) -> _State:
    """A copy whose pending parts are its own; the history's lists are shared, they only grow."""
    return replace(
        state,
        calls=dict(state.calls),
        results=dict(state.results),
        captured={id_: dict(artifacts) for id_, artifacts in state.captured.items()},
        prompt=list(state.prompt),
        notices=list(state.notices),
    )
