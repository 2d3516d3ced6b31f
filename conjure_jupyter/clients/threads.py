"""Reading a blocking iterator from the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import TypeVar

T = TypeVar("T")


async def iterate(
    produce: Callable[[threading.Event], Iterator[T]], stop: Callable[[], None]
) -> AsyncGenerator[T, None]:
    """Yield what ``produce`` yields in a thread of its own; it must not yield None.

    When the reader stops early or is cancelled it goes on at once: the event given to ``produce`` is set,
    ``stop`` is called, and the thread ends by itself as soon as what it waits for lets it. It is a daemon, so
    that one that waits for a silent server does not keep the process from ending.
    """
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[T | _Failure | None] = asyncio.Queue()
    stopped = threading.Event()

    def put(item: T | _Failure | None) -> None:
        # The loop is closed when the process ends: nobody listens any more.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(queue.put_nowait, item)

    def run() -> None:
        try:
            for item in produce(stopped):
                if stopped.is_set():
                    return
                put(item)
        except BaseException as error:  # noqa: BLE001  it is raised again where the reader is
            put(_Failure(error))
        finally:
            put(None)

    threading.Thread(target=run, name="conjure-client", daemon=True).start()
    try:
        while (item := await queue.get()) is not None:
            if isinstance(item, _Failure):
                raise item.error
            yield item
    finally:
        stopped.set()
        stop()


class _Failure:
    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error
