"""The sub-commands of ``%claude``."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..conversation import Reply, Turn, Verdict
from ..conversation.store import session_ids
from ..errors import SessionError
from . import frontend
from .asking import Asking
from .options import choose
from .record import Record
from .sessions import sessions
from .traces import trace
from .undoing import undo
from .view import say
from .visible import one_line
from .words import counted, footer, money, place

if TYPE_CHECKING:
    from .desk import Desk
    from .opened import Open

#: Each sub-command, what may follow it, and what it does.
HELP = {
    "status": ("", "who answers, the session, where tools run, its skills, what runs and what waits"),
    "new": ("[NAME]", "start a new session; NAME makes it one of its own"),
    "resume": ("[ID]", "go on with an earlier session of this folder; the last one without ID"),
    "sessions": (
        "[--delete ID | --prune [DAYS] [--dry-run]]",
        "the sessions of this folder; --delete erases one, --prune those not used for DAYS",
    ),
    "cost": ("", "tokens and money of this kernel's sessions"),
    "stop": ("", "stop what runs in the background; what was done so far is kept"),
    "approve": ("[yes|no [WORDS]]", "answer for calls that wait; WORDS are told to Claude"),
    "trace": ("[N]", "the tool calls of turn N in full; of the last turn without N"),
    "undo": (
        "[TURN] [--dry-run]",
        "put files back as they were before TURN (the last one) and go on from there; --dry-run previews",
    ),
    "fix": ("[WORDS]", "ask about the last error, with the code that raised it"),
    "model": ("[NAME]", "the model, or another one from here on"),
    "help": ("", "this list"),
}


class Commands:
    """Carries out lines of ``%claude``; each sub-command is a method of its name.

    Args:
        desk: what the kernel has open.
        set_model: makes a model the default.
        cell_options: the options of a cell that gives none.
    """

    def __init__(self, desk: Desk, set_model: Callable[[str], None], cell_options: Namespace) -> None:
        self._desk = desk
        self._set_model = set_model
        self._cell_options = cell_options

    def run(self, line: str) -> Any:
        """Carry out a line: the sub-command and what follows it, as it was written.

        Raises:
            ConjureError: the sub-command is unknown, or failed.
        """
        word, _, rest = line.strip().partition(" ")
        name = choose(word or "help", list(HELP), "sub-command of %claude (a question goes below %%claude)")
        self._desk.tell_news()
        return getattr(self, name)(rest.strip())

    def help(self, _: str) -> None:
        """The sub-commands."""
        say(overview())

    def status(self, _: str) -> None:
        """What there is and what goes on."""
        say(status(self._desk))

    def new(self, name: str) -> None:
        """A new session."""
        opened = self._desk.session(name or None, new=True)
        self._desk.name = name or self._desk.name
        say(f"New session {opened.session.id}")

    def resume(self, wanted: str) -> None:
        """An earlier session."""
        session = self._desk.resume(wanted or _latest(self._desk)).session
        say(f"Session {session.id}: {counted(session.turns, 'turn')} so far")

    def sessions(self, rest: str) -> None:
        """The sessions of this folder."""
        sessions(self._desk, rest)

    def cost(self, _: str) -> None:
        """Tokens and money."""
        say(costs(self._desk))

    def stop(self, _: str) -> None:
        """End what runs."""
        turns = [turn for found in self._desk.opened().values() for turn in _running(found)]
        for turn in turns:
            turn.stop()
        say(f"Stopped {counted(len(turns), 'turn')}" if turns else "Nothing runs")

    def approve(self, rest: str) -> Reply | None:
        """The user's word."""
        return _approve(self._desk, rest)

    def trace(self, rest: str) -> None:
        """A turn's calls."""
        trace(self._desk, rest)

    def undo(self, rest: str) -> None:
        """Back to before a turn."""
        undo(self._desk, rest)

    def fix(self, words: str) -> Any:
        """Ask about the last error."""
        from .fix import prompt

        question = prompt(self._desk.shell, words)
        return Asking(self._desk, self._cell_options, question, literal=True).run()

    def model(self, name: str) -> None:
        """The model."""
        if name:
            self._set_model(name)
        say(f"Model: {self._desk.settings().model}")


