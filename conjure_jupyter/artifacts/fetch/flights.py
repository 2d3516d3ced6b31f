"""Callers that want the same thing at the same time share one piece of work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass
class _Flight(Generic[T]):
    task: asyncio.Task[T]
    waiting: int = 0


class Flights(Generic[T]):
    """Work in progress by key: it goes on while anyone waits for it, and is ends with the last of them."""

    def __init__(self) -> None:
        self._flights: dict[str, _Flight[T]] = {}

    async def join(self, key: str, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of the work under ``key``, which is begun when nobody has begun it.

        Raises:
            Exception: what the work raises, to all who wait.
        """
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = _Flight(asyncio.get_running_loop().create_task(work()))
            flight.task.add_done_callback(lambda _: self._leave(key, flight))
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if not flight.waiting and not flight.task.done():
                self._leave(key, flight)
                await _end(flight.task)

    async def close(self) -> None:
        """End all work; whoever waits for it is cancelled."""
        for key, flight in list(self._flights.items()):
            self._leave(key, flight)
            await _end(flight.task)

    def _leave(self, key: str, flight: _Flight[T]) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]


async def _end(task: asyncio.Task[T]) -> None:
    """Cancel a task and wait until it has cleaned up, whatever it raises meanwhile."""
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.exception()  # marks it as seen: nobody waits for it any more
