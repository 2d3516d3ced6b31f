"""Shells that are started ahead, so that a call does not wait for the engine."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ....errors import ConjureError
from ..link import LinkLostError
from .shell import Attach, Shell

#: New shells in a row that may fail before the container counts as gone.
TRIES = 3


class Pool:
    """Keeps a few shells ready; each serves one call and is replaced when the call is over.

    Args:
        attach: starts a process in the container.
        spare: how many wait for a call.
    """

    def __init__(self, attach: Attach, spare: int) -> None:
        self._attach = attach
        self._spare = spare
        self._waiting: deque[asyncio.Task[Shell]] = deque()
        self._busy: set[Shell] = set()
        self.lost = False

    def fill(self) -> None:
        """Start as many as are missing, in the background."""
        while not self.lost and len(self._waiting) < self._spare:
            self._waiting.append(self._new())

    def _new(self) -> asyncio.Task[Shell]:
        task = asyncio.ensure_future(Shell.start(self._attach))
        task.add_done_callback(_heard)
        return task

    @asynccontextmanager
    async def shell(self) -> AsyncIterator[Shell]:
        """A shell for one call.

        Raises:
            LinkLostError: there is none, and none can be started.
        """
        shell = await self._take()
        self._busy.add(shell)
        try:
            yield shell
        finally:
            self._busy.discard(shell)
            shell.close()
            self.fill()

    async def _take(self) -> Shell:
        tries = TRIES
        while not self.lost:
            task = self._waiting.popleft() if self._waiting else None
            tries -= task is None
            try:
                return await self._started(task)
            except ConjureError as error:
                # One that was started ahead may have failed for the moment's sake; so may one or two others,
                # where a command ends all that it sees.
                if task is None and not tries:
                    self.lost = True
                    raise LinkLostError(error.message) from error
        raise LinkLostError("The shells in the container are gone")

    async def _started(self, task: asyncio.Task[Shell] | None) -> Shell:
        task = task or self._new()
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.cancelled():
                self._waiting.appendleft(task)
            raise

    def give_up(self) -> list[Shell]:
        """Let go of the shells that wait; those that were ready, for their process ids or a last use."""
        waiting, self._waiting = self._waiting, deque()
        found = []
        for task in waiting:
            if task.done() and not task.cancelled() and task.exception() is None:
                found.append(task.result())
            task.cancel()
        return found

    async def fresh(self) -> Shell:
        """A shell that no command has seen yet; the caller closes it.

        Raises:
            ConjureError: it cannot be started.
        """
        return await Shell.start(self._attach)

    async def close(self) -> None:
        """Let go of all of them. Never raises."""
        self.lost = True
        for task in self._waiting:
            task.cancel()
        results = await asyncio.gather(*self._waiting, return_exceptions=True)
        self._waiting.clear()
        for shell in [*self._busy, *(each for each in results if isinstance(each, Shell))]:
            shell.close()


def _heard(task: asyncio.Task[Shell]) -> None:
    """A failure is told when the shell is asked for."""
    if not task.cancelled():
        task.exception()
