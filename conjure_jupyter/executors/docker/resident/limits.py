"""Why a command failed when a limit of its container was the cause.

The kernel counts how often it ended a process for want of memory and refused one for want of room; a command
during which a count rose is told so. When several ran at the time it is those that failed, and when none of
them did, the last one to end.

Runs in the container: standard library only.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from ....wording import size_text

#: The end of the output in which a full disk is looked for.
TAIL = 8192
_FULL = b"No space left on device"
#: Free bytes at which a file system counts as full: a block or two may be kept back.
_NOTHING = 1 << 16
#: A cgroup without a limit says so, or names a number past all memory (version 1).
_NO_LIMIT = 1 << 60


@dataclass(frozen=True, slots=True)
class _Counter:
    """A count of the kernel's: its files (version 2, version 1), its name in them, and where the limit is."""

    files: tuple[str, ...]
    name: str
    limits: tuple[str, ...]

    def read(self, root: str) -> int:
        for file in self.files:
            for line in _text(f"{root}/{file}").splitlines():
                name, _, value = line.partition(" ")
                if name == self.name and value.isdigit():
                    return int(value)
        return 0

    def limit(self, root: str) -> int | None:
        for file in self.limits:
            text = _text(f"{root}/{file}").strip()
            if text.isdigit() and int(text) < _NO_LIMIT:
                return int(text)
        return None


_MEMORY = _Counter(
    ("memory.events", "memory/memory.oom_control"),
    "oom_kill",
    ("memory.max", "memory/memory.limit_in_bytes"),
)
_PROCESSES = _Counter(("pids.events", "pids/pids.events"), "max", ("pids.max", "pids/pids.max"))


class Watch:
    """One running command: the counts at its start, and whether it runs alone."""

    def __init__(self, memory: int, processes: int, *, alone: bool) -> None:
        self.memory = memory
        self.processes = processes
        self.alone = alone


class Limits:
    """Watches the counts of the container's cgroup.

    Args:
        root: where it is seen.
    """

    def __init__(self, root: str = "/sys/fs/cgroup") -> None:
        self._root = root
        self._running: set[Watch] = set()
        self._last: tuple[int, int] | None = None

    def begin(self) -> Watch:
        """A command starts."""
        for other in self._running:
            other.alone = False
        # Only commands make the counts rise: when none ran since the last look, it still holds. A look can
        # take longer than all else here.
        counts = self._look() if self._last is None or self._running else self._last
        watch = Watch(*counts, alone=not self._running)
        self._running.add(watch)
        return watch

    def end(self, watch: Watch, code: int | None) -> list[str]:
        """A command ended; what it is to be told.

        Args:
            code: its exit code, None when something else ended it.
        """
        self._running.discard(watch)
        notes = []
        memory, processes = self._look()
        if memory > watch.memory and self._concerns(watch, failed=code != 0):
            notes.append(self.out_of_memory())
            if code == 128 + 9:  # its own shell, or what the shell became: no other need look further
                for other in self._running:
                    other.memory = max(other.memory, memory)
        if processes > watch.processes and self._concerns(watch, failed=code != 0):
            notes.append(self.out_of_processes())
        return notes

    def _look(self) -> tuple[int, int]:
        self._last = _MEMORY.read(self._root), _PROCESSES.read(self._root)
        return self._last

    def _concerns(self, watch: Watch, *, failed: bool) -> bool:
        return failed or watch.alone or not self._running

    def out_of_memory(self) -> str:
        """What is said when a process was ended for want of memory."""
        limit = _MEMORY.limit(self._root)
        size = "" if limit is None else f"{size_text(limit)}, "
        return f"A process was ended because the container ran out of memory ({size}memory_limit)"

    def out_of_processes(self) -> str:
        """What is said when no process could be started."""
        limit = _PROCESSES.limit(self._root)
        number = "" if limit is None else f"{limit}, "
        return f"No more processes could be started ({number}docker_pids)"


def out_of_disk(output: bytes, folders: Iterable[str]) -> list[str]:
    """What is said of file systems that are full when a command complained of one.

    Args:
        output: what it printed.
        folders: where it may have written.
    """
    if _FULL not in output[-TAIL:]:
        return []
    notes = []
    seen = set()
    for folder in folders:
        try:
            device, info = os.stat(folder).st_dev, os.statvfs(folder)  # noqa: PTH116
        except OSError:
            continue
        full = info.f_bavail * info.f_frsize < _NOTHING or (info.f_files > 0 and info.f_favail == 0)
        if full and device not in seen:
            seen.add(device)
            notes.append(f"The disk that holds {folder} is full ({size_text(info.f_blocks * info.f_frsize)})")
    return notes


def _text(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:  # noqa: PTH123  twice a command
            return file.read()
    except OSError:
        return ""
