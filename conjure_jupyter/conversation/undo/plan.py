"""The preview of an undo: what it will and will not put back, as values and in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...redaction import redact
from .edits import Outside
from .manifest import Entry

#: Lines of one kind that ``describe`` lists; the rest is counted.
LISTED = 20


@dataclass(frozen=True, slots=True)
class Step:
    """A file of ``work/`` that is to be put back, or removed.

    Attributes:
        path: relative to ``work/``.
        was: the file at the turn's start; None removes it.
        now: the file that lies there; None when there is none.
    """

    path: str
    was: Entry | None
    now: Entry | None


@dataclass(frozen=True, slots=True)
class OutsideStep:
    """A file outside ``work/`` that a file tool edited, to be put back or removed.

    Attributes:
        path: absolute.
        was: digest of its bytes at the turn's start; None removes it.
        mode: permission bits then; None keeps those it has.
        now: what lies there.
        made: the outermost folder that was made for it, if one was.
    """

    path: str
    was: str | None
    mode: int | None
    now: Outside
    made: str | None


@dataclass(frozen=True, slots=True)
class Kept:
    """A file that is left as it is although the turns changed it, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class UndoPlan:
    """The preview of an undo.

    Attributes:
        turn: the turn that is undone, with all that follow.
        turns: the numbers of those.
        prompt: what the user said in ``turn``, on one line.
        steps: files of ``work/`` to put back or to remove.
        outside: the same outside ``work/``.
        conflicts: files that somebody else changed since; they stay as they are.
        lost: files whose earlier bytes were not kept; they stay as they are.
        commands: turn and text of the commands that ran. What they did elsewhere is not undone.
        elsewhere: files outside ``work/`` that those commands are known to have made or changed.
        gone: files that the turns made and that are gone already; folders that held them may be left.
        target: manifest of what ``work/`` goes back to; None when it was not kept, and no file is touched.
        position: the block up to which the log was read.
    """

    turn: int
    turns: tuple[int, ...]
    prompt: str
    steps: tuple[Step, ...] = ()
    outside: tuple[OutsideStep, ...] = ()
    conflicts: tuple[Kept, ...] = ()
    lost: tuple[Kept, ...] = ()
    commands: tuple[tuple[int, str], ...] = ()
    elsewhere: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    target: str | None = None
    position: int = -1

    @property
    def files(self) -> list[Step | OutsideStep]:
        """All files that are put back or removed."""
        return [*self.steps, *self.outside]

    @property
    def restored(self) -> list[str]:
        """Files that are put back."""
        return [step.path for step in self.files if step.was is not None]

    @property
    def removed(self) -> list[str]:
        """Files that are removed: the turns made them."""
        return [step.path for step in self.files if step.was is None]

    def describe(self) -> str:
        """All of it in words, for the user."""
        more = self.turns[1:]
        also = f" and {_range(more)} after it" if more else ""
        lines = [f"Undo turn {self.turn} ({shown(redact(self.prompt))}){also}"]
        if self.target is None:
            lines.append("What work/ held before the turn was not kept: its files stay as they are.")
        lines += _section("Put back", (_change(step) for step in self._with(removing=False)))
        lines += _section("Removed", map(shown, self.removed))
        lines += _section("Left as they are", (f"{shown(k.path)}: {k.reason}" for k in self.conflicts))
        lines += _section("Cannot be put back", (f"{shown(k.path)}: {k.reason}" for k in self.lost))
        if not self.files:
            lines.append("No file changes.")
        commands = (f"turn {turn}: {shown(redact(command))}" for turn, command in self.commands)
        lines += _section("Not undone: what these commands did outside the session's files", commands)
        lines += _section("Not undone: files that those commands wrote", map(shown, self.elsewhere))
        lines.append("Nothing leaves the log; the files as they are now are kept in it, too.")
        return "\n".join(lines)

    def _with(self, *, removing: bool) -> list[Step | OutsideStep]:
        return [step for step in self.files if (step.was is None) is removing]


def shown(text: str, limit: int = 100) -> str:
    """A text on one line, with nothing in it that hides or moves the cursor."""
    line = " ".join(text[: limit * 4].split())
    line = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in line)
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _change(step: Step | OutsideStep) -> str:
    gone = step.now is None or (isinstance(step.now, Outside) and step.now.sha256 is None)
    return f"{shown(step.path)} ({'deleted' if gone else 'changed'})"


def _section(title: str, lines: Iterable[str]) -> list[str]:
    listed = list(lines)
    if not listed:
        return []
    more = [f"  and {len(listed) - LISTED} more"] if len(listed) > LISTED else []
    return [f"{title}:", *(f"  {line}" for line in listed[:LISTED]), *more]


def _range(turns: Sequence[int]) -> str:
    return f"turn {turns[0]}" if len(turns) == 1 else f"turns {turns[0]} to {turns[-1]}"
