"""Finding out what an undo will and will not put back, without changing anything."""

from __future__ import annotations

import contextlib
import os
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ...artifacts.blobs import BlobStore
from ...artifacts.layout import Layout
from ...errors import SessionError, ToolError
from ...executors import ExecutionContext
from ...paths import validate_path
from ...timeline import BaseTimeline, TurnsProjection, TurnSummary
from ...tools.bash import BashTool
from ...types import Block
from . import edits, ledger
from .edits import EDIT
from .manifest import UNSEEN, Snapshot
from .plan import Kept, OutsideStep, Step, UndoPlan, shown
from .snapshot import Snapshots

#: Blocks after which a preview no longer holds.
_MOVES = frozenset({"user", "undo", "turn_end", "approval", "compaction"})


def plan_undo(
    timeline: BaseTimeline,
    snapshots: Snapshots,
    layout: Layout,
    turn: int | None = None,
    *,
    context: ExecutionContext | None = None,
) -> UndoPlan:
    """What undoing a turn, and all that follow it, will and will not put back. Blocks; changes nothing.

    A file of ``work/`` is put back when the turns alone changed it. One that somebody else changed, between
    two of those turns or since, is left as it is and listed.

    Args:
        timeline: the log.
        snapshots: of the session's ``work`` folder.
        layout: the session's folders.
        turn: its number; the last turn that was not undone when None.
        context: what tools may write; without it nothing outside ``work/`` is put back.

    Raises:
        SessionError: there is no such turn, it was undone already, or a turn is running.
    """
    blocks = list(timeline.blocks)
    summary, going = _turns(blocks, turn)
    position = ledger.begins_at(blocks, summary.turn)
    if position is None:
        raise SessionError(f"The log has lost the beginning of turn {summary.turn}")
    now = snapshots.look()
    history = ledger.read(blocks, position, snapshots.load, now)
    finder = _Finder(snapshots.blobs)
    steps = list(finder.inside(snapshots.root, history, history.start, now)) if history.start else []
    following = [block for block in blocks if block.seq >= position]
    outside = list(finder.outside(following, context, snapshots.limit))
    return UndoPlan(
        turn=summary.turn,
        turns=going,
        prompt=summary.prompt,
        steps=tuple(steps),
        outside=tuple(outside),
        conflicts=tuple(finder.conflicts),
        lost=tuple(finder.lost),
        commands=tuple(_commands(following)),
        elsewhere=tuple(_elsewhere(following, layout)),
        gone=tuple(finder.gone),
        target=history.start.manifest if history.start else None,
        position=max((block.seq for block in blocks if block.kind in _MOVES), default=-1),
    )


def _turns(blocks: Sequence[Block], turn: int | None) -> tuple[TurnSummary, tuple[int, ...]]:
    """The turn to undo, and the numbers of all that go."""
    projection = TurnsProjection()
    running = False
    for block in blocks:
        projection.feed(block)
        if block.kind == "user" or (block.kind == "approval" and block.data.get("verdicts") is not None):
            running = True
        elif block.kind in ("turn_end", "undo", "approval"):
            running = False  # a turn that waits for the user's word does not run
    if running:
        raise SessionError("A turn is running; stop it first")
    live = sorted(number for number, found in projection.turns.items() if number and not found.undone)
    if not live:
        raise SessionError("There is no turn to undo")
    number = live[-1] if turn is None else turn
    if number in live:
        return projection.turns[number], tuple(n for n in live if n >= number)
    if number in projection.turns and number > 0:
        raise SessionError(f"Turn {number} was undone already")
    raise SessionError(
        f"There is no turn {number} to undo; the session has turns 1 to {max(projection.turns)}"
    )


