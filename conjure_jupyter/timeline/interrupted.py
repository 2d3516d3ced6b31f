"""After a crash: give every call a result and every turn an end, so that the history can be sent again."""

from __future__ import annotations

from typing import Any

from ..types import Block
from .base import BaseTimeline
from .messages import MessageProjection
from .projections import add_usage

STARTED = (
    "Interrupted: the session ended while this call ran. It may have run in part; "
    "check what it did before you run it again."
)
NOT_STARTED = "Interrupted: the session ended before this call ran. Nothing was done."

_ACTIVITY = frozenset({"user", "assistant", "tool_call", "tool_result"})
_DENIED = frozenset({"deny", "denied"})


def repair(timeline: BaseTimeline, *, waiting: bool = False) -> list[Block]:
    """Append what a turn that broke off still needs: "interrupted" results, and its ``turn_end``.

    A log that needs nothing is left as it is.

    Args:
        timeline: open for writing; no turn of it is running.
        waiting: whether to end calls, too, that wait for the user's word. They can still be approved.

    Returns:
        The new blocks.

    Raises:
        TimelineError: they cannot be written.
    """
    messages, state = MessageProjection(), _LastAnswer()
    for block in timeline.blocks:
        messages.feed(block)
        state.feed(block)
    new = []
    for call in messages.pending_calls():
        started = call.id in state.started
        if call.id in state.waiting and not started and not waiting:
            continue
        data = {
            "tool_use_id": call.id,
            "content": STARTED if started else NOT_STARTED,
            "is_error": True,
            "meta": {"interrupted": True, "started": started},
        }
        new.append(timeline.append("tool_result", data))
        messages.feed(new[-1])
    if state.open and not messages.pending_calls():
        end: dict[str, Any] = {
            "reason": "interrupted",
            "usage": state.usage,
            "cost": None,
            "error": "The session ended before this turn did",
            "files": [],
        }
        new.append(timeline.append("turn_end", end))
    return new


class _LastAnswer:
    """What is known of the last turn and of the calls of its last answer."""

    def __init__(self) -> None:
        self.started: set[str] = set()
        self.waiting: set[str] = set()
        self.open = False
        self.usage: dict[str, Any] = {}
        self._turn = 0

    def feed(self, block: Block) -> None:
        data = block.data
        if block.turn > self._turn:
            self._turn, self.usage = block.turn, {}
        if block.kind == "assistant":
            self.started.clear()
            self.waiting.clear()
            message = data.get("message")
            if isinstance(message, dict):
                add_usage(self.usage, message.get("usage"))
        elif block.kind == "tool_call" and data.get("decision") not in _DENIED:
            self.started.add(str(data.get("id")))
        elif block.kind == "approval":
            ids = _ids(data.get("calls"))
            if data.get("verdicts") is None:
                self.waiting |= ids
            else:
                self.waiting -= ids
                self.open = True
        if block.kind in _ACTIVITY and not _made_up(block):
            self.open = True
        elif block.kind in ("turn_end", "undo"):
            self.open = False


def _made_up(block: Block) -> bool:
    meta = block.data.get("meta")
    return isinstance(meta, dict) and meta.get("interrupted") is True


def _ids(calls: Any) -> set[str]:
    """The ids of an approval's calls, given as ids or as objects that have one."""
    if not isinstance(calls, list):
        return set()
    return {str(call.get("id") if isinstance(call, dict) else call) for call in calls}
