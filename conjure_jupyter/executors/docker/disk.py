"""Ending a command before it fills the disk that holds the workspace.

A container's own files are bounded (``/tmp`` and the home folder are in memory), but the workspace is a
folder of this machine without a quota.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from ...engine import outlast
from ...settings import MB
from ...wording import size_text
from ..contract import CommandResult
from ..output import Output

#: Seconds between two looks; a fast disk takes some hundred MB in that time.
INTERVAL = 0.2
#: What is left free: this many bytes, or this part of a small disk.
RESERVE, PART = 1024 * MB, 0.05


def free_space(folder: Path) -> tuple[int, int]:
    """Bytes that may still be written on the disk of a folder, and its size."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize


class DiskWatch:
    """Watches the disk of a folder while commands run.

    Args:
        folder: the workspace on this machine.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def guard(
        self,
        run: Callable[[Callable[[bytes], None]], Coroutine[Any, Any, CommandResult]],
        *,
        output_limit: int,
        on_output: Callable[[bytes], None] | None,
    ) -> CommandResult:
        """Run a command, and end it when the disk gets full through it.

        A disk that was full before is left to the command: it may be about to make room.

        Args:
            run: starts the command, given who hears its output.
            output_limit: bytes of output to keep.
            on_output: hears the output besides.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        kept = Output(output_limit)

        def hear(data: bytes) -> None:
            kept.add(data)
            if on_output is not None:
                on_output(data)

        command = asyncio.ensure_future(run(hear))
        watch = asyncio.ensure_future(self._until_full())
        try:
            await asyncio.wait([command, watch], return_when=asyncio.FIRST_COMPLETED)
            if command.done():
                return command.result()
        finally:
            watch.cancel()
            if not command.done():
                command.cancel()
                await outlast(command)
                if not command.cancelled():
                    command.exception()  # heard of: what it was matters no more
        output, cut = kept.finish()
        free, size = free_space(self._folder)
        note = (
            f"ended before it filled the disk of the workspace, which has {size_text(free)} of "
            f"{size_text(size)} free. Remove what is not needed"
        )
        return CommandResult(
            output=output,
            exit_code=128 + 9,
            timed_out=False,
            duration=loop.time() - began,
            total_bytes=kept.total,
            truncated_bytes=cut,
            notes=(note,),
        )

    async def _until_full(self) -> None:
        """Return once there is too little room, which there was at first."""
        free, size = free_space(self._folder)
        reserve = min(RESERVE, int(size * PART))
        if free <= reserve:
            await asyncio.Event().wait()
        while free > reserve:
            await asyncio.sleep(INTERVAL)
            free, _ = free_space(self._folder)
