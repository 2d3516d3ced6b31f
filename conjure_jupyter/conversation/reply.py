"""The value of a turn."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..types import FileRef, Message, ToolCall, ToolResult, Usage


@dataclass(frozen=True, slots=True)
class ToolRecord:
    """A call and what it gave."""

    call: ToolCall
    result: ToolResult


@dataclass(frozen=True, slots=True)
class Reply:
    """What a turn gave.

    Attributes:
        text: Claude's answer: the text of its last message that has any.
        files: what was made or changed under ``outputs/``.
        tool_calls: every call with its result, in order.
        usage: token counts of the turn.
        cost: USD; None when the model's price is not known, 0 offline.
        stop_reason: the API's (``end_turn``, ``max_tokens``, ``refusal``, …), or ``stopped``,
            ``max_iterations``, ``budget``, ``approval``, ``error``.
        error: one line when it did not end well.
        session_id: the session, for ``Session.resume``.
        turn: its number in the session, from 1.
        duration: seconds.
        retries: how often a request was sent again.
        model: the model that answered.
        messages: Claude's messages of this turn, whole.
        notices: what the user was told besides.
    """

    text: str
    files: tuple[FileRef, ...] = ()
    tool_calls: tuple[ToolRecord, ...] = ()
    usage: Usage = field(default_factory=dict)
    cost: float | None = None
    stop_reason: str = "end_turn"
    error: str | None = None
    session_id: str = ""
    turn: int = 0
    duration: float = 0.0
    retries: int = 0
    model: str = ""
    messages: tuple[Message, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether Claude came to an end by itself."""
        return self.stop_reason in {"end_turn", "stop_sequence"}

    def __str__(self) -> str:
        return self.text


def text_of(message: Message) -> str:
    """The text blocks of a message, joined."""
    content = message["content"]
    if isinstance(content, str):
        return content
    return "".join(block["text"] for block in content if block.get("type") == "text" and block.get("text"))
