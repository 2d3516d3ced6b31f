"""From a cell's options and words to its reply."""

from __future__ import annotations

import contextvars
import keyword
from argparse import Namespace
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from ..conversation import DryRun, Reply, Turn
from ..errors import SettingsError
from ..executors import DOCKER, LocalExecutor
from . import frontend, outputs
from .approvals import interruptible
from .cell import outcome
from .image import offer_image
from .interpolate import Prompt, interpolate
from .view import say, show
from .waiting import end_queue
from .words import place

if TYPE_CHECKING:
    from ..settings import Settings
    from .cell import Wait
    from .desk import Desk
    from .opened import Open
    from .view import View

LATER = "comes in a later version"


class Asking:
    """One ``%%claude`` cell.

    Args:
        desk: what the kernel has open.
        options: the cell's options, parsed.
        words: the prompt as the user wrote it.
        literal: nothing in the words stands for something else.

    Raises:
        ConjureError: an option is wrong, or names a skill that is not there.
    """

    def __init__(self, desk: Desk, options: Namespace, words: str, *, literal: bool = False) -> None:
        _check(options)
        if not words.strip():
            raise SettingsError("%%claude", "the prompt is empty; write it in the lines below")
        self.desk = desk
        self.options = options
        if options.skill is not None:
            desk.registry.get(options.skill)
        self._words = words
        self._literal = literal

    def _open(self) -> tuple[Open, Prompt]:
        """The cell's session, and the prompt as it is meant there.

        What names of artifacts stand for depends on the session; but a prompt that cannot be used must not
        end the one that is open.
        """
        desk, given = self.desk, self.options
        names: Collection[str] = ()
        if not given.new:
            artifacts = desk.session(given.session, replay=given.replay).session.artifacts
            names = {entry.name for entry in artifacts.registered()}
        prompt = Prompt(self._words)
        if not self._literal:
            files = given.file or ()
            prompt = interpolate(
                self._words, desk.namespace(), desk.project, desk.scratch, files=files, registered=names
            )
        return desk.session(given.session, new=given.new, replay=given.replay), prompt

    def run(self) -> Any:
        """Ask and wait by blocking."""
        ready = self._get_ready()
        if not isinstance(ready, _Ready):
            return ready
        try:
            ready.wait.run()
        finally:
            self._note(ready)
        return ready.wait.reply

    async def run_async(self) -> Any:
        """Ask and wait by awaiting."""
        ready = self._get_ready()
        if not isinstance(ready, _Ready):
            return ready
        try:
            await ready.wait.run_async()
        finally:
            self._note(ready)
        return ready.wait.reply

    def _get_ready(self) -> _Ready | Turn | Reply | None:
        """Everything up to the start of the turn, or the value of a cell that does not wait for one."""
        try:
            with interruptible():
                return self._prepare()
        except KeyboardInterrupt:
            say("Stopped before anything was sent.")
            end_queue(self.desk.shell)
            nothing = Reply("", stop_reason="stopped")
            outputs.shown(nothing)
            return nothing

    def _prepare(self) -> _Ready | Turn | None:
        desk, given = self.desk, self.options
        opened, prompt = self._open()
        settings = desk.settings()
        options: dict[str, Any] = {
            "files": prompt.files,
            "skill": given.skill,
            "system": given.system,
        }
        for name in ("model", "max_iterations", "budget", "approve", "on"):
            # The session keeps the settings of its first cell; these are taken as they are now.
            chosen = getattr(given, name)
            options[name] = getattr(settings, name) if chosen is None else chosen
        opened = desk.renewed(opened, options["on"])
        if given.dry_run:
            plan = opened.session.dry_run(prompt.content, **options)
            _show_dry_run(plan, desk, options["on"], opened.session.settings)
            return None
        if options["on"] == DOCKER:
            offer_image(opened.session.settings.docker_image, ask=frontend.kind(desk.shell) != "headless")
        if given.retry:
            options["retry"] = desk.earlier_turn(opened)

        def start(**more: Any) -> Turn:
            return opened.session.start(prompt.content, **options, **more)

        desk.tell_news()
        kind = frontend.kind(desk.shell)
        if kind != "headless" and (earlier := desk.last_session()):
            say(f"The last session here was {earlier}; go on with it by %claude resume")
        view = desk.view(raw=given.raw, quiet=given.quiet, root=_root(options["on"]))
        wait = desk.wait(opened, start, view)
        # Headless there is no later: what a cell shows after its end is lost.
        if given.background and kind != "headless":
            return self._run_in_background(opened, options["on"], start, view)
        return _Ready(opened, options["on"], wait)

    def _run_in_background(self, opened: Open, on: str, start: Callable[..., Turn], view: View) -> Turn:
        turn = start(listener=view.hear)
        view.start()
        opened.background = turn
        context = contextvars.copy_context()

        def over() -> None:
            from threading import Thread

            # The engine must not wait for a front end.
            Thread(target=context.run, args=(self._finish, opened, on, turn, view), daemon=True).start()

        turn.on_done(over)
        return turn

    def _finish(self, opened: Open, on: str, turn: Turn, view: View) -> None:
        reply, _ = outcome(opened.session, turn)
        view.finish(reply)
        _note_place(opened, on, reply)
        self._assign(reply)

    def _note(self, ready: _Ready) -> None:
        self.desk.tell_news()
        reply = ready.wait.reply
        if reply is not None:
            self.desk.remember(ready.opened, reply)
            _note_place(ready.opened, ready.on, reply)
            self._assign(reply)
            if reply.stop_reason == "stopped":
                end_queue(self.desk.shell)

    def _assign(self, reply: Reply) -> None:
        if self.options.out:
            self.desk.shell.user_ns[self.options.out] = reply


class _Ready:
    """A turn that can start."""

    def __init__(self, opened: Open, on: str, wait: Wait) -> None:
        self.opened = opened
        self.on = on
        self.wait = wait


def _root(on: str) -> str | None:
    if on != DOCKER:
        return None
    from ..executors.docker.mounts import WORKSPACE

    return str(WORKSPACE)


def _note_place(opened: Open, on: str, reply: Reply) -> None:
    if reply.turn and reply.error is None:
        opened.ran.add(on)


def _check(options: Namespace) -> None:
    if options.on == "hosted":
        raise SettingsError(f"--on {options.on}", LATER)
    if options.out is not None and (not options.out.isidentifier() or keyword.iskeyword(options.out)):
        raise SettingsError("--out", f"{options.out!r} cannot be the name of a variable")


def _show_dry_run(plan: DryRun, desk: Desk, on: str, settings: Settings) -> None:
    from .dry_run import as_html, plain

    style = desk.style()
    where = "" if (on, settings.sandbox) == (LocalExecutor.name, "off") else place(on, settings)
    show({"text/plain": style.told(plain(plan, where)), "text/html": as_html(plan, style, where)})
