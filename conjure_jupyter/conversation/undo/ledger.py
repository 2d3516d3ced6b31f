"""Whose doing a change of ``work/`` is, as the ``snapshot`` blocks of a log tell.

A snapshot is taken before each turn and after it. What differs from the one before it is the turn's doing
when it was taken after a turn; when it was taken before one, somebody else changed the files between two
turns. A block is written only where something changed, so every block stands for one such step. A turn that
was cut short has no snapshot after it; then only what was captured as an artifact is known as its doing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from ...errors import SessionError
from ...timeline import BaseTimeline
from ...types import Block
from .manifest import UNSEEN, Snapshot, When, diff

#: Reads a snapshot by the digest of its manifest; raises SessionError.
Load = Callable[[str], Snapshot]

SNAPSHOT = "snapshot"


def latest(blocks: Sequence[Block]) -> str | None:
    """The manifest of the last snapshot; None when there is none, or when it failed."""
    return next((_manifest(block) for block in reversed(blocks) if block.kind == SNAPSHOT), None)


def note(
    timeline: BaseTimeline, snapshot: Snapshot, when: When, *, undoing: str | None = None
) -> Block | None:
    """Write a snapshot to the log, unless the last one says the same.

    Args:
        timeline: open for writing.
        snapshot: what ``work/`` holds.
        when: ``start`` before a turn's first block is written, ``end`` after its last call.
        undoing: the manifest that an undo is about to go back to.

    Raises:
        TimelineError: it cannot be written.
    """
    if undoing is None and snapshot.manifest == latest(timeline.blocks):
        return None
    return timeline.append(SNAPSHOT, snapshot.data(when, undoing=undoing))


def note_failure(timeline: BaseTimeline, when: When, reason: str) -> Block:
    """Write that a snapshot could not be taken: what changed around it is nobody's to undo.

    Raises:
        TimelineError: it cannot be written.
    """
    nothing: dict[str, object] = {"manifest": None, "files": 0, "size": 0, "skipped": []}
    return timeline.append(SNAPSHOT, {**nothing, "when": when, "reason": reason})


def begins_at(blocks: Iterable[Block], turn: int) -> int | None:
    """The position of a turn's first block that is not a snapshot of what was before it."""
    return next((b.seq for b in blocks if b.turn == turn and b.kind not in (SNAPSHOT, "edit", "undo")), None)


@dataclass(slots=True)
class Ledger:
    """What happened to ``work/`` since a turn began.

    Attributes:
        start: what it held then; None when that is not known.
        last: what it held when it was looked at last; None when that is not known.
        by_turns: paths that turns changed.
        by_others: paths that somebody else changed, or that may be anybody's change.
        doubtful: those of them that a turn may have changed which was cut short.
    """

    start: Snapshot | None = None
    last: Snapshot | None = None
    by_turns: set[str] = field(default_factory=set)
    by_others: set[str] = field(default_factory=set)
    doubtful: set[str] = field(default_factory=set)


class _Reader:
    """Takes the blocks since a turn began, one by one."""

    def __init__(self, start: Snapshot, captured: set[tuple[str, str]], load: Load) -> None:
        self.ledger = Ledger(start, start)
        self._last = start
        self._captured = captured
        self._load = load
        self._undone_to: Snapshot | None = None  # where an undo that had begun goes to
        self._sure = True  # all snapshots since the last one are known
        self._interrupted = False

    def take(self, block: Block) -> None:
        """Take the next block."""
        if block.kind == "undo":
            self._undone_to = None
        elif block.kind == "turn_end":
            self._interrupted |= block.data.get("reason") == "interrupted"
        elif block.kind == SNAPSHOT:
            when = block.data.get("when")
            new = _loaded(_manifest(block), self._load)
            if new is None:
                self._sure = False
                return
            self._step(new, when)
            if "undoing" in block.data:
                self._undone_to = _loaded(block.data["undoing"], self._load)
            elif when == "end":
                self._undone_to = None

    def finish(self, now: Snapshot) -> Ledger:
        """Take what is there now."""
        if self._interrupted:
            self._step(now, "start")
        self.ledger.last = self._last if self._sure else None
        return self.ledger

    def _step(self, new: Snapshot, when: object) -> None:
        ledger = self.ledger
        for path, (before, after) in diff(self._last, new).items():
            if UNSEEN in (before, after) or not self._sure:
                ledger.by_others.add(path)
            elif when == "end" or (after is not None and (path, after.sha256) in self._captured):
                ledger.by_turns.add(path)
            elif self._undone_to is None or self._undone_to.at(path) != after:
                ledger.by_others.add(path)
                if self._interrupted:
                    ledger.doubtful.add(path)
        self._last, self._sure, self._interrupted = new, True, False


def read(blocks: Sequence[Block], position: int, load: Load, now: Snapshot) -> Ledger:
    """What happened since the block at ``position``.

    Args:
        blocks: of the log.
        position: where a turn begins.
        load: reads a snapshot.
        now: what is there now.
    """
    start = _loaded(latest([block for block in blocks if block.seq < position]), load)
    if start is None:
        return Ledger()
    following = [block for block in blocks if block.seq >= position]
    reader = _Reader(start, _captured(following), load)
    for block in following:
        reader.take(block)
    return reader.finish(now)


def _captured(blocks: Iterable[Block]) -> set[tuple[str, str]]:
    """Path and digest of what is known as the work of calls, also of a turn that was cut short."""
    return {
        (str(block.data.get("path")), str(block.data["sha256"]))
        for block in blocks
        if block.kind == "artifact" and block.data.get("sha256") and block.data.get("tool_call_id")
    }


def _manifest(block: Block) -> str | None:
    said = block.data.get("manifest")
    return said if isinstance(said, str) else None


def _loaded(manifest: object, load: Load) -> Snapshot | None:
    if not isinstance(manifest, str):
        return None
    try:
        return load(manifest)
    except SessionError:
        return None
