"""Calls into a container over one resident process, which answers many at the same time."""

from __future__ import annotations

import contextlib
from asyncio import Semaphore
from collections.abc import Callable
from typing import Any

from ....errors import ToolError
from ....settings import MB
from ...contract import CommandResult, ExecutionContext, Stat
from ...environment import QUIET
from ..link import Link, Stream
from .channel import Channel
from .pending import Listing, Looking, Pending, Reading, Running

#: Seconds past a command's time limit after which the link counts as lost.
OVERDUE = 6.0
#: Commands at the same time: each takes three processes at least.
SLOTS = 64
#: Files of more bytes are written two at a time: over there they are in memory meanwhile.
LARGE, LARGE_SLOTS = 4 * MB, 2


class ResidentLink(Link):
    """A link to one resident; made by ``open``.

    Args:
        channel: the connection to it.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._slots = Semaphore(SLOTS)
        self._large = Semaphore(LARGE_SLOTS)

    @classmethod
    async def open(cls, stream: Stream) -> ResidentLink:
        """Start a resident in the process of a stream, which was started with ``boot.ARGUMENTS``.

        Raises:
            NoPythonError: there is no Python, or one that is too old.
            LinkLostError: it ended, or did not start in time.
        """
        return cls(await Channel.open(stream))

    @property
    def lost(self) -> bool:
        """Whether the other side is gone."""
        return self._channel.lost

    async def run(
        self,
        command: str,
        context: ExecutionContext,
        *,
        timeout: float,
        on_output: Callable[[bytes], None] | None = None,
    ) -> CommandResult:
        """Run a command; see ``Link.run``."""
        try:
            text = command.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError as error:
            raise ToolError("the command is not valid text") from error
        header = {
            "op": "run",
            "cwd": str(context.working_directory),
            "environment": {**QUIET, **context.environment},
            "timeout": timeout,
            "output_limit": context.output_limit,
            "listen": on_output is not None,
        }
        async with self._slots:
            pending = Running(context.output_limit, on_output)
            result: CommandResult = await self._channel.call(pending, header, text, within=timeout + OVERDUE)
        return result

    async def read(self, path: str, context: ExecutionContext, *, offset: int, limit: int | None) -> bytes:
        """Bytes of a file; see ``Link.read``."""
        limit = None if limit is None else max(0, limit)
        header = {"op": "read", "path": path, "offset": offset, "limit": limit, "folders": _folders(context)}
        data: bytes = await self._channel.call(Reading(path, limit), header)
        return data

    async def write(self, path: str, data: bytes, context: ExecutionContext, *, mode: int | None) -> None:
        """Replace or make a file; see ``Link.write``."""
        header = {"op": "write", "path": path, "mode": mode, "folders": _folders(context)}
        async with self._large if len(data) > LARGE else contextlib.nullcontext():
            await self._channel.call(Pending(path), header, data)

    async def list(self, path: str, context: ExecutionContext, *, depth: int, limit: int) -> list[Stat]:
        """What a folder holds; see ``Link.list``."""
        header = {"op": "list", "path": path, "depth": depth, "limit": limit, "folders": _folders(context)}
        found: list[Stat] = await self._channel.call(Listing(path, limit), header)
        return found

    async def stat(self, path: str, context: ExecutionContext) -> Stat:
        """What lies at a path; see ``Link.stat``."""
        header = {"op": "stat", "path": path, "folders": _folders(context)}
        found: Stat = await self._channel.call(Looking(path), header)
        return found

    async def delete(self, path: str, context: ExecutionContext) -> None:
        """Remove a file or an empty folder; see ``Link.delete``."""
        await self._channel.call(Pending(path), {"op": "delete", "path": path, "folders": _folders(context)})

    async def close(self) -> None:
        """Let go: the resident ends what runs, and itself."""
        await self._channel.close()


def _folders(context: ExecutionContext) -> dict[str, Any]:
    return {
        "cwd": str(context.working_directory),
        "skills": None if context.skills_root is None else str(context.skills_root),
        "allowed": [str(path) for path in context.allowed_paths],
        "writable": [str(path) for path in context.writable_paths],
        "read_only": [str(path) for path in context.read_only_paths],
    }
