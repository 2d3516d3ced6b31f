"""The values that the parts hand to each other.

Blocks are what lasts: each is a line of a session's timeline. Events are what moves: a view, a callback or
a progress bar hears them while a turn runs, and none of them is needed to resume.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from .fileref import FileRef as FileRef  # noqa: PLC0414  one of the values handed on; mypy wants the alias

#: A content block in the Messages API's form, such as ``{"type": "text", "text": "…"}``.
Content: TypeAlias = dict[str, Any]

#: A message in the Messages API's form: ``role`` and ``content``.
Message: TypeAlias = dict[str, Any]

#: Token counts in the Messages API's form.
Usage: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call that Claude asked for.

    Attributes:
        id: the API's identifier (``toolu_…``), which the result must carry.
        name: the tool's name.
        input: the arguments, not validated.
    """

    id: str
    name: str
    input: dict[str, Any]


@dataclass(slots=True)
class ToolResult:
    """What a tool call gave.

    Attributes:
        tool_use_id: the call's identifier.
        content: text, or content blocks (text, image, document).
        is_error: whether Claude should read it as a failure.
        meta: facts for the view and the log, never sent to Claude: ``duration`` (seconds), ``exit_code``,
            ``timed_out``, ``truncated`` (bytes cut), ``files`` (workspace-relative paths written).
    """

    tool_use_id: str
    content: str | list[Content] = ""
    is_error: bool = False
    meta: dict[str, Any] = field(default_factory=dict)
    type: Literal["tool_result"] = "tool_result"

    def to_api(self) -> Content:
        """The content block to send to Claude."""
        block: Content = {"type": self.type, "tool_use_id": self.tool_use_id, "content": self.content}
        if self.is_error:
            block["is_error"] = True
        return block

    @property
    def text(self) -> str:
        """The text of the result; other blocks are named in brackets."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(
            block["text"] if block["type"] == "text" else f"[{block['type']}]" for block in self.content
        )


#: Kinds of blocks this version writes. A reader keeps kinds it does not know.
BlockKind: TypeAlias = Literal[
    "session",  # first line: id, created, format, notebook
    "prefix",  # system prompt and tools, frozen from here on
    "user",  # what the user said: content blocks, model, options
    "assistant",  # a message of Claude's, whole or partial
    "tool_call",  # a call is about to run: id, name, decision
    "tool_result",  # what it gave
    "notice",  # something Claude is told with the next message
    "approval",  # calls that wait for the user's word, or the word
    "turn_end",  # how the turn ended: reason, usage, cost, files
    "artifact",  # a version of a file: logical path, digest, and the calls that made it
    "register",  # a name for a path, URL or value; "unregister" takes it away
    "unregister",
    "hide",  # an artifact is shown as a replacement text
    "edit",  # a file outside the working directory, before and after a file tool wrote it
    "snapshot",  # what the working directory held, for undo and for other machines
    "undo",  # history continues from before a turn
    "compaction",
    "place",
]


@dataclass(frozen=True, slots=True)
class Block:
    """One line of a timeline.

    Attributes:
        seq: position in the log, from 0, without gaps in a whole log.
        turn: the turn it belongs to; 0 before the first.
        kind: one of ``BlockKind``, or a kind of a later version.
        data: what it says; its keys depend on the kind (``timeline`` documents them).
        time: UTC, ISO 8601.
    """

    seq: int
    turn: int
    kind: str
    data: dict[str, Any]
    time: str


# Events ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Event:
    """Base of what a view hears while a turn runs."""

    turn: int


@dataclass(frozen=True, slots=True)
class TurnStarted(Event):
    """The user's message is in the log."""

    prompt: str
    model: str


@dataclass(frozen=True, slots=True)
class RequestStarted(Event):
    """A request goes out; ``iteration`` counts from 1 in each turn."""

    iteration: int


@dataclass(frozen=True, slots=True)
class TextDelta(Event):
    """More of Claude's answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta(Event):
    """More of Claude's thinking."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolInputDelta(Event):
    """Claude is writing a tool call; ``size`` is the number of characters so far."""

    id: str
    name: str
    size: int


@dataclass(frozen=True, slots=True)
class AnswerDiscarded(Event):
    """The answer broke off and is asked for again: what was shown of this request is void."""


@dataclass(frozen=True, slots=True)
class AssistantMessage(Event):
    """A whole message of Claude's is in the log."""

    message: Message


@dataclass(frozen=True, slots=True)
class ToolStarted(Event):
    """A call runs."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolOutput(Event):
    """A running call printed something."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class ToolFinished(Event):
    """A call ended and its result is in the log."""

    call: ToolCall
    result: ToolResult


@dataclass(frozen=True, slots=True)
class Retrying(Event):
    """A request failed and is sent again after ``delay`` seconds."""

    attempt: int
    delay: float
    reason: str


@dataclass(frozen=True, slots=True)
class Notice(Event):
    """Something the user should know; ``level`` is ``info`` or ``warning``."""

    text: str
    level: Literal["info", "warning"] = "info"


@dataclass(frozen=True, slots=True)
class UsageUpdated(Event):
    """Tokens and money of the turn so far; ``cost`` is in USD, None when the price is not known."""

    usage: Usage
    cost: float | None


@dataclass(frozen=True, slots=True)
class TurnFinished(Event):
    """The turn is over and its log is on disk.

    Attributes:
        stop_reason: the API's, or ``stopped``, ``max_iterations``, ``budget``, ``approval``, ``error``.
        error: one line for the user when it did not end well.
    """

    stop_reason: str
    error: str | None = None


#: Hears events, on the engine's thread; it must return at once and must not raise.
Listener: TypeAlias = Callable[[Event], None]