def overview() -> str:
    """The sub-commands, one a line."""
    rows = [(f"%claude {name} {more}".rstrip(), text) for name, (more, text) in HELP.items()]
    width = max(len(name) for name, _ in rows)
    listed = "\n".join(f"{name:{width}}  {text}" for name, text in rows)
    return f"{listed}\n\n%%claude? documents the cell, %config ConjureMagics the settings."


def status(desk: Desk) -> str:
    """Who answers, where, with what, and what goes on."""
    settings = desk.settings()
    opened = desk.current()
    lines = [f"Model:    {settings.model}"]
    if opened is not None:
        session = opened.session
        lines += [
            f"Client:   {session.client.name}",
            f"Session:  {session.id} ({counted(session.turns, 'turn')}) in {session.folder}",
        ]
    else:
        lines.append("Session:  none yet; %%claude starts one")
    # Where tools have run in this session, its settings stay.
    keeps = opened is not None and settings.on in opened.ran
    there = place(settings.on, opened.session.settings if opened and keeps else settings)
    lines.append(f"Tools:    {there}; --on and %config ConjureMagics.on change it")
    lines.append(f"Skills:   {', '.join(skill.name for skill in desk.registry.list()) or 'none'}")
    for name, other in desk.opened().items():
        lines += [f"Running:  {one_line(str(turn.prompt), 60)} (session {name})" for turn in _running(other)]
        lines += [
            f"Waiting:  {asked.call.name}: {asked.summary}; answer with %claude approve"
            for asked in (other.asker.waiting or other.session.pending_approval)
        ]
    return "\n".join(lines)


def _running(opened: Open) -> list[Turn]:
    turn = opened.session.running
    return [turn] if turn is not None else []


def _latest(desk: Desk) -> str:
    here = {found.session.id for found in desk.opened().values()}
    earlier = [name for name in session_ids(desk.project, desk.settings()) if name not in here]
    if not earlier:
        raise SessionError("There is no earlier session in this folder")
    return earlier[-1]


def costs(desk: Desk) -> str:
    """Tokens and money of the open sessions, and of them together."""
    lines, total, known = [], 0.0, True
    for name, found in desk.opened().items():
        session = found.session
        record = Record(usage=session.usage, cost=session.cost)
        lines.append(f"{name}: {counted(session.turns, 'turn')}, {footer(record) or 'nothing used'}")
        known = known and session.cost is not None
        total += session.cost or 0.0
    if len(lines) > 1:
        lines.append(f"together: {money(total)}" + ("" if known else " and what has no known price"))
    return "\n".join(lines) or "No session yet in this kernel"


def _approve(desk: Desk, rest: str) -> Reply | None:
    for found in desk.opened().values():
        if found.asker.waiting:
            from .approvals import Stop

            try:
                found.asker.serve()
            except Stop:
                found.session.stop()
            return None
    opened = next((o for o in desk.opened().values() if o.session.pending_approval), None)
    if opened is None:
        raise SessionError("No call waits for approval")
    word, _, message = rest.partition(" ")
    allow = choose(word.lower() or "yes", ["yes", "y", "no", "n"], "answer") in ("yes", "y")
    session, verdict = opened.session, Verdict(allow=allow, message=message.strip())
    if frontend.kind(desk.shell) != "headless":
        for asked in session.pending_approval:
            say(f"{'Allowed' if allow else 'Refused'}: {asked.call.name}: {asked.summary}")
    wait = desk.wait(opened, lambda **options: session.approve(verdict, **options), desk.view())
    try:
        return wait.run()
    finally:
        if wait.reply is not None:
            desk.remember(opened, wait.reply)
