"""What a command's result says of the limits of its container."""

from __future__ import annotations

from collections.abc import Sequence

from ....wording import size_text

#: The end of the output in which a full disk is looked for.
TAIL = 8192
_FULL = b"No space left on device"
#: Free bytes at which a file system counts as full: a block or two may be kept back.
_NOTHING = 1 << 16
#: Version 1 of cgroups names a number past all memory where there is no limit.
_NO_LIMIT = 1 << 60


def limits(
    memory: int, memory_limit: int, processes: int, processes_limit: int, *, failed: bool
) -> list[str]:
    """Out of memory, out of processes.

    Args:
        memory: how many processes the kernel ended for want of memory while the command ran.
        memory_limit: bytes; 0 for none.
        processes: how many it refused for want of room.
        processes_limit: their number; 0 for none.
        failed: whether the command did: what others suffered is no news to one that did not.
    """
    notes = []
    if memory and failed:
        size = f"{size_text(memory_limit)}, " if 0 < memory_limit < _NO_LIMIT else ""
        notes.append(f"A process was ended because the container ran out of memory ({size}memory_limit)")
    if processes and failed:
        count = f"{processes_limit}, " if processes_limit else ""
        notes.append(f"No more processes could be started ({count}docker_pids)")
    return notes


def complains(output: bytes) -> bool:
    """Whether a command's output says that a disk is full."""
    return _FULL in output[-TAIL:]


def disks(folders: Sequence[str], said: bytes) -> list[str]:
    """Which file systems are full.

    Args:
        folders: that were asked about.
        said: a line for each: free blocks, their size, all blocks, files, free files; empty when unknown.
    """
    notes = []
    seen = set()
    for folder, line in zip(folders, said.split(b"\n"), strict=False):
        words = line.split()
        if len(words) != 5 or not all(word.isdigit() and len(word) <= 20 for word in words):
            continue
        free, block, blocks, files, free_files = map(int, words)
        if (free * block < _NOTHING or (files and not free_files)) and line not in seen:
            seen.add(line)
            notes.append(f"The disk that holds {folder} is full ({size_text(blocks * block)})")
    return notes
