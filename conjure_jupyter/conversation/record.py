"""A session's log, and what is read from it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

from ..timeline import Discovery, MessageProjection, Timeline, TurnsProjection, follow, repair
from ..types import Block, Message, ToolCall, ToolResult, Usage
from .reply import Reply
from .responses import extract_tool_uses


class PrefixProjection:
    """The part of every request that stays the same: fixed by the first turn, and anew when tools move.

    A move that was undone did not happen.
    """

    def __init__(self) -> None:
        self._moves: list[tuple[int, dict[str, Any]]] = []

    @property
    def current(self) -> dict[str, Any] | None:
        """The data of the block that holds now: system prompt, tools, skills, place."""
        return self._moves[-1][1] if self._moves else None

    def feed(self, block: Block) -> None:
        """Take in the next block."""
        if block.kind in ("prefix", "place"):
            self._moves.append((block.turn, block.data))
        elif block.kind == "undo":
            first, later = self._moves[:1], self._moves[1:]
            self._moves = first + [move for move in later if move[0] < block.data["before_turn"]]


class Record:
    """The timeline of a session and its projections; nothing is on disk before ``open``.

    Attributes:
        history: the messages it stands for.
        discovery: its artifacts.
    """

    def __init__(self, folder: Path, about: dict[str, Any]) -> None:
        self.folder = folder
        self.history = MessageProjection()
        self.discovery = Discovery()
        self._turns = TurnsProjection()
        self._prefix = PrefixProjection()
        self._about = about
        self._timeline: Timeline | None = None

    @property
    def timeline(self) -> Timeline | None:
        """The log, None while nothing was said."""
        return self._timeline

    @property
    def prefix(self) -> dict[str, Any] | None:
        """What is fixed of every request: system prompt, tools, skills, place; None before the first turn."""
        return self._prefix.current

    def log(self) -> Timeline:
        """The log, which must be open."""
        if self._timeline is None:
            raise RuntimeError("the log is not open")
        return self._timeline

    @property
    def turns(self) -> int:
        """How many turns there were."""
        return self._timeline.turn if self._timeline else 0

    @property
    def messages(self) -> list[Message]:
        """The conversation as the API takes it."""
        return list(self.history.messages)

    @property
    def pending(self) -> list[ToolCall]:
        """Calls without a result."""
        return self.history.pending_calls()

    @property
    def usage(self) -> Usage:
        """Tokens of all turns."""
        return self._turns.usage

    @property
    def cost(self) -> float | None:
        """USD of all turns whose cost is known, None when none is."""
        return self._turns.cost

    @property
    def waiting(self) -> list[ToolCall]:
        """Calls of a paused turn that wait for the user's word."""
        for block in reversed(self._blocks):
            if block.kind == "approval":
                if block.data["verdicts"] is not None:
                    break
                asked = {call["id"] for call in block.data["calls"]}
                return [call for call in self.pending if call.id in asked]
            if block.kind == "assistant":
                break
        return []

    @property
    def options(self) -> dict[str, Any]:
        """What the user said of the latest turn: settings and skill."""
        said = next((block.data for block in reversed(self._blocks) if block.kind == "user"), {})
        return dict(said.get("options", {}))

    @property
    def skill_folders(self) -> list[Path]:
        """Where the skills came from that Claude was told of, in turns that were not undone."""
        named: list[tuple[int, str]] = []
        for block in self._blocks:
            if block.kind == "prefix":  # a move names no others
                named += [(0, path) for path in block.data.get("skills", ())]
            elif block.kind == "user":
                named += [(block.turn, path) for path in block.data.get("skills", ())]
            elif block.kind == "undo":
                named = [(turn, path) for turn, path in named if turn < block.data["before_turn"]]
        return [Path(path) for path in dict.fromkeys(path for _, path in named)]

    @property
    def _blocks(self) -> Sequence[Block]:
        return self._timeline.blocks if self._timeline else ()

    async def open(self) -> Timeline:
        """The log, made at the first call.

        Raises:
            SessionLockedError: another process writes to it.
            TimelineError: it cannot be made.
        """
        if self._timeline is None:
            self._use(await asyncio.to_thread(Timeline.create, self.folder, self._about))
        assert self._timeline is not None  # noqa: S101  made just above
        return self._timeline

    async def reopen(self) -> list[str]:
        """Read a log that exists, and close in it what a crash cut short; a paused turn stays paused.

        Returns:
            What was wrong with it, for the user.

        Raises:
            SessionLockedError: another process writes to it.
            TimelineError: it cannot be read.
        """
        timeline = await asyncio.to_thread(Timeline.open, self.folder)
        self._use(timeline)
        self.close_broken_turn()
        return list(timeline.problems)

    def close_broken_turn(self) -> None:
        """Give a turn that could not be brought to its end what it lacks: results and an end.

        Raises:
            TimelineError: it still cannot be written.
        """
        if self._timeline is not None:
            repair(self._timeline)

    def _use(self, timeline: Timeline) -> None:
        self._timeline = timeline
        follow(timeline, self.history, self.discovery, self._turns, self._prefix)

    def so_far(self) -> tuple[list[Message], list[tuple[ToolCall, ToolResult]]]:
        """Claude's messages of the current turn, and its calls that have a result."""
        blocks = [block for block in self._blocks if block.turn == self.turns]
        messages = [block.data["message"] for block in blocks if block.kind == "assistant"]
        results = {
            block.data["tool_use_id"]: ToolResult(
                block.data["tool_use_id"], block.data["content"], block.data["is_error"], block.data["meta"]
            )
            for block in blocks
            if block.kind == "tool_result"
        }
        calls = [call for message in messages for call in extract_tool_uses(message)]
        return messages, [(call, results[call.id]) for call in calls if call.id in results]

    def skills_since(self, turn: int) -> set[str]:
        """Folders of the skills that Claude heard of in this turn or later."""
        users = (block.data for block in self._blocks if block.kind == "user" and block.turn >= turn)
        return {path for data in users for path in data.get("skills", ())}

    def last_heard(self, before: int) -> int:
        """The position of the latest block up to turn ``before`` that told Claude of artifacts."""
        told = (
            block.seq
            for block in self._blocks
            if block.kind == "prefix" or (block.kind == "user" and block.turn < before)
        )
        return max(told, default=-1)

    def names_since(self, seq: int) -> list[str]:
        """Names of artifacts that were given or taken away after a position of the log."""
        later = (b for b in self._blocks if b.kind in ("register", "unregister") and b.seq > seq)
        return list(dict.fromkeys(str(block.data["name"]) for block in later))

    def read_in_turns(self, upto: int, locations: AbstractSet[str]) -> list[str]:
        """Which of some paths Claude viewed in turns up to ``upto``."""
        messages = (b.data["message"] for b in self._blocks if b.kind == "assistant" and b.turn <= upto)
        calls = (call for message in messages for call in extract_tool_uses(message))
        viewed = (str(call.input.get("path")) for call in calls if call.name == "view")
        return list(dict.fromkeys(path for path in viewed if path in locations))

    def messages_before(self, turn: int) -> list[Message]:
        """The conversation as the API takes it, continued from before a turn."""
        branch = MessageProjection()
        for block in self._blocks:
            branch.feed(block)
        branch.feed(Block(0, self.turns, "undo", {"before_turn": turn}, ""))
        return branch.messages

    def refuse_pending(self) -> None:
        """Answer the calls of a paused turn: the user went on without a word on them."""
        if self._timeline is None:
            return
        for call in self.pending:
            text = "Not run: the user went on without approving it."
            self._timeline.append(
                "tool_result", {"tool_use_id": call.id, "content": text, "is_error": True, "meta": {}}
            )

    async def end_turn(self, reply: Reply) -> None:
        """Write how a turn ended, and wait until all of it is on disk.

        Raises:
            TimelineError: the disk failed.
        """
        self.log().append(
            "turn_end",
            {
                "reason": reply.stop_reason,
                "usage": reply.usage,
                "cost": reply.cost,
                "duration": round(reply.duration, 3),
                "error": reply.error,
                "files": [file.path for file in reply.files],
            },
        )
        await self.log().synced()

    async def close(self) -> None:
        """Let go of the log."""
        if self._timeline is not None:
            await asyncio.to_thread(self._timeline.close)
