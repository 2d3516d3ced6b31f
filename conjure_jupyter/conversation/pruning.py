"""The sessions of a folder, how long nobody used them, and removing those that grew old."""

from __future__ import annotations

import datetime as dt
import fcntl
import os
import time
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import SessionError
from ..storage.contract import Storage
from ..timeline import read_session
from ..timeline.lock import NAME as LOCK
from ..timeline.log import LOG
from ..wording import size_text
from .erasing import Erased, count, erase_session, id_of, is_leftover, last_used

_DAY = 86_400.0

#: Gives a session's copies elsewhere by its id, after ``init``; None when it has none.
Elsewhere = Callable[[Path], Awaitable[Storage | None]]


@dataclass(frozen=True, slots=True)
class SessionUse:
    """A session on disk and how it is used.

    Attributes:
        id: its name.
        folder: where it lies.
        turns: how many turns it has, undone ones included.
        prompt: what was said first, on one line.
        last_used: when its log was written last.
        files: how many files it has.
        size: their bytes.
        live: whether a process has it open, this one included; None when the file system cannot tell.
        here: whether its tools work in the notebook's folder.
        leftover: whether it was being erased, and is no session any more.
    """

    id: str
    folder: Path
    turns: int
    prompt: str
    last_used: dt.datetime
    files: int
    size: int
    live: bool | None
    here: bool = False
    leftover: bool = False

    @property
    def age(self) -> float:
        """Days since it was used."""
        return max(0.0, time.time() - self.last_used.timestamp()) / _DAY


@dataclass(frozen=True, slots=True)
class PrunePlan:
    """What pruning will remove and what it keeps, with a reason for each.

    Attributes:
        removed: sessions to remove, the oldest first.
        kept: all others.
    """

    removed: tuple[tuple[SessionUse, str], ...]
    kept: tuple[tuple[SessionUse, str], ...]

    @property
    def size(self) -> int:
        """Bytes that will be free."""
        return sum(use.size for use, _ in self.removed)

    def describe(self) -> str:
        """It in words, for the user."""
        if not self.removed:
            return f"No session is to be removed; {len(self.kept)} kept"
        lines = [f"{len(self.removed)} to remove, {size_text(self.size)}; {len(self.kept)} kept"]
        lines += [
            f"  remove {use.id} ({_turns(use.turns)}, {size_text(use.size)}): {why}"
            for use, why in self.removed
        ]
        return "\n".join([*lines, *(f"  keep   {use.id}: {why}" for use, why in self.kept)])


@dataclass(slots=True)
class Pruned:
    """What pruning did.

    Attributes:
        erased: what was erased.
        kept: sessions of the plan that were not, by id, and why.
    """

    erased: list[Erased] = field(default_factory=list)
    kept: list[tuple[str, str]] = field(default_factory=list)

    def describe(self) -> str:
        """It in words, for the user."""
        lines = [erased.describe() for erased in self.erased] or ["No session was removed"]
        return "\n".join([*lines, *(f"Kept {name}: {why}" for name, why in self.kept)])


def list_sessions(folder: Path) -> list[SessionUse]:
    """The sessions of a folder, the one that was used longest ago first; blocks, takes no lock.

    What is left of sessions that were being erased is listed too.

    Raises:
        SessionError: the folder cannot be read.
    """
    try:
        entries = [entry for entry in folder.iterdir() if entry.is_dir() and not entry.is_symlink()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise SessionError(f"{folder} cannot be read: {error.strerror}") from error
    found = (_use(entry) for entry in entries)
    return sorted((use for use in found if use is not None), key=lambda use: (use.last_used, use.id))


def plan_prune(folder: Path, days: float | None, *, keep: Collection[str] = ()) -> PrunePlan:
    """Which sessions nobody used for so many days; blocks, changes nothing.

    Never removed are those that are in use, those whose tools work in the notebook's folder, and those in
    ``keep``.

    Args:
        folder: holds the sessions.
        days: age in days; None removes none by age. What an erasure has left always goes.
        keep: ids of sessions to keep whatever their age.

    Raises:
        SessionError: the folder cannot be read.
    """
    removed, kept = [], []
    for use in list_sessions(folder):
        if (why := _why_kept(use, days, keep)) is not None:
            kept.append((use, why))
        elif use.leftover:
            removed.append((use, "it was being erased"))
        else:
            removed.append((use, f"not used for {use.age:.0f} days"))
    return PrunePlan(tuple(removed), tuple(kept))


def _why_kept(use: SessionUse, days: float | None, keep: Collection[str]) -> str | None:
    if use.live or use.leftover:
        return "in use" if use.live else None
    reasons = {
        "this file system cannot tell whether it is in use": use.live is None,
        "asked to keep": use.id in keep,
        "its tools work in the notebook's folder": use.here,
        "sessions are kept for ever (session_days)": days is None,
        f"used {use.age:.0f} days ago": days is not None and use.age <= days,
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


async def prune(plan: PrunePlan, elsewhere: Elsewhere | None = None) -> Pruned:
    """Remove what a plan says, but nothing that was used since.

    Args:
        plan: what to remove.
        elsewhere: gives the copies of a session on other machines, which are erased too.
    """
    done = Pruned()
    for use, _ in plan.removed:
        try:
            remote = await elsewhere(use.folder) if elsewhere is not None else None
            try:
                since = None if use.leftover else use.last_used
                done.erased.append(await erase_session(use.folder, remote, unused_since=since))
            finally:
                if remote is not None:
                    await remote.close()
        except (SessionError, OSError) as error:
            done.kept.append((use.id, str(error)))
    return done


def _turns(count: int) -> str:
    return f"{count} turn{'' if count == 1 else 's'}"


def _use(folder: Path) -> SessionUse | None:
    """What is to be known of a folder; None when it holds no session."""
    leftover = is_leftover(folder)
    if not leftover and not (folder / LOG).is_file():
        return None
    turns, prompt = 0, ""
    if not leftover:
        try:
            info = read_session(folder)
        except SessionError:
            pass  # damaged beyond reading; it still has an age
        else:
            turns, prompt = info.turns, info.first_prompt
    files, size = count(folder)
    return SessionUse(
        id=id_of(folder),
        folder=folder,
        turns=turns,
        prompt=prompt,
        last_used=last_used(folder),
        files=files,
        size=size,
        live=is_live(folder),
        here=not leftover and turns > 0 and _works_here(folder),
        leftover=leftover,
    )


def is_live(folder: Path) -> bool | None:
    """Whether a process, this one included, has a session open; None when the file system has no locks.

    The lock is asked for to read only and given back at once; nothing is written.
    """
    try:
        fd = os.open(folder / LOCK, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return False  # nobody ever wrote to it
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    finally:
        os.close(fd)
    return False


def _works_here(folder: Path) -> bool:
    """Whether a session's tools work in the notebook's folder: it has no ``outputs`` of its own then."""
    work = folder / "work"
    return (work / "uploads").is_dir() and not (work / "outputs").is_dir()
