"""Linux: a plan as rules of Landlock, for machines that forbid user namespaces.

Landlock only allows: what is hidden in a readable folder is left out by allowing its neighbours one by one.
Within a folder that may be written nothing can be left out, so ``gaps`` says what is not kept there, and
``watch`` looks after the files that run later. Sockets of the file system are not governed either, hence
``AF_UNIX`` is refused whole (connected pairs are not): the socket of an engine or a session bus is a way out.
Not kept: file names and modes can be seen, and modes of the user's own files changed, everywhere.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from . import filters
from .confine import landlock_version
from .plan import Access, Plan
from .scratch import Scratch

#: Truncation is confined from this version on (Linux 6.2); before, a command could empty any file.
LEAST = 3
#: From this version on signals and abstract sockets stay inside (Linux 6.12).
SCOPED = 6
CONFINE = Path(__file__).parent / "confine.py"

_DEVICES = ("null", "zero", "full", "random", "urandom", "nvidia*", "dri", "kfd", "dxg")
_PATIENCE = 10.0


@functools.cache
def trouble() -> str | None:
    """Why it does not work here, by a trial; None when it does."""
    if sys.platform != "linux":
        return "Landlock is Linux's"
    machine = os.uname().machine
    if not filters.known(machine):
        return f"Landlock needs a filter of system calls, and there is none for {machine}"
    version = landlock_version()
    if version < LEAST:
        known = f"version {version}" if version else "none, or it is switched off"
        return f"Landlock needs version {LEAST} (Linux 6.2); this kernel has {known}"
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"files": {"read": ["/"]}, "network": False, "families": []}, file)
        file.flush()
        command = [*prefix(Path(file.name)), sys.executable, "-I", "-S", "-c", ""]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_PATIENCE,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"Landlock cannot be tried: {error}"
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        return f"Landlock does not work here: {said[-1] if said else f'exit status {done.returncode}'}"
    return None


def prefix(rules: Path) -> tuple[str, ...]:
    """The start of a command line that runs the rest confined by a file of rules."""
    return (sys.executable, "-I", "-S", str(CONFINE), str(rules))


def gaps(plan: Plan) -> list[str]:
    """What is not kept: what lies hidden in a folder that may be written."""
    return [
        f"Landlock cannot hide {path}, in a folder that tools may write"
        for path, access in plan.ordered()
        if access is Access.HIDDEN and plan.access(path.parent) is Access.WRITE
    ]


def rules(plan: Plan, scratch: Scratch) -> dict[str, list[str]]:
    """The paths to allow, by what is allowed."""
    given = {**plan.rules, Path("/dev"): Access.HIDDEN}
    found: dict[str, list[str]] = {"read": [], "list": ["/dev"], "write": [], "devices": []}
    for path, access in given.items():
        if access is Access.WRITE:
            found["write"].append(str(path))
        elif access is Access.READ:
            for kind, text in _carved(path, given, plan.home):
                found[kind].append(text)
    found["write"] += [str(scratch.tmp), str(scratch.home), "/dev/shm"]  # noqa: S108  semaphores live there
    for name in _DEVICES:
        found["devices"] += [str(path) for path in Path("/dev").glob(name)]
    return found


def _carved(folder: Path, rules: dict[Path, Access], home: Path) -> Iterator[tuple[str, str]]:
    """What to allow so that a folder is readable but not what other rules are about."""
    below = [path for path in rules if path != folder and path.is_relative_to(folder)]
    if not any(rules[path] in (Access.HIDDEN, Access.PRIVATE) for path in below):
        yield "read", str(folder)
        return
    if not home.is_relative_to(folder):
        yield "list", str(folder)  # it would show the names in the home folder as well
    try:
        with os.scandir(folder) as scan:
            entries = [Path(entry.path) for entry in scan if not entry.is_symlink()]
    except OSError:
        return
    for entry in entries:
        if entry in rules:
            continue
        if any(path.is_relative_to(entry) for path in below):
            yield from _carved(entry, rules, home)
        else:
            yield "read", str(entry)