class _Finder:
    """Sorts files into those that can be put back, conflicts, and those that are lost."""

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs
        self.conflicts: list[Kept] = []
        self.lost: list[Kept] = []
        self.gone: list[str] = []

    def inside(self, root: Path, history: ledger.Ledger, start: Snapshot, now: Snapshot) -> Iterator[Step]:
        """Steps in ``work/``; files that only somebody else changed are passed over."""
        paths = history.by_turns | history.doubtful
        if history.last is None:  # nobody can tell who changed what
            paths = paths | start.files.keys() | now.files.keys()
        going = {path for path in history.by_turns if start.at(path) is None}
        for path in sorted(paths):
            step = Step(path, start.at(path), now.at(path))
            if step.was == step.now:
                self.gone += [path] if step.now is None else []
                continue
            reason = self._hindrance(step, history) or _in_the_way(root, path, step, going)
            if reason is not None:
                self.conflicts.append(Kept(path, reason))
            elif self._recoverable(path, step.was.sha256 if step.was else None):
                yield step

    def _hindrance(self, step: Step, history: ledger.Ledger) -> str | None:
        """Why a file stays as it is."""
        now, last = step.now, history.last
        reasons = {
            "its folder cannot be looked into": UNSEEN in (step.was, now),
            "it is not known what the turns left there": last is None,
            "removed since": last is not None and now is None and last.at(step.path) is not None,
            "changed since": last is not None and now != last.at(step.path),
            "changed by a turn that was cut short, or by someone else": step.path in history.doubtful,
            "also changed by someone else, between two turns": step.path in history.by_others,
            "too large for undo_limit, so it would be lost": now is not None and not now.sha256,
        }
        return next((reason for reason, holds in reasons.items() if holds), None)

    def _recoverable(self, path: str, sha256: str | None) -> bool:
        with contextlib.suppress(ToolError):  # a log from elsewhere may give anything for a digest
            if sha256 is None or self._blobs.has(sha256):
                return True
        self.lost.append(Kept(path, "its earlier bytes were not kept (undo_limit)"))
        return False

    def outside(
        self, blocks: Iterable[Block], context: ExecutionContext | None, limit: int
    ) -> Iterator[OutsideStep]:
        """Steps outside ``work/``."""
        by_path: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for block in blocks:
            if block.kind == EDIT and isinstance(block.data.get("path"), str):
                by_path[block.data["path"]].append(block.data)
        for path, found in by_path.items():
            first, last = found[0], found[-1]
            now = edits.look(Path(path), limit)
            step = OutsideStep(path, first.get("before"), first.get("mode"), now, first.get("made"))
            if step.was == now.sha256 and now.sha256 != "":
                continue
            if (reason := _outside_hindrance(step, found, context)) is not None:
                self.conflicts.append(Kept(path, reason))
            elif now.sha256 not in edits.left_by(last) or now.sha256 == "":
                self.conflicts.append(Kept(path, "removed since" if now.sha256 is None else "changed since"))
            elif self._recoverable(path, step.was):
                yield step


def _in_the_way(root: Path, path: str, step: Step, going: set[str]) -> str | None:
    """What hinders a file from being put back: a link on its way, or something else of its name."""
    if step.was is None:
        return None
    parts = path.split("/")
    for count in range(1, len(parts) + 1):
        upper = "/".join(parts[:count])
        try:
            mode = os.lstat(root / upper).st_mode
        except OSError:
            return None
        if stat.S_ISLNK(mode):
            return f"{shown(upper)} is a link now"
        last = count == len(parts)
        if not (stat.S_ISDIR(mode) or (stat.S_ISREG(mode) and (last or upper in going))):
            return f"{shown(upper)} is something else now"
    return None


def _outside_hindrance(
    step: OutsideStep, found: Iterable[dict[str, Any]], context: ExecutionContext | None
) -> str | None:
    if any(edit.get("by") == "user" for edit in found):
        return "also changed by someone else, between two turns"
    if context is None:
        return "it is not known whether it may be written"
    try:
        # The log may come from anywhere: it is believed only where tools may write today.
        validate_path(step.path, (context.working_directory, *context.writable_paths))
    except ToolError:
        return "outside the folders that may be written"
    return None


def _commands(blocks: Iterable[Block]) -> Iterator[tuple[int, str]]:
    """The commands that ran: turn and text."""
    texts: dict[str, str] = {}
    for block in blocks:
        if block.kind == "assistant":
            for part in block.data.get("message", {}).get("content") or ():
                if isinstance(part, dict) and part.get("name") == BashTool.name:
                    texts[str(part.get("id"))] = str(part.get("input", {}).get("command", ""))
        elif block.kind == "tool_call" and block.data.get("decision") == "allow":
            call = str(block.data.get("id"))
            if call in texts:
                yield block.turn, texts.pop(call)


def _elsewhere(blocks: Sequence[Block], layout: Layout) -> Iterator[str]:
    """Files outside ``work/`` that are known as the work of commands."""
    edited = {block.data.get("path") for block in blocks if block.kind == EDIT}
    told: set[str] = set()
    for block in blocks:
        path = block.data.get("path")
        if block.kind != "artifact" or not isinstance(path, str) or block.data.get("source_type") != "file":
            continue
        place = layout.absolute(path)
        if not place.is_relative_to(layout.root) and str(place) not in edited | told:
            told.add(str(place))
            yield str(place)
