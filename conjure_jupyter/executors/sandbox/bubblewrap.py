"""Linux: a plan as the command line of ``bwrap``.

Mounts, processes, message queues, host name and, where it is off, the network are the sandbox's own. The
supervisor is process 1 there, which no command can end or stop; ``confine`` runs before it.
"""

from __future__ import annotations

import functools
import glob
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from .plan import Access, Plan, effective
from .scratch import Scratch

#: What a GPU is reached through; each is passed on where it is there.
_GPUS = ("/dev/nvidia*", "/dev/dri", "/dev/kfd", "/dev/dxg")
#: Root may write these without any capability; ``core_pattern`` is a way out.
_SYSTEM_SETTINGS = tuple(
    f"/proc/{name}" for name in ("sys", "sysrq-trigger", "acpi", "scsi", "fs", "driver", "mtrr", "bus", "irq")
)
#: Seconds that a trial may take.
_PATIENCE = 10.0


def program() -> str | None:
    """The path of ``bwrap``."""
    return shutil.which("bwrap")


@functools.cache
def trouble(*, network: bool) -> str | None:
    """Why it does not work here, by a trial; None when it does.

    Args:
        network: whether the sandbox has one: setting up a network of its own fails on some machines.
    """
    bwrap = program()
    if bwrap is None:
        return "bubblewrap (bwrap) is not installed"
    arguments = [*_namespaces(bwrap, network=network), *_base(Access.READ), "--", sys.executable, "-I", "-S"]
    try:
        done = subprocess.run(
            [*arguments, "-c", ""],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
            env={"PATH": os.environ.get("PATH", os.defpath)},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap cannot be run: {error}"
    if done.returncode == 0:
        return None
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return f"bubblewrap does not work here: {said[-1] if said else f'exit status {done.returncode}'}"


@functools.cache
def _options(bwrap: str) -> str:
    return subprocess.run(
        [bwrap, "--help"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    ).stdout


def _namespaces(bwrap: str, *, network: bool) -> list[str]:
    own = ["user", "ipc", "pid", "uts", "cgroup-try", *([] if network else ["net"])]
    nested = ["--disable-userns"] if "--disable-userns" in _options(bwrap) else []
    return [
        bwrap,
        *(f"--unshare-{kind}" for kind in own),
        *nested,  # the filter of system calls refuses them as well
        *("--die-with-parent", "--new-session", "--as-pid-1", "--cap-drop", "ALL"),
    ]


def _base(root: Access) -> list[str]:
    bind = "--bind" if root is Access.WRITE else "--ro-bind"
    devices = [path for pattern in _GPUS for path in glob.glob(pattern)]  # noqa: PTH207  absolute
    gpus = [word for path in devices for word in ("--dev-bind-try", path, path)]
    locked = [word for path in _SYSTEM_SETTINGS for word in ("--ro-bind-try", path, path)]
    return [bind, "/", "/", "--dev", "/dev", *gpus, "--proc", "/proc", *locked]


def arguments(plan: Plan, scratch: Scratch, points: tuple[Path, ...] = ()) -> list[str]:
    """The command line up to the program to run.

    Args:
        plan: what may be read and written.
        scratch: where the private folders lie.
        points: missing names that were taken by empty folders.
    """
    bwrap = program() or "bwrap"
    rules = dict(plan.rules)
    for path in plan.guarded:
        if not path.is_symlink() and plan.access(path) is Access.WRITE:
            rules[path] = Access.READ
    pinned = set(_pinned(plan, [*rules, *points]))
    for path in pinned:
        rules.setdefault(path, Access.WRITE)
    words = [*_namespaces(bwrap, network=plan.network), *_base(rules[Path("/")])]
    sealed: list[str] = []
    for path, access in sorted(rules.items(), key=lambda rule: (len(rule[0].parts), rule[0])):
        around = effective({other: what for other, what in rules.items() if other != path}, path)
        if path == Path("/") or (access is around and access is not Access.PRIVATE and path not in pinned):
            continue
        if access is Access.HIDDEN and path.is_dir():
            sealed += ["--remount-ro", str(path)]
        words += _mount(path, access, scratch.home if path == plan.home else scratch.tmp)
    for path in points:
        words += ["--ro-bind", str(scratch.empty), str(path)]
    for path, target in sorted(plan.links.items()):
        words += ["--symlink", target, str(path)]
    return [*words, *sealed, "--"]


def _mount(path: Path, access: Access, private: Path) -> list[str]:
    text = str(path)
    if access is Access.PRIVATE:
        return ["--bind", str(private), text]
    if access is Access.HIDDEN:
        return ["--tmpfs", text] if path.is_dir() else ["--ro-bind", os.devnull, text]
    return ["--bind" if access is Access.WRITE else "--ro-bind", text, text]


def _pinned(plan: Plan, rules: Iterable[Path]) -> list[Path]:
    """Folders between a root and a rule below it: mounted themselves, they cannot be renamed away."""
    found = []
    for path in rules:
        for folder in path.parents:
            if folder in plan.rules:
                break
            if plan.access(folder) is Access.WRITE:
                found.append(folder)
    return found


def outside(sandbox: int | None, inside: int) -> int | None:
    """The process id on this machine of process ``inside`` of the sandbox that ``sandbox`` started."""
    queue = [] if sandbox is None else [sandbox]
    while queue:
        pid = queue.pop(0)
        try:
            lines = Path(f"/proc/{pid}/status").read_text("ascii", "replace").splitlines()
            tasks = Path(f"/proc/{pid}/task").iterdir()
            children = [(task / "children").read_text() for task in tasks]
        except OSError:
            continue  # it ended meanwhile
        numbers = next((line.split()[1:] for line in lines if line.startswith("NSpid:")), [])
        if len(numbers) > 1 and int(numbers[-1]) == inside:
            return pid
        queue += [int(word) for line in children for word in line.split()]
    return None
