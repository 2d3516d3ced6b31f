"""What a turn has shown so far, in order: text, tool calls, notices.

Built from events while the turn runs, or from a ``Reply`` when it is over. Views draw it; nothing here
knows about HTML.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from ..conversation.reply import Reply
from ..types import (
    AnswerDiscarded,
    AssistantMessage,
    Event,
    FileRef,
    Notice,
    RequestStarted,
    Retrying,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolFinished,
    ToolInputDelta,
    ToolOutput,
    ToolResult,
    ToolStarted,
    TurnFinished,
    Usage,
    UsageUpdated,
)

#: Characters of a running call's output that are kept for the live view.
LIVE_OUTPUT = 2_000


@dataclass(slots=True)
class Text:
    """A stretch of Claude's answer."""

    text: str


@dataclass(slots=True)
class Note:
    """Something the user should know."""

    text: str
    level: Literal["info", "warning"] = "info"


@dataclass(slots=True)
class Call:
    """A tool call and how far it is.

    Attributes:
        state: ``writing`` while Claude still writes it, then ``waiting``, ``running``, ``done``.
        output: the end of what it has printed, until it has a result.
    """

    id: str
    name: str
    input: dict[str, Any] = field(default_factory=dict)
    state: Literal["writing", "waiting", "running", "done"] = "writing"
    size: int = 0
    output: str = ""
    result: ToolResult | None = None

    @property
    def failed(self) -> bool:
        """Whether it ended with a failure."""
        return self.result is not None and self.result.is_error


Item = Text | Note | Call


@dataclass(slots=True)
class Record:
    """A turn as it is shown.

    Attributes:
        items: what happened, in order.
        status: one line on what goes on now; empty when nothing does.
        stop_reason: None while the turn runs.
        root: the working directory as tools know it, where that is no folder of this machine: the paths of
            calls are told from there.
        usage, cost: of the turn so far; ``cost`` in USD, None when not known.
    """

    items: list[Item] = field(default_factory=list)
    status: str = ""
    model: str = ""
    usage: Usage = field(default_factory=dict)
    cost: float | None = None
    stop_reason: str | None = None
    error: str | None = None
    files: tuple[FileRef, ...] = ()
    root: str | None = None
    _request: int = 0  # index of the first item of the request that runs

    def hear(self, event: Event) -> None:  # noqa: C901, PLR0912  one short case for each kind of event
        """Take in an event."""
        match event:
            case RequestStarted():
                self._request = len(self.items)
                self.status = "Claude is thinking"
            case TextDelta(text=text):
                self.status = ""
                if len(self.items) > self._request and isinstance(self.items[-1], Text):
                    self.items[-1].text += text
                else:
                    self.items.append(Text(text))
            case ThinkingDelta():
                self.status = "Claude is thinking"
            case ToolInputDelta(id=id_, name=name, size=size):
                self._call(id_, name).size = size
                self.status = ""
            case AnswerDiscarded():
                kept = [item for item in self.items[self._request :] if isinstance(item, Note)]
                self.items[self._request :] = kept
            case AssistantMessage(message=message):
                self._take_calls(message)
                self.status = ""
            case ToolStarted(call=call):
                item = self._call(call.id, call.name)
                item.input, item.state = told(call.input, self.root), "running"
            case ToolOutput(id=id_, text=text):
                item = self._call(id_, "")
                item.output = (item.output + text)[-LIVE_OUTPUT:]
            case ToolFinished(call=call, result=result):
                item = self._call(call.id, call.name)
                item.input, item.state, item.result = told(call.input, self.root), "done", result
            case Retrying(attempt=attempt, delay=delay, reason=reason):
                self.status = f"{reason}; attempt {attempt + 1} in {delay:.0f} s"
            case Notice(text=text, level=level):
                self.items.append(Note(text, level))
            case UsageUpdated(usage=usage, cost=cost):
                self.usage, self.cost = usage, cost
            case TurnFinished(stop_reason=stop_reason, error=error):
                self.stop_reason, self.error, self.status = stop_reason, error, ""
            case _:
                pass

    def calls(self) -> Iterator[Call]:
        """The tool calls, in order."""
        return (item for item in self.items if isinstance(item, Call))

    def _take_calls(self, message: dict[str, Any]) -> None:
        for block in _blocks(message):
            if block.get("type") == "tool_use":
                item = self._call(block["id"], block["name"])
                item.input, item.state = told(block["input"], self.root), "waiting"

    def _call(self, id_: str, name: str) -> Call:
        for item in reversed(self.items):
            if isinstance(item, Call) and item.id == id_:
                return item
        made = Call(id_, name)
        self.items.append(made)
        return made


def told(given: dict[str, Any], root: str | None) -> dict[str, Any]:
    """A call's input as the user is shown it: the path of a file from the working directory.

    Commands stay what they are: they are what ran.
    """
    path = given.get("path")
    if root is None or not isinstance(path, str) or not (path + "/").startswith(root + "/"):
        return given
    return {**given, "path": path[len(root) :].strip("/") or "."}


def from_reply(reply: Reply, root: str | None = None) -> Record:
    """The record of a turn that is over; ``root`` as for ``Record``."""
    results = {record.call.id: record for record in reply.tool_calls}
    items: list[Item] = []
    for message in reply.messages:
        for block in _blocks(message):
            if block.get("type") == "text" and block.get("text"):
                items.append(Text(block["text"]))
            elif block.get("type") == "tool_use" and block.get("id") in results:
                done = results.pop(block["id"])
                items.append(_done(done.call, done.result, root))
    items += [_done(record.call, record.result, root) for record in results.values()]
    if reply.text and not any(isinstance(item, Text) for item in items):
        items.append(Text(reply.text))
    items += [Note(text) for text in reply.notices]
    return Record(
        items,
        model=reply.model,
        usage=reply.usage,
        cost=reply.cost,
        stop_reason=reply.stop_reason,
        error=reply.error,
        files=reply.files,
        root=root,
    )


def _done(call: ToolCall, result: ToolResult, root: str | None) -> Call:
    return Call(call.id, call.name, told(call.input, root), "done", result=result)


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content") or []
    return [{"type": "text", "text": content}] if isinstance(content, str) else content
