"""Any POSIX system (macOS): find what a command started, by session, ancestry and a marker variable.

A process counts as the command's when it is in the shell's session, or below the shell or another such
process, or has ``CONJURE_CALL`` with the call's marker in its environment. That finds background jobs,
``nohup``, ``setsid`` and double forks. Not found: a process that left the session, lost its parents *and*
has another environment (``env -i``), or whose environment the system hides, as macOS does for its own
programs in ``/bin`` and ``/usr/bin``; nor what a daemon outside starts on request.

Runs inside the supervisor and in the engine: standard library only, and quick to import.
"""

from __future__ import annotations

import os

MARKER = "CONJURE_CALL"
#: A worker without children proves nothing here: orphans go to process 1.
INHERITS_ORPHANS = False

#: Process id, parent, session, environment (and, from ``ps``, the command line before it).
Row = tuple[int, int, int, bytes]


def prepare() -> None:
    """Nothing to do: kept so that both ways of searching look alike."""


def members(shell: int, marker: str, spared: set[int]) -> list[int]:
    """Every living process of the call, by process id; never one of ``spared``, this one or its ancestors."""
    rows = _rows_from_proc() if os.path.isdir("/proc/self") else _rows_from_ps()  # noqa: PTH112
    return [pid for pid in belonging(rows, shell, marker, os.getpid()) if pid not in spared]


def belonging(rows: list[Row], shell: int, marker: str, me: int) -> list[int]:
    """Which of ``rows`` belong to the call (a function of its arguments alone).

    Args:
        rows: every process that lives.
        shell: the shell's process id, which is its session's too; 0 when it is not known.
        marker: the value of the call's marker variable.
        me: the process that asks, which is not part of the call, nor is what is above it.
    """
    parents = {pid: parent for pid, parent, _, _ in rows}
    spared = set()
    above: int | None = me
    while above is not None and above not in spared:
        spared.add(above)
        above = parents.get(above)
    mark = f"{MARKER}={marker}".encode()
    found = {
        pid
        for pid, _, session, environment in rows
        if pid == shell or (shell and session == shell) or mark in environment
    } - spared
    while True:
        more = {pid for pid, parent in parents.items() if parent in found} - found - spared
        if not more:
            return sorted(found)
        found |= more


def _rows_from_proc() -> list[Row]:
    rows = []
    numbers = [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208  see reaper
    # The newest first: one that forks and exits all the time is gone by the end of the list.
    for number in sorted(numbers, reverse=True):
        name = str(number)
        try:
            with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                state, parent, _, session = file.read().rpartition(b")")[2].split()[:4]
        except (OSError, ValueError):
            continue  # it ended meanwhile
        if state not in b"ZX":
            rows.append((int(name), int(parent), int(session), _environment(name)))
    return rows


def _environment(pid: str) -> bytes:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
            return file.read()
    except OSError:
        return b""  # someone else's process


def _rows_from_ps() -> list[Row]:
    import subprocess

    listing = subprocess.run(
        ["/bin/ps", "-axEww", "-o", "pid=,ppid=,stat=,command="],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
    ).stdout
    return parse_ps(listing)


def parse_ps(listing: bytes) -> list[Row]:
    """Rows from ``ps`` with the columns pid, parent, state, command and environment; zombies are left out."""
    rows = []
    for line in listing.splitlines():
        fields = line.split(None, 3)
        if len(fields) >= 3 and not fields[2].startswith(b"Z"):
            rows.append((int(fields[0]), int(fields[1]), _session(int(fields[0])), line))
    return rows


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return -1
