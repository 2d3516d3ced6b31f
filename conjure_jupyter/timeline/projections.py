"""What is read from blocks: small objects that are fed each block once and answer questions at any time."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..types import Block, Usage
from .base import BaseTimeline
from .sanitise import user_content

#: Longest prompt, in characters, that a summary keeps.
PROMPT_LENGTH = 200


class Projection(Protocol):
    """Anything that is derived from a timeline."""

    def feed(self, block: Block) -> None:
        """Take the next block. Kinds it does not know, and data it did not expect, are passed over."""


def follow(timeline: BaseTimeline, *projections: Projection) -> Callable[[], None]:
    """Feed the projections all blocks so far and every later one; returns a function that ends it."""
    ends = [timeline.subscribe(projection.feed, replay=True) for projection in projections]

    def end() -> None:
        for unsubscribe in ends:
            unsubscribe()

    return end


def add_usage(total: Usage, more: Any) -> None:
    """Add the token counts of ``more`` to ``total``; also those inside objects, and nothing else."""
    if not isinstance(more, dict):
        return
    for name, value in more.items():
        if isinstance(value, dict):
            inner = total.setdefault(name, {})
            if isinstance(inner, dict):
                add_usage(inner, value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            known = total.get(name, 0)
            if isinstance(known, int | float):
                total[name] = known + value


def prompt_text(content: Any, limit: int = PROMPT_LENGTH) -> str:
    """The text of what the user said, on one line of at most ``limit`` characters."""
    texts = (block["text"] for block in user_content(content) if block["type"] == "text")
    line = " ".join(" ".join(texts).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


@dataclass(slots=True)
class TurnSummary:
    """One turn.

    Attributes:
        turn: its number.
        prompt: what the user said, shortened to ``PROMPT_LENGTH`` characters on one line.
        model: the model that was asked.
        started: when the user spoke, ISO 8601.
        ended: when it ended last, None while it runs.
        stop_reason: how it ended, None while it runs.
        usage: token counts: what ``turn_end`` says, and until then the sum over Claude's answers.
        cost: in USD, None when it is not known.
        error: one line when it did not end well.
        files: what it made, as ``turn_end`` lists it.
        requests: how many answers of Claude's are logged.
        tool_calls: how many results are logged.
        undone: whether history was continued from before it. What it cost stays counted.
    """

    turn: int
    prompt: str = ""
    model: str | None = None
    started: str | None = None
    ended: str | None = None
    stop_reason: str | None = None
    usage: Usage = field(default_factory=dict)
    cost: float | None = None
    error: str | None = None
    files: list[Any] = field(default_factory=list)
    requests: int = 0
    tool_calls: int = 0
    undone: bool = False

    @property
    def duration(self) -> float | None:
        """Seconds from the prompt to the turn's end, None while it runs."""
        if self.started is None or self.ended is None:
            return None
        try:
            start, end = dt.datetime.fromisoformat(self.started), dt.datetime.fromisoformat(self.ended)
            return max(0.0, (end - start).total_seconds())
        except (ValueError, TypeError):
            return None


class TurnsProjection:
    """The turns of a session, by number. A turn's last ``turn_end`` speaks for the whole of it."""

    def __init__(self) -> None:
        self.turns: dict[int, TurnSummary] = {}

    def feed(self, block: Block) -> None:
        """Take the next block."""
        data = block.data
        if block.kind == "undo":
            self._undo(data.get("before_turn"))
        elif block.kind == "user":
            turn = self._turn(block)
            if turn.started is None:
                turn.prompt = prompt_text(data.get("prompt") or data.get("content"))
                turn.model = _text(data.get("model"))
                turn.started = block.time
        elif block.kind == "assistant":
            turn = self._turn(block)
            turn.requests += 1
            message = data.get("message")
            if isinstance(message, dict):
                add_usage(turn.usage, message.get("usage"))
        elif block.kind == "tool_result":
            self._turn(block).tool_calls += 1
        elif block.kind == "turn_end":
            self._end(self._turn(block), block)

    @property
    def usage(self) -> Usage:
        """Token counts of all turns."""
        total: Usage = {}
        for turn in self.turns.values():
            add_usage(total, turn.usage)
        return total

    @property
    def cost(self) -> float | None:
        """USD of all turns whose cost is known, None when none is."""
        known = [turn.cost for turn in self.turns.values() if turn.cost is not None]
        return sum(known) if known else None

    def _turn(self, block: Block) -> TurnSummary:
        return self.turns.setdefault(block.turn, TurnSummary(block.turn))

    def _end(self, turn: TurnSummary, block: Block) -> None:
        data = block.data
        turn.ended = block.time
        turn.stop_reason = _text(data.get("reason"))
        turn.error = _text(data.get("error"))
        if isinstance(data.get("usage"), dict) and data["usage"]:
            turn.usage = {}
            add_usage(turn.usage, data["usage"])
        if isinstance(data.get("cost"), int | float):
            turn.cost = float(data["cost"])
        if isinstance(data.get("files"), list):
            turn.files = data["files"]

    def _undo(self, before: Any) -> None:
        if isinstance(before, int):
            for turn in self.turns.values():
                turn.undone |= turn.turn >= before


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
