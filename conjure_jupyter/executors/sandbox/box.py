"""One running sandbox: the rules for one set of folders, its private folders, and its supervisor."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import site
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import ExecutorError
from ..commands import Commands, Launcher, Way
from ..contract import ExecutionContext
from . import bubblewrap, filters, landlock, seatbelt
from .confinement import Confinement, Kind
from .plan import Access, Plan, make_plan, signature, visible_names
from .scratch import Scratch
from .watch import Watch

_PATIENCE = 20.0


@dataclass(frozen=True, slots=True)
class _Setup:
    launcher: Launcher
    environment: Mapping[str, str]
    points: tuple[Path, ...] = ()
    profile: Path | None = None


class Box:
    """A sandbox for one context. Making it blocks; ``commands`` are then the event loop's.

    Args:
        kind: what confines; it was found to work.
        context: the folders and the network.
        way: how the processes of a command are found.
        scratch: its private folders.

    Raises:
        ExecutorError: it cannot be made.
    """

    def __init__(self, kind: Kind, context: ExecutionContext, way: Way | None, scratch: Scratch) -> None:
        self.owner = os.getpid()
        self.kind = kind
        self.context = context
        self.running = 0
        self.plan = make_plan(context)
        self._scratch = scratch
        try:
            setup = _SETUPS[kind](self.plan, scratch)
        except OSError as error:
            raise ExecutorError(f"the sandbox cannot be set up: {error}") from error
        self.environment = setup.environment
        self.points = setup.points
        self._profile = setup.profile
        self._launcher = setup.launcher
        self.commands = Commands(way, launcher=setup.launcher)
        self._signature = signature(self.plan, context)
        self._watch = Watch(self.plan.roots, _watched(kind, self.plan, setup.points))

    @property
    def confinement(self) -> Confinement:
        """What it keeps."""
        gaps = [*self.plan.gaps, *(landlock.gaps(self.plan) if self.kind == "landlock" else ())]
        reason = "; ".join(gaps)
        return Confinement(
            self.kind, reads=not gaps, writes=True, network=not self.plan.network, reason=reason
        )

    def fresh(self) -> bool:
        """Whether what it was made from is still so."""
        return self._signature == signature(self.plan, self.context)

    def enter(self) -> None:
        """A command is about to start."""
        self._watch.begin()
        self.running += 1

    def leave(self) -> list[str]:
        """A command has ended; what was put back, a sentence each."""
        self.running -= 1
        return self._watch.end()

    def shell(self, bash: str) -> str:
        """The program to run in place of bash."""
        if self._profile is None:
            return bash
        script = self._profile.with_suffix(".sh")
        if not script.exists():
            script.write_text(seatbelt.shell(self._profile, bash), "utf-8")
            script.chmod(0o700)
        return str(script)

    def complaint(self) -> str:
        """What the sandbox says when it does not even start."""
        try:
            done = subprocess.run(
                [*self._launcher.prefix, sys.executable, "-I", "-S", "-c", ""],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_PATIENCE,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        return said[-1] if said else f"it ends with exit status {done.returncode}"

    async def close(self) -> None:
        """End all commands and give up what it took. Never raises."""
        await self.commands.close()
        if self.owner == os.getpid():
            await asyncio.to_thread(self._scratch.release, self.points)


def _bubblewrap(plan: Plan, scratch: Scratch) -> _Setup:
    points = scratch.take([*filter(_mountable, plan.missing), *plan.guarded])
    families = (filters.AF_UNIX, filters.AF_INET, filters.AF_INET6, filters.AF_NETLINK)
    rules = _write_rules(scratch, None, network=plan.network, families=families)
    plan.rules[rules] = Access.READ
    launcher = Launcher(
        prefix=(*bubblewrap.arguments(plan, scratch, points), *landlock.prefix(rules)),
        environment={"TMPDIR": "/tmp"},  # noqa: S108  the sandbox's own
        outside=bubblewrap.outside,
    )
    return _Setup(launcher, {"TMPDIR": "/tmp"}, points)  # noqa: S108


def _landlock(plan: Plan, scratch: Scratch) -> _Setup:
    families = (filters.AF_INET, filters.AF_INET6, filters.AF_NETLINK) if plan.network else ()
    rules = _write_rules(scratch, landlock.rules(plan, scratch), network=plan.network, families=families)
    launcher = Launcher(prefix=landlock.prefix(rules), environment={"TMPDIR": str(scratch.tmp)})
    return _Setup(launcher, _own_home(plan, scratch))


def _seatbelt(plan: Plan, scratch: Scratch) -> _Setup:
    path = scratch.path / f"{secrets.token_hex(4)}.sb"
    path.write_text(seatbelt.profile(plan, scratch), "utf-8")
    return _Setup(Launcher(), _own_home(plan, scratch), profile=path)


_SETUPS: dict[Kind, Any] = {"bubblewrap": _bubblewrap, "landlock": _landlock, "seatbelt": _seatbelt}


def _write_rules(
    scratch: Scratch, files: dict[str, list[str]] | None, *, network: bool, families: tuple[int, ...]
) -> Path:
    path = scratch.path / f"{secrets.token_hex(4)}.json"
    path.write_text(json.dumps({"files": files, "network": network, "families": families}), "utf-8")
    return path


def _own_home(plan: Plan, scratch: Scratch) -> dict[str, str]:
    """Variables for a home folder of its own, with links to what may be seen of the user's."""
    for name in visible_names(plan.home):
        with contextlib.suppress(FileExistsError):
            (scratch.home / name).symlink_to(plan.home / name)
    found = {"TMPDIR": str(scratch.tmp), "HOME": str(scratch.home)}
    if site.ENABLE_USER_SITE:
        found["PYTHONUSERBASE"] = site.getuserbase()
    return found


def _mountable(path: Path) -> bool:
    """Whether an empty folder of that name disturbs nobody: git ends at some of its own that are folders."""
    return path.name in ("hooks", "modules") if path.parent.name == ".git" else path.name.startswith(".")


def _watched(kind: Kind, plan: Plan, points: tuple[Path, ...]) -> list[Path]:
    """What the kind of sandbox cannot lock."""
    if kind == "seatbelt":
        return []
    if kind == "landlock":
        return [*plan.guarded, *plan.missing]
    links = [path for path in plan.guarded if path.is_symlink()]
    return [*links, *(path for path in plan.missing if path not in points)]
