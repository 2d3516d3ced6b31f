"""Ways to see what commands left behind."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path


def alive(token: str) -> list[int]:
    """Processes whose command line or environment holds the token; zombies are left out."""
    found = []
    numbers = [int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit()]
    for number in sorted(numbers, reverse=True):  # the newest first, before it forks and exits
        folder = Path(f"/proc/{number}")
        if number == os.getpid():
            continue
        try:
            seen = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
            state = (folder / "stat").read_bytes().rpartition(b")")[2].split()[0]
        except (OSError, IndexError):
            continue
        if token.encode() in seen and state not in b"ZX":
            found.append(int(folder.name))
    return found


def gone(token: str, within: float = 2.0) -> bool:
    """Whether nothing with the token lives any more, after at most ``within`` seconds."""
    end = time.monotonic() + within
    while alive(token):
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def open_descriptors() -> int:
    """How many descriptors this process holds."""
    return len(list(Path("/proc/self/fd").iterdir()))


async def until(path: Path) -> None:
    """Wait until a command has made a file."""
    async with asyncio.timeout(15):
        while not await asyncio.to_thread(path.exists):  # noqa: ASYNC110  a process sets no event
            await asyncio.sleep(0.01)
