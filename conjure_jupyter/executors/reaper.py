"""Linux: find and end everything a command started, through a child subreaper.

A subreaper inherits the orphans of its descendants, so whatever a command does (new session, double fork,
``nohup``) its processes stay below the worker that started it: when the worker has no child left, nothing
is left. What this cannot see is a process that a daemon outside starts on request (cron, systemd, Docker).

Runs inside the supervisor: standard library only, and quick to import.
"""

from __future__ import annotations

import ctypes
import os

_PR_SET_CHILD_SUBREAPER = 36
#: Whether a worker without children proves that nothing is left.
INHERITS_ORPHANS = True


def prepare() -> None:
    """Make this process the one that inherits orphans.

    Raises:
        OSError: the kernel refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_CHILD_SUBREAPER")


def members(shell: int, marker: str, spared: set[int]) -> list[int]:  # noqa: ARG001  both ways look alike
    """Every living descendant of this process, nearest first.

    Zombies are left out, and so are the processes in ``spared`` with all below them.
    """
    found: list[int] = []
    queue = [os.getpid()]
    while queue:
        for child in _children(queue.pop(0)):
            if child not in spared:
                queue.append(child)
                if _alive(child):
                    found.append(child)
    return found


def _children(pid: int) -> list[int]:
    """The children of all threads of a process; none when it has just ended."""
    found: list[int] = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208  pathlib takes 15 ms to import
    except OSError:
        return found
    for thread in threads:
        try:
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:  # noqa: PTH123
                found += [int(word) for word in file.read().split()]
        except FileNotFoundError:
            if os.path.exists(f"/proc/{pid}"):  # noqa: PTH110
                return _children_by_scan(pid)  # a kernel built without CONFIG_PROC_CHILDREN
        except OSError:
            continue
    return found


def _children_by_scan(pid: int) -> list[int]:
    return [
        int(name)
        for name in os.listdir("/proc")  # noqa: PTH208
        if name.isdigit() and _stat(int(name))[1:2] == [str(pid)]
    ]


def _alive(pid: int) -> bool:
    return _stat(pid)[:1] not in ([], ["Z"], ["X"])


def _stat(pid: int) -> list[str]:
    """State, parent and the rest of ``/proc/PID/stat``; the name before them may hold anything."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            return file.read().rpartition(b")")[2].decode("ascii").split()
    except OSError:
        return []
