"""What a sandbox lets its commands read and write: one set of rules that every kind of sandbox renders.

The whole machine may be read, except what ``sensitive`` lists, and nothing written; then the folders of the
context come back. A rule is about a path and all below it, and **the deepest rule wins**.

Of the home folder the entries without a leading dot stay readable; the rest is not there. That is a list of
what may be seen, not of what may not: a dot-file made later is hidden as well. What is made later without
a dot is missing until the next call, before which the plan is made again (``signature``).
"""

from __future__ import annotations

import enum
import glob
import os
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ..contract import ExecutionContext
from . import sensitive
from .needs import needed, prefixes

#: Where a session keeps its log beside the folder of its tools; other sessions lie beside it.
_SESSIONS, _LOG = ".conjure", "timeline.jsonl"


class Access(enum.Enum):
    """What a rule gives: nothing, an own empty folder in its place, reading, or writing too."""

    HIDDEN = "hidden"
    PRIVATE = "private"
    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True)
class Plan:
    """The rules of one sandbox. All paths are absolute and, except ``links``, free of links.

    Attributes:
        rules: by path; "/" is always there.
        links: symbolic links on the way to what is readable, that lie where things are hidden.
        home: the user's home folder, a ``PRIVATE`` one where it may be confined.
        roots: the folders that may be written.
        guarded: files and folders below the roots, there already, that stay as they are.
        missing: names below the roots that may not be made.
        network: whether there is one.
        gaps: what cannot be kept for these folders, a sentence each.
    """

    rules: dict[Path, Access]
    links: dict[Path, str]
    home: Path
    roots: tuple[Path, ...]
    guarded: tuple[Path, ...]
    missing: tuple[Path, ...]
    network: bool
    gaps: tuple[str, ...] = ()

    def ordered(self) -> list[tuple[Path, Access]]:
        """The rules from the root down."""
        return sorted(self.rules.items(), key=lambda rule: (len(rule[0].parts), rule[0]))

    def access(self, path: Path) -> Access:
        """What the rules give for a path without links."""
        return effective(self.rules, path)


def effective(rules: dict[Path, Access], path: Path) -> Access:
    """The deepest rule's word."""
    for folder in (path, *path.parents):
        if folder in rules:
            return rules[folder]
    return Access.HIDDEN


def make_plan(context: ExecutionContext) -> Plan:
    """The rules for a context; looks at the disk, changes nothing."""
    return _Planner(context).plan()


