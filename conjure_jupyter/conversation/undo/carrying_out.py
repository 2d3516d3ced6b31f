"""Going back to the start of a turn: its files are put back, and the conversation goes on from before it.

Before anything is touched, the files as they are go to the blobs and into the log. Files come first, the
``undo`` block last: an undo that was cut short, by ``kill -9`` or a full disk, is not in the log yet, and
doing it again does what is left of it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from ...artifacts.layout import Layout
from ...errors import ConjureError, SessionError
from ...executors import ExecutionContext
from ...executors.files import Files
from ...timeline import BaseTimeline
from . import edits, ledger, worktree
from .edits import EDIT
from .manifest import Entry
from .plan import Kept, OutsideStep, Step, UndoPlan, shown
from .search import plan_undo
from .snapshot import Snapshots

__all__ = ["UndoPlan", "Undone", "plan_undo", "undo"]

#: What makes every further file fail as well.
_FATAL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO})

#: Most files that the ``undo`` block names as left.
_NAMED = 50


@dataclass(slots=True)
class Undone:
    """What an undo did.

    Attributes:
        turn: history goes on from before this turn.
        restored: files that were put back.
        removed: files that were removed.
        conflicts: files that were left as they are, and why.
        lost: files whose earlier bytes were not kept.
    """

    turn: int
    restored: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    conflicts: list[Kept] = field(default_factory=list)
    lost: list[Kept] = field(default_factory=list)

    def describe(self) -> str:
        """What was done, on one line, and a line for each file that was left."""
        counts = f"{_files(len(self.restored))} put back, {_files(len(self.removed))} removed"
        left = [*self.conflicts, *self.lost]
        return "\n".join(
            [
                f"Undone up to the start of turn {self.turn}: {counts}",
                *(f"  {shown(kept.path)} was left: {kept.reason}" for kept in left),
            ]
        )


def undo(
    plan: UndoPlan,
    timeline: BaseTimeline,
    snapshots: Snapshots,
    layout: Layout,
    *,
    context: ExecutionContext | None = None,
) -> Undone:
    """Carry out a plan, as far as it still holds; blocks. Arguments as for ``plan_undo``.

    A file that changed since the plan was made is left as it is.

    Raises:
        SessionError: the session went on since, or the disk failed; done again, it does the rest.
        TimelineError: the log cannot be written.
    """
    fresh = plan_undo(timeline, snapshots, layout, plan.turn, context=context)
    if fresh.position != plan.position:
        raise SessionError("The session went on since the preview; look at it again")
    done = Undone(plan.turn, conflicts=list(fresh.conflicts), lost=list(fresh.lost))
    planned = {step.path: step for step in plan.files}
    for step in fresh.files:
        if planned.get(step.path) != step:
            done.conflicts.append(Kept(step.path, "changed since the preview"))
    agreed = replace(
        fresh,
        steps=tuple(step for step in fresh.steps if planned.get(step.path) == step),
        outside=tuple(step for step in fresh.outside if planned.get(step.path) == step),
    )
    if plan.target is not None:
        ledger.note(timeline, snapshots.take(), "start", undoing=plan.target)
        timeline.sync()
        _Inside(snapshots, done).run(agreed)
    if context is not None:
        _Outside(snapshots, done, context, timeline).run(agreed)
    if plan.target is not None:
        try:
            ledger.note(timeline, snapshots.take(), "start")
        except SessionError as error:
            ledger.note_failure(timeline, "start", str(error))
    left = [{"path": kept.path, "reason": kept.reason} for kept in (*done.conflicts, *done.lost)]
    timeline.append(
        "undo",
        {
            "before_turn": plan.turn,
            "reason": "undo",
            "restored": len(done.restored),
            "removed": len(done.removed),
            "left": left[:_NAMED],
        },
    )
    timeline.sync()
    return done


class _Changed(Exception):  # noqa: N818  never leaves this module
    """A file is no longer what it was a moment ago."""


class _Executor:
    """Carries out steps one by one; a file that cannot be changed is left and told."""

    def __init__(self, snapshots: Snapshots, done: Undone) -> None:
        self.snapshots = snapshots
        self.done = done

    @contextlib.contextmanager
    def trying(self, path: str, told: list[str]) -> Iterator[None]:
        """Change one file, and tell of it.

        Raises:
            SessionError: the disk failed, so that nothing else would succeed.
        """
        try:
            yield
        except _Changed:
            self.done.conflicts.append(Kept(path, "changed just now"))
        except (ConjureError, OSError) as error:
            if (number := _errno(error)) in _FATAL:
                raise SessionError(
                    f"The undo broke off at {shown(path)}: {os.strerror(number)}. Nothing is lost; "
                    "do it again when there is room"
                ) from error
            reason = error.strerror if isinstance(error, OSError) else None
            self.done.conflicts.append(Kept(path, f"cannot be changed ({reason or error})"))
        else:
            told.append(path)


class _Inside(_Executor):
    """Puts back the files of ``work/``."""

    def run(self, plan: UndoPlan) -> None:
        """Do all steps that lose nothing: the bytes that lie there are kept already."""
        steps = []
        for step in plan.steps:
            if step.now is None or self.snapshots.blobs.has(step.now.sha256):
                steps.append(step)
            else:
                self.done.conflicts.append(Kept(step.path, "its bytes could not be kept first"))
        # What the turns made goes first: it may stand where a folder or file has to come back.
        root = self.snapshots.root
        going = [step for step in steps if step.was is None]
        for step in going:
            with self.trying(step.path, self.done.removed):
                worktree.remove(root, step.path, partial(self._check, step))
        for path in (*plan.gone, *(step.path for step in going)):
            worktree.drop_empty_folders(root, path)
        for step in steps:
            if step.was is not None:
                with self.trying(step.path, self.done.restored):
                    self._restore(step, step.was)

    def _check(self, step: Step, status: os.stat_result) -> None:
        if not self.snapshots.unchanged(step.path, status, step.now):
            raise _Changed

    def _restore(self, step: Step, was: Entry) -> None:
        root = self.snapshots.root
        worktree.make_folders(root, step.path)
        there = worktree.status_of(root, step.path)
        if there is not None and stat.S_ISDIR(there.st_mode):
            worktree.drop_empty_tree(root, step.path)
            there = None
        if (there is None) != (step.now is None):
            raise _Changed
        if there is not None:
            self._check(step, there)
        self.snapshots.blobs.checkout(was.sha256, root, step.path, was.mode, replace=there is not None)


class _Outside(_Executor):
    """Puts back what file tools edited elsewhere, within what they may write today."""

    def __init__(
        self, snapshots: Snapshots, done: Undone, context: ExecutionContext, timeline: BaseTimeline
    ) -> None:
        super().__init__(snapshots, done)
        self._files = Files(context)
        self._timeline = timeline

    def run(self, plan: UndoPlan) -> None:
        """Do all steps."""
        for step in plan.outside:
            told = self.done.removed if step.was is None else self.done.restored
            with self.trying(step.path, told):
                self._step(step)

    def _step(self, step: OutsideStep) -> None:
        blobs = self.snapshots.blobs
        if edits.look(Path(step.path), self.snapshots.limit, keep=blobs) != step.now:
            raise _Changed
        data = blobs.read(step.was) if step.was is not None else None
        self._timeline.append(EDIT, edits.undone(step.path, step.now.sha256, step.was))
        if data is not None:
            self._files.write(step.path, data, step.mode)
            return
        self._files.delete(step.path)
        if step.made is not None:
            for folder in Path(step.path).parents:
                if not folder.is_relative_to(step.made):
                    break
                with contextlib.suppress(ConjureError, OSError):  # something else lies in it: it stays
                    self._files.delete(str(folder))


def _errno(error: BaseException | None) -> int:
    """The system's number of an error, or of what caused it."""
    while error is not None:
        if isinstance(error, OSError) and error.errno:
            return error.errno
        error = error.__cause__
    return 0


def _files(count: int) -> str:
    return f"{count} file{'' if count == 1 else 's'}"
