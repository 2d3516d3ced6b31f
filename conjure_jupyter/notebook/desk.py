"""What a kernel has open: skills, sessions by name, turns under way.

One desk for each shell. Magics read their line and call it; it knows nothing of magics.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..conversation import Reply, Session, Turn
from ..conversation.store import session_ids
from ..errors import SessionError, SettingsError
from ..settings import Settings
from ..skills import SkillRegistry, default_roots, load_all
from . import frontend, outputs
from .approvals import Asker
from .cell import Wait
from .interpolate import MISSING, NAME, lookup
from .opened import Open
from .render import Style
from .sessions import Housekeeping
from .view import FinalView, LiveView, QuietView, TerminalView, View, say

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from ..skills import SkillList

#: The session of cells that name none.
MAIN = "main"


class Desk:
    """The state behind the magics of one shell.

    Args:
        shell: IPython's.
        settings: gives all settings as they are now.
    """

    def __init__(self, shell: InteractiveShell, settings: Callable[[], Settings]) -> None:
        self.shell = shell
        self.settings = settings
        self.project = frontend.project_folder(shell)
        self.name = MAIN
        self._open: dict[tuple[str, str | None], Open] = {}
        self._registry: SkillRegistry | None = None
        self._scratch: Path | None = None
        self._told_of_last = False
        self._housekeeping = Housekeeping()
        outputs.register(shell)

    # Skills ------------------------------------------------------------------------------------------

    @property
    def registry(self) -> SkillRegistry:
        """The skills of this kernel: those of the default folders, of the settings, and those loaded."""
        if self._registry is None:
            settings = self.settings()
            paths = [self.beside(path) for path in settings.skill_paths]
            self._registry = SkillRegistry(paths, roots=default_roots(self.project))
        return self._registry

    def load_skills(self, paths: Sequence[str]) -> SkillList:
        """Load folders and archives; relative ones are looked for beside the notebook, then in the cwd."""
        loaded = load_all([self.beside(path) for path in paths])
        self.registry.register(loaded)
        for found in self._open.values():
            # The session copies them anew: a script may have changed where the SKILL.md has not.
            found.session.add_skills(loaded)
        return loaded

    def beside(self, path: str) -> Path:
        """A path as the user means it: beside the notebook when it is there, else from the cwd."""
        given = Path(path).expanduser()
        beside = self.project / given
        return beside if beside.exists() or given.is_absolute() else given.absolute()

    # Sessions ----------------------------------------------------------------------------------------

    def opened(self) -> dict[str, Open]:
        """The sessions that are open here, by the names the user gave them."""
        return {name if not tape else f"{name} ({tape})": found for (name, tape), found in self._open.items()}

    def current(self) -> Open | None:
        """The session that cells without ``--session`` go on with, when there is one."""
        return self._open.get((self.name, None)) or next(reversed(self._open.values()), None)

    def existing(self) -> Open:
        """The same, where there has to be one.

        Raises:
            SessionError: there is none.
        """
        opened = self.current()
        if opened is None:
            raise SessionError("There is no session yet in this kernel; %%claude starts one")
        return opened

    def session(self, name: str | None, *, new: bool = False, replay: str | None = None) -> Open:
        """The session of that name: the one open here, the one on disk, or a new one.

        Raises:
            SessionError: it is busy and a new one was asked for in its place.
            SettingsError: a setting is wrong.
        """
        key = (name or self.name, replay)
        found = self._open.get(key)
        if found is not None and not new:
            return found
        if found is not None:
            self._close(key)
        settings = self.settings()
        if replay is not None:
            mode = settings.replay if settings.replay != "off" else "auto"
            settings = settings.with_(replay_file=str(self._cassette(replay)), replay=mode)
        asker = Asker()
        options = self._options(asker)
        if key[0] == MAIN:
            session = Session(settings, **options)
        elif not new and key[0] in session_ids(self.project, settings):
            session = Session.resume(key[0], settings, **options)
        else:
            session = Session(settings, id=key[0], **options)
        return self._keep(key, Open(session, asker))

    def renewed(self, opened: Open, on: str) -> Open:
        """The session with the settings of places as they are now, for a turn whose tools run at ``on``.

        A place takes them when it is made. Where nothing has run there yet, the session is let go and taken
        up again, which makes it anew; else they count for sessions that begin later, and the user is told.
        """
        now = self.settings()
        changed = opened.changed(now)
        if not changed:
            return opened
        key = next(key for key, found in self._open.items() if found is opened)
        if on in opened.ran or key[1] is not None or opened.session.running is not None:
            if changed != opened.told:
                opened.told = changed
                say(f"Only a new session (--new) takes what was changed: {', '.join(changed)}")
            return opened
        before = opened.session
        # This says what is wrong with them before the session is let go.
        before.settings = before.settings.with_(**{name: getattr(now, name) for name in changed})
        self._close(key)
        if before.timeline is None:
            return self.session(key[0])
        session = Session.resume(before.id, before.settings, **self._options(opened.asker))
        return self._keep(key, Open(session, opened.asker, cells=opened.cells))

    def resume(self, session_id: str) -> Open:
        """Go on with a session that exists.

        Raises:
            SessionError: it is not found, or in use elsewhere.
        """
        for name, found in self._open.items():
            if found.session.id == session_id and name[1] is None:
                self.name = name[0]
                return found
        asker = Asker()
        session = Session.resume(session_id, self.settings(), **self._options(asker))
        if (self.name, None) in self._open:
            self._close((self.name, None))
        return self._keep((self.name, None), Open(session, asker))

    def _options(self, asker: Asker) -> dict[str, Any]:
        headless = frontend.kind(self.shell) == "headless"
        return {
            "skills": self.registry,
            "project": self.project,
            "namespace": self.namespace,
            "approver": None if headless else asker,
            "headless": headless,
        }

    def _keep(self, key: tuple[str, str | None], opened: Open) -> Open:
        self._open[key] = opened
        self._housekeeping.begin(self)
        return opened

    def _close(self, key: tuple[str, str | None]) -> None:
        found = self._open[key]
        if found.session.running is not None:
            raise SessionError(f"Session {key[0]!r} has a turn under way; end it with %claude stop")
        del self._open[key]
        found.session.close()

    def _cassette(self, name: str) -> Path:
        path = Path(name).expanduser()
        return path if path.is_absolute() else self.project / path

    def namespace(self) -> dict[str, Any]:
        """The user's variables: without IPython's own, and without names that begin with an underscore."""
        hidden = self.shell.user_ns_hidden
        return {
            name: value
            for name, value in self.shell.user_ns.copy().items()
            if not name.startswith("_") and (name not in hidden or hidden[name] is not value)
        }

    def value(self, name: str) -> Any:
        """The value of a variable, or of an attribute of one; ``MISSING`` when there is none."""
        return lookup(name, self.namespace()) if NAME.fullmatch(name) else MISSING

    def last_session(self) -> str | None:
        """The latest session of this folder that is not open here; asked once in a kernel."""
        if self._told_of_last:
            return None
        self._told_of_last = True
        here = {found.session.id for found in self._open.values()}
        earlier = [name for name in session_ids(self.project, self.settings()) if name not in here]
        return earlier[-1] if earlier else None

    def tell_news(self) -> None:
        """Say what was done in the background since the last cell."""
        if told := self._housekeeping.news():
            say(told)

    def scratch(self) -> Path:
        """A private folder for variables that are attached as files; a new one at each call."""
        if self._scratch is None:
            self._scratch = Path(tempfile.mkdtemp(prefix="conjure-"))
        return Path(tempfile.mkdtemp(dir=self._scratch))

    def close(self) -> None:
        """Let go of everything; the files of sessions stay."""
        for found in self._open.values():
            found.session.close()
        self._open.clear()
        if self._scratch is not None:
            with contextlib.suppress(OSError):
                shutil.rmtree(self._scratch)
        outputs.unregister(self.shell)

    # Turns -------------------------------------------------------------------------------------------

    def view(self, *, raw: bool = False, quiet: bool = False, root: str | None = None) -> View:
        """A view that fits what stands in front of the kernel; ``root`` as for ``Record``."""
        kind = frontend.kind(self.shell)
        style = self.style(raw=raw, root=root)
        if quiet:
            return QuietView()
        if kind == "terminal":
            return TerminalView(root)
        return FinalView(style) if kind == "headless" else LiveView(style)

    def style(self, *, raw: bool = False, root: str | None = None) -> Style:
        """How records are written here."""
        headless = frontend.kind(self.shell) == "headless"
        return Style(headless=headless, raw=raw, places=self._places() if headless else None, root=root)

    def _places(self) -> dict[str, str]:
        """This machine's folders by names that are the same everywhere."""
        places = {str(found.session.workspace): "." for found in self._open.values()}
        places |= {str(found.session.folder): "session" for found in self._open.values()}
        if len(self.project.parts) > 1:
            places.setdefault(str(self.project), "notebook")
        if len(Path.home().parts) > 1:
            places.setdefault(str(Path.home()), "~")
        return places

    def wait(self, opened: Open, start: Callable[..., Turn], view: View) -> Wait:
        """What waits for a turn that ``start(listener=…)`` starts.

        Raises:
            SessionError: the session has a turn under way.
        """
        if opened.session.running is not None:
            raise SessionError(
                "A turn of this session is under way; see %claude status, end it with %claude stop, "
                "or talk to another session with --session NAME"
            )
        asker = opened.asker if opened.session.approver is not None else None
        return Wait(opened.session, lambda: start(listener=view.hear), view, asker)

    def remember(self, opened: Open, reply: Reply) -> None:
        """Note which turn this cell made, for ``--retry``, and that its reply was shown."""
        if (cell := self._cell_id()) is not None and reply.turn:
            opened.cells[cell] = reply.turn
        outputs.shown(reply)

    def earlier_turn(self, opened: Open) -> int | bool:
        """The turn that this cell made before; True, the last one, where cells cannot be told apart.

        Raises:
            SettingsError: the session has no turn yet.
        """
        if not opened.session.turns:
            raise SettingsError("--retry", "this session has no turn yet")
        cell = self._cell_id()
        return opened.cells.get(cell, True) if cell is not None else True

    def _cell_id(self) -> str | None:
        kernel = getattr(self.shell, "kernel", None)
        found = frontend.parent(kernel).get("metadata", {}).get("cellId") if kernel is not None else None
        return found if isinstance(found, str) else None
