"""Where a turn can be stopped: while Claude is asked and tools run, and nowhere else.

A turn that is cancelled while it makes its folders, writes its words or its end would leave half of that
behind. So the work runs in a task that nobody cancels; a cancellation of whoever waits for it becomes a
wish, which is granted at once where that is safe, and else at the next such place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from ..errors import StoppedError

T = TypeVar("T")


class Stop:
    """The user's wish to stop, as the work sees it."""

    def __init__(self) -> None:
        self._asked = False
        self._task: asyncio.Task[Any] | None = None

    def ask(self) -> None:
        """Stop what may be stopped, now or as soon as it begins."""
        self._asked = True
        if self._task is not None:
            self._task.cancel()

    def check(self) -> None:
        """Go no further when a stop was asked for and nothing of the turn was written yet.

        Raises:
            StoppedError: it was.
        """
        if self._asked:
            raise StoppedError("Stopped before the turn began")

    async def allow(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for work that may be stopped.

        Raises:
            asyncio.CancelledError: it was; its clean-up is over.
        """
        task = asyncio.create_task(work)
        self._task = task
        if self._asked:
            task.cancel()
        try:
            return await task
        finally:
            self._task = None


async def to_the_end(work: Callable[[Stop], Coroutine[Any, Any, T]]) -> T:
    """Run work to its end, also when the caller is cancelled meanwhile: then it is asked to stop.

    Raises:
        BaseException: what the work raised.
    """
    stop = Stop()
    task = asyncio.create_task(work(stop))
    while True:
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.done():
                return task.result()
            stop.ask()
