"""``%claude trace``: the tool calls of a turn in full, as the log has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import SettingsError
from ..types import ToolCall, ToolResult
from .record import Call, Record, Text
from .render import as_html
from .view import show
from .words import call_line

if TYPE_CHECKING:
    from ..conversation import Session
    from ..types import Block
    from .desk import Desk


def trace(desk: Desk, rest: str) -> None:
    """Show the calls of the turn whose number is given; of the last one when none is.

    Raises:
        SessionError: there is no session.
        SettingsError: there is no such turn.
    """
    session = desk.existing().session
    if rest and not rest.isdecimal():
        raise SettingsError("%claude trace", f"expected the number of a turn, got {rest!r}")
    number = int(rest) if rest else session.turns
    if not 0 < number <= session.turns:
        raise SettingsError("%claude trace", f"there is no turn {number}; the session has {session.turns}")
    record = recorded(session, number)
    calls = "\n".join(call_line(call) for call in record.calls()) or f"Turn {number} has no tool calls"
    show({"text/plain": calls, "text/html": as_html(record, desk.style())})


def recorded(session: Session, number: int) -> Record:
    """A turn as the log has it."""
    record = Record()
    blocks: Sequence[Block] = session.timeline.blocks if session.timeline else []
    calls: dict[str, Call] = {}
    for block in blocks:
        if block.turn != number:
            continue
        if block.kind == "assistant":
            for part in block.data["message"].get("content") or []:
                if part.get("type") == "text":
                    record.items.append(Text(part["text"]))
                elif part.get("type") == "tool_use":
                    call = ToolCall(part["id"], part["name"], part["input"])
                    calls[call.id] = Call(call.id, call.name, call.input, "waiting")
                    record.items.append(calls[call.id])
        elif block.kind == "tool_result" and block.data["tool_use_id"] in calls:
            data = block.data
            made = calls[data["tool_use_id"]]
            made.state = "done"
            made.result = ToolResult(
                data["tool_use_id"], data["content"], data.get("is_error", False), data.get("meta") or {}
            )
    return record