@dataclass
class _Planner:
    context: ExecutionContext
    home: Path = field(default_factory=lambda: Path(os.path.realpath(Path("~").expanduser())))
    rules: dict[Path, Access] = field(default_factory=lambda: {Path("/"): Access.READ})
    links: dict[Path, str] = field(default_factory=dict)

    def plan(self) -> Plan:
        context = self.context
        roots = _real(context.working_directory, *context.writable_paths)
        shown = [path for path in (context.skills_root, context.artifacts_root) if path is not None]
        readable = _real(*context.allowed_paths, *shown)
        gaps = []
        self._hide_system()
        self._hide_home()
        for path in needed(self.home):
            self._reach(path)
        for path in (*readable, *roots):
            self._hide_inside(path)
        for path in readable:
            if not self.home.is_relative_to(path):
                self.rules[path] = Access.READ
        for path in roots:
            self.rules[path] = Access.WRITE
            if self.home.is_relative_to(path):
                gaps.append(f"the folder that tools may write ({path}) holds the home folder")
        for path in (context.working_directory, *context.allowed_paths, *context.writable_paths):
            self._reach(path, by_links_only=True)
        for path in _real(*context.read_only_paths):
            self._lock(path)
        for path in _real(*prefixes()):
            self._keep(path)
        guarded, missing = self._guard(roots)
        return Plan(
            rules=self.rules,
            links=self.links,
            home=self.home,
            roots=tuple(path for path in roots if self.rules[path] is Access.WRITE),
            guarded=guarded,
            missing=missing,
            network=context.network_access != "none",
            gaps=tuple(gaps),
        )

    def _hide_system(self) -> None:
        found = [*sensitive.HIDDEN, *(os.environ.get(name, "") for name in sensitive.HIDDEN_VARIABLES)]
        for pattern in sensitive.HIDDEN_PATTERNS:
            found += glob.glob(pattern)  # noqa: PTH207  the patterns are absolute
        for path in _real(*(Path(text) for text in found if text.startswith("/"))):
            if path.exists() and path != self.home:
                self.rules[path] = Access.HIDDEN
        for path in temporary_folders():
            self.rules[path] = Access.PRIVATE
        for text in sensitive.RUN_NEEDED:
            if Path(text).exists():
                self._reach(Path(text))

    def _hide_home(self) -> None:
        home = self.home
        if home == Path("/") or not home.is_dir():
            return
        self.rules[home] = Access.PRIVATE
        for name in visible_names(home):
            path = home / name
            if path.is_symlink():
                self.links[path] = str(path.readlink())
            else:
                self.rules[path] = Access.READ

    def _hide_inside(self, folder: Path) -> None:
        """Keys and sessions in a folder of the context, and the log beside the tools' own."""
        for path in (*sensitive.key_like(folder), folder / _SESSIONS):
            if path.exists() and not path.is_symlink():
                self.rules[path] = Access.HIDDEN
        for parent in folder.parents:
            if parent.name == _SESSIONS:
                self.rules[parent] = Access.HIDDEN
        if (folder.parent / _LOG).exists():
            for path in (folder.parent, *_sessions_beside(folder.parent)):
                self.rules[path] = Access.HIDDEN

    def _reach(self, path: Path, *, by_links_only: bool = False) -> None:
        """Make a path readable, and the links that lead there."""
        steps = list(path.parts[1:])[::-1]
        at = Path("/")
        for _ in range(500):
            if not steps:
                break
            name = steps.pop()
            if name == "..":
                at = at.parent
                continue
            step = at / name
            try:
                target = str(step.readlink())
            except OSError:
                at = step
                continue
            if self._hides(step):
                self.links[step] = target
            if target.startswith("/"):
                at = Path("/")
            steps += [part for part in target.split("/") if part not in ("", ".")][::-1]
        if not by_links_only and at not in self.rules and self._hides(at) and at.exists():
            self.rules[at] = Access.READ

    def _hides(self, path: Path) -> bool:
        return effective(self.rules, path) in (Access.HIDDEN, Access.PRIVATE)

    def _lock(self, path: Path) -> None:
        """Nothing below may be written, whatever other rules say."""
        for other, access in self.rules.items():
            if access is Access.WRITE and other.is_relative_to(path):
                self.rules[other] = Access.READ
        self._keep(path)

    def _keep(self, path: Path) -> None:
        if path not in self.rules and effective(self.rules, path) is Access.WRITE and path.exists():
            self.rules[path] = Access.READ

    def _guard(self, roots: tuple[Path, ...]) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
        guarded, missing = [], []
        for root in roots:
            for path in _persistent(root):
                if effective(self.rules, path) is Access.READ:
                    continue  # it is locked with all around it
                if os.path.lexists(path):
                    guarded.append(path)
                else:
                    missing.append(path)
        return tuple(guarded), tuple(missing)


def temporary_folders() -> tuple[Path, ...]:
    """The folders that everyone may write to, which a sandbox has for itself."""
    found = _real(Path("/tmp"), Path("/var/tmp"), Path(tempfile.gettempdir()))  # noqa: S108
    return tuple(path for path in found if path.is_dir())


def visible_names(home: Path) -> list[str]:
    """Entries of a home folder that commands may see."""
    try:
        names = os.listdir(home)  # noqa: PTH208  names are all that is needed
    except OSError:
        return []
    keys = {path.name for path in sensitive.key_like(home)}
    hidden = {*sensitive.HOME_HIDDEN, *keys}
    return sorted(name for name in names if not name.startswith(".") and name not in hidden)


def signature(plan: Plan, context: ExecutionContext) -> object:
    """What the plan was made from; another value says that it has to be made again."""
    readable = _real(*context.allowed_paths)
    return (
        visible_names(plan.home),
        [str(path) for folder in readable if folder not in plan.roots for path in sensitive.key_like(folder)],
        [_identity(path) for path in (*plan.roots, *plan.guarded, *plan.missing)],
    )


def _identity(path: Path) -> tuple[int, int, int] | None:
    try:
        info = os.lstat(path)
    except OSError:
        return None
    return info.st_dev, info.st_ino, stat.S_IFMT(info.st_mode)


def _persistent(root: Path) -> Iterator[Path]:
    for name in sensitive.PERSISTENT:
        path = root / name
        if name == ".git" and path.is_dir() and not path.is_symlink():
            yield from (path / child for child in sensitive.GIT_PERSISTENT)
        else:
            yield path


def _sessions_beside(session: Path) -> list[Path]:
    try:
        return [entry for entry in session.parent.iterdir() if (entry / _LOG).exists()]
    except OSError:
        return []


def _real(*paths: Path) -> tuple[Path, ...]:
    """Without links, each once, in their order."""
    return tuple(dict.fromkeys(Path(os.path.realpath(path)) for path in paths))
