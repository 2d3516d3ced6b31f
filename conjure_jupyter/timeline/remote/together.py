"""Requests that travel together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

T = TypeVar("T")

#: How many requests travel at once.
AT_ONCE = 16


async def each(things: Iterable[T], work: Callable[[T], Awaitable[None]]) -> None:
    """Do ``work`` for each thing, ``AT_ONCE`` at a time; the first failure ends the rest, and is raised.

    A group of tasks of the standard library would hide a cancellation that comes together with a failure.
    """
    waiting = iter(things)

    async def take() -> None:
        for thing in waiting:
            await work(thing)

    tasks = [asyncio.create_task(take()) for _ in range(AT_ONCE)]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
