"""What was said, by turn: prompts, answers, calls and their results, summaries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from ..types import Block, Content, ToolCall
from . import sanitise
from .grammar import LogicalPath, parse_or_none, turn_id
from .safe_json import readable_json, valid

Role: TypeAlias = Literal["summary", "user", "assistant", "call", "result", "notice", "artifact", "left_out"]


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that was said or done, as text to read.

    Attributes:
        role: who or what: ``call`` and ``result`` are a tool's, ``artifact`` is a digest or what is shown
            instead, ``summary`` stands for the turns up to this one, ``left_out`` says what is missing.
        turn: the turn's number.
        text: not escaped; what a model, a user or a file says.
    """

    role: Role
    turn: int
    text: str


class Said(NamedTuple):
    """An entry before it is made readable.

    Attributes:
        role: of the entry to come.
        turn: the turn's number.
        value: the block's content blocks, a ``ToolCall``, or the key of a group of artifacts.
        covers: for a summary, the last turn that it stands for.
    """

    role: Role
    turn: int
    value: Any
    covers: int = 0


class Transcript:
    """Reads what was said and done, and what takes it back or stands for it.

    What undone turns said stays findable by logical path.
    """

    def __init__(self) -> None:
        self.live: list[Said] = []  # without what was undone
        self._prompts: dict[int, list[Content]] = {}
        self._answers: dict[int, list[Content]] = {}
        self._calls: dict[tuple[int, str], ToolCall] = {}
        self._results: dict[tuple[int, str], list[Content]] = {}
        self._summaries: dict[str, list[Content]] = {}
        self._asked: dict[str, tuple[int, str]] = {}  # call id -> turn and tool of its latest use

    def feed(self, block: Block) -> None:
        """Take the next block; what it does not know or cannot use is passed over."""
        data, turn = block.data, block.turn
        if block.kind == "user":
            self._user(data, turn)
        elif block.kind == "assistant":
            self._assistant(data, turn)
        elif block.kind == "tool_result":
            self._result(data, turn)
        elif block.kind == "notice":
            self.say("notice", turn, sanitise.user_content(data.get("text")))
        elif block.kind == "compaction":
            self._summary(data, turn)
        elif block.kind == "undo" and type(data.get("before_turn")) is int:
            self.live = [said for said in self.live if said.turn < data["before_turn"]]

    def say(self, role: Role, turn: int, value: Any) -> None:
        """Note something at this place of the log, unless it is empty."""
        if value:
            self.live.append(Said(role, turn, value))

    def tool_name(self, call_id: str) -> str | None:
        """The tool that a call asked for; of its latest use, when an id was used twice."""
        asked = self._asked.get(call_id)
        return None if asked is None else asked[1]

    def resolve(self, path: LogicalPath) -> list[Content] | None:
        """What an ``ar:``, ``tc:`` or ``su:`` path stands for; None when there is nothing."""
        turn = path.turn or 0
        if path.kind == "ar":
            return (self._prompts if path.part == "user.prompt" else self._answers).get(turn)
        if path.kind == "su":
            return self._summaries.get(str(path))
        if path.part == "result":
            return self._results.get((turn, path.rest))
        call = self._calls.get((turn, path.rest))
        return None if call is None else [sanitise.text(call_text(call))]

    def upto(self, turn: int) -> Iterator[Said]:
        """What was said up to a turn, newest first, back to the summary that stands for all before it."""
        summaries = (said.covers for said in self.live if said.role == "summary")
        covers = max((last for last in summaries if last <= turn), default=-1)
        summary = None
        for said in reversed(self.live):
            if said.role == "summary":
                if summary is None and said.covers == covers:
                    summary = said
            elif covers < said.turn <= turn:
                yield said
        if summary is not None:
            yield summary

    def _user(self, data: dict[str, Any], turn: int) -> None:
        content = sanitise.user_content(data.get("content"))
        self.say("user", turn, content)
        typed = sanitise.user_content(data.get("prompt"))
        prompt = typed or [part for part in content if part["type"] == "text"]
        if prompt:
            self._prompts.setdefault(turn, prompt)

    def _assistant(self, data: dict[str, Any], turn: int) -> None:
        message = data.get("message")
        if not isinstance(message, dict):
            return
        content = sanitise.assistant_content(message, partial=bool(data.get("partial")))
        texts = [sanitise.text(part["text"]) for part in content if part["type"] == "text"]
        if texts:
            self._answers[turn] = texts
            self.say("assistant", turn, texts)
        for part in content:
            if part["type"] == "tool_use":
                call = ToolCall(part["id"], part["name"], part["input"])
                self._calls[turn, call.id] = call
                self._results.pop((turn, call.id), None)  # of an earlier use of the same id
                self._asked[call.id] = (turn, call.name)
                self.say("call", turn, call)

    def _result(self, data: dict[str, Any], turn: int) -> None:
        id_ = data.get("tool_use_id")
        if not isinstance(id_, str):
            return
        content = sanitise.user_content(data.get("content"))
        asked = self._asked.get(id_, (turn, ""))[0]
        if (asked, id_) not in self._results:  # only the first one counts
            self._results[asked, id_] = content
            self.say("result", turn, content)

    def _summary(self, data: dict[str, Any], turn: int) -> None:
        content, covers = sanitise.user_content(data.get("summary")), data.get("upto_turn")
        if not content or type(covers) is not int:
            return
        path = parse_or_none(data.get("summary_path"))
        named = path is not None and path.kind == "su"
        self._summaries[str(path) if named else f"su:{turn_id(turn)}.conv.range.summary"] = content
        self.live.append(Said("summary", turn, content, covers))


def call_text(call: ToolCall) -> str:
    """A call's name and input, as JSON."""
    try:
        return readable_json({"name": call.name, "input": call.input})
    except RecursionError:
        return readable_json({"name": call.name, "input": "(nested too deeply to be shown)"})


def content_text(content: list[Content]) -> str:
    """The text of content blocks; other blocks are named in brackets."""
    texts = (part["text"] if part["type"] == "text" else f"[{part['type']}]" for part in content)
    return valid("\n".join(texts))


def bounded(text: str, limit: int) -> str:
    """At most ``limit`` characters of a text: its head and its tail, with the cut stated between them."""
    if len(text) <= limit:
        return text
    gap = f"\n[… {len(text) - limit:,} characters and more left out …]\n"
    room = limit - len(gap)
    if room <= 0:
        return text[:limit]
    tail = room // 3
    return text[: room - tail] + gap + text[len(text) - tail :]
