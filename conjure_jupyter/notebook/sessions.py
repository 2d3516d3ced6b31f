"""``%claude sessions``: the sessions of the folder, erasing one, and removing those that grew old."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from ..conversation import Session
from ..conversation.elsewhere import copies_of
from ..conversation.erasing import Erased, erase_session
from ..conversation.pruning import Pruned, PrunePlan, SessionUse, list_sessions, plan_prune, prune
from ..conversation.store import sessions_folder
from ..engine import engine
from ..errors import ConjureError, SessionError, SessionNotFoundError, SettingsError
from ..settings import Settings
from ..wording import size_text
from .view import say
from .visible import one_line, visible
from .words import counted

if TYPE_CHECKING:
    from collections.abc import Collection

    from .desk import Desk

log = logging.getLogger(__name__)

#: Sessions that are listed, and characters of what was said first.
MOST, PROMPT = 200, 60

COMMAND = "%claude sessions"


def sessions(desk: Desk, rest: str) -> None:
    """Carry out what follows ``%claude sessions``.

    Raises:
        ConjureError: it is none of the forms, or failed.
    """
    words = rest.split()
    dry_run = "--dry-run" in words
    given = [word for word in words if word != "--dry-run"]
    match given:
        case [] if not dry_run:
            say(listing(desk))
        case ["--delete", session_id] if not dry_run:
            _delete(desk, session_id)
        case ["--prune"]:
            _prune_old(desk, desk.settings().session_days, dry_run=dry_run)
        case ["--prune", days]:
            _prune_old(desk, _days(days), dry_run=dry_run)
        case _:
            raise SettingsError(COMMAND, "takes nothing, --delete ID, or --prune [DAYS] [--dry-run]")


def _days(text: str) -> float:
    try:
        days = float(text)
    except ValueError:
        days = -1
    if not 0 <= days < float("inf"):
        raise SettingsError(f"{COMMAND} --prune", f"{text!r} is no number of days")
    return days


def _folder(desk: Desk, settings: Settings) -> Path:
    return sessions_folder(desk.project, settings)[0]


def listing(desk: Desk) -> str:
    """The sessions of this folder, the one used last at the end, with size and age."""
    here = {found.session.id: name for name, found in desk.opened().items()}
    uses = list_sessions(_folder(desk, desk.settings()))
    if not uses:
        return "No sessions in this folder yet"
    rows = [_row(use, here.get(use.id)) for use in uses[-MOST:]]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    cells = ([cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in rows)
    lines = ["  ".join(row).rstrip() for row in cells]
    earlier = [f"… {len(uses) - MOST:,} earlier ones"] if len(uses) > MOST else []
    total = f"{counted(len(uses), 'session')}, {size_text(sum(use.size for use in uses))}"
    return "\n".join([*earlier, *lines, total])


def _row(use: SessionUse, name: str | None) -> tuple[str, str, str, str, str]:
    state = f"open here as {name!r}" if name is not None else "in use elsewhere" if use.live else ""
    said = "was being erased; --prune removes the rest" if use.leftover else one_line(use.prompt, PROMPT)
    note = f"[{state}] {said}".strip() if state else said
    return one_line(use.id), counted(use.turns, "turn"), size_text(use.size), ago(use.age), note


def ago(days: float) -> str:
    """An age in words, with one unit."""
    for unit, length in (("day", 1.0), ("hour", 1 / 24), ("minute", 1 / 1440)):
        count = int(days / length)
        if count:
            return f"{counted(count, unit)} ago"
    return "just now"


def _open_here(desk: Desk) -> set[str]:
    return {found.session.id for found in desk.opened().values()}


def _delete(desk: Desk, session_id: str) -> None:
    if session_id in _open_here(desk):
        raise SessionError(f"Session {session_id!r} is open here; start another with %claude new first")
    say(visible(erase(desk, session_id).describe()))


def erase(desk: Desk, session_id: str) -> Erased:
    """Erase a session, its copies elsewhere too, or what an erasure that was cut short has left of it.

    Raises:
        ConjureError: there is none of that name, it is in use, or it cannot be erased.
    """
    settings = desk.settings()
    try:
        return Session.erase(session_id, settings, project=desk.project)
    except SessionNotFoundError:
        uses = list_sessions(_folder(desk, settings))
        left = next((use for use in uses if use.leftover and use.id == session_id), None)
        if left is None:
            raise
        return engine().run(erase_session(left.folder))


def _plan(folder: Path, settings: Settings, days: float | None, keep: Collection[str]) -> PrunePlan:
    if settings.workspace == ".":
        raise SettingsError(
            f"{COMMAND} --prune", "is off where the tools work in the notebook's folder (workspace='.')"
        )
    return plan_prune(folder, days, keep=keep)


def _prune_old(desk: Desk, days: float | None, *, dry_run: bool) -> None:
    settings = desk.settings()
    plan = _plan(_folder(desk, settings), settings, days, _open_here(desk))
    if days is None and not plan.removed:
        raise SettingsError(f"{COMMAND} --prune", "takes DAYS, as session_days is not set")
    if dry_run:
        say(visible(plan.describe()))
    else:
        say(visible(engine().run(carry_out(plan, settings)).describe()))


async def carry_out(plan: PrunePlan, settings: Settings) -> Pruned:
    """Remove what a plan says, with the copies elsewhere; runs on the engine."""
    return await prune(plan, lambda folder: copies_of(folder, settings))


class Housekeeping:
    """Removes sessions that nobody used for ``session_days``, once in a kernel, in the background."""

    def __init__(self) -> None:
        self._begun = False
        self._told = ""

    def begin(self, desk: Desk) -> None:
        """Start, unless that was done before or the settings do not ask for it; returns at once."""
        settings = desk.settings()
        if self._begun or settings.session_days is None or settings.workspace == ".":
            return
        self._begun = True
        folder = _folder(desk, settings)
        engine().submit(self._run(folder, settings, _open_here(desk)))

    async def _run(self, folder: Path, settings: Settings, keep: Collection[str]) -> None:
        try:
            plan = await asyncio.to_thread(_plan, folder, settings, settings.session_days, keep)
            done = await carry_out(plan, settings)
        except (ConjureError, OSError) as error:
            log.warning("old sessions were not removed: %s", error)
            return
        if done.erased:
            size = size_text(sum(erased.size for erased in done.erased))
            count = counted(len(done.erased), "session")
            days = f"{settings.session_days:g} days (session_days)"
            self._told = (
                f"Removed {count} that nobody used for {days}: {size}; %claude sessions lists the rest"
            )

    def news(self) -> str:
        """What was done since this was last asked, in one line; empty when nothing was."""
        told, self._told = self._told, ""
        return told
