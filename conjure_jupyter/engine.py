"""One background thread with one event loop that owns all input and output.

Sync callers, async callers and notebook cells all hand their work to this loop; their own loop, if they
have one, is never borrowed. The thread starts at first use and is forgotten after a fork: the child gets
a new one. An HTTP client used from two event loops fails or pays a retry, which is why there is one.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import os
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")

#: Longest wait, in seconds, before a blocked caller looks at signals again.
SLICE = 0.05


class Engine:
    """A thread that runs an event loop until the process ends."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, name="conjure-engine", daemon=True)
        self._thread.start()
        self._started.wait()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.call_soon(self._started.set)
        while True:
            try:
                self.loop.run_forever()
            except (KeyboardInterrupt, SystemExit):
                # asyncio lets these out of a task, as of a user's callback that calls ``sys.exit()``. Whoever
                # waits for the task gets it from there; the loop has others to serve.
                continue
            return

    def inside(self) -> bool:
        """Whether the caller runs on the engine's own thread."""
        return threading.current_thread() is self._thread

    def submit(self, work: Coroutine[Any, Any, T]) -> Job[T]:
        """Start ``work`` on the loop and return at once.

        The caller's context variables go with it, so that what it displays lands in the caller's cell.
        """
        job: Job[T] = Job(self.loop)
        context = contextvars.copy_context()
        self.loop.call_soon_threadsafe(job.start, work, context)
        return job

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run ``work`` on the loop and wait for its result.

        An interrupt (Ctrl-C) while waiting cancels the work, waits until it has cleaned up, and is then
        raised; a second one during the clean-up is raised at once, and the clean-up goes on.

        Raises:
            RuntimeError: when called on the engine's own thread, which would wait for itself.
        """
        if self.inside():
            work.close()
            raise RuntimeError("a blocking call was made from inside the engine; use the async twin")
        job = self.submit(work)
        try:
            return job.wait()
        except KeyboardInterrupt:
            job.cancel()
            job.settle()
            raise


class Job(Generic[T]):
    """Work that runs on the engine: its result, and a way to stop it.

    Unlike a ``concurrent.futures.Future`` it is done only when its task has ended, clean-up included.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._task: asyncio.Task[T] | None = None
        self._ended = threading.Event()
        self._callbacks: list[Callable[[], None]] = []

    def start(self, work: Coroutine[Any, Any, T], context: contextvars.Context) -> None:
        """Make the task; called on the loop."""
        self._task = self._loop.create_task(work, context=context)
        self._task.add_done_callback(self._finish)

    def _finish(self, task: asyncio.Task[T]) -> None:
        if not task.cancelled():
            task.exception()  # marks it as seen: whoever waits for the job gets it from there
        self._ended.set()
        for callback in self._callbacks:
            _call(callback)

    def on_done(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` on the engine's thread when the work has ended (at once if it has)."""

        def register() -> None:
            if self._ended.is_set():
                _call(callback)
            else:
                self._callbacks.append(callback)

        self._loop.call_soon_threadsafe(register)

    def cancel(self) -> None:
        """Ask the work to stop; it ends after its clean-up."""

        def cancel() -> None:
            if self._task is not None:
                self._task.cancel()

        self._loop.call_soon_threadsafe(cancel)

    def done(self) -> bool:
        """Whether the work has ended, clean-up included."""
        return self._ended.is_set()

    def settle(self, timeout: float | None = None) -> bool:
        """Wait until the work has ended, for at most ``timeout`` seconds; say whether it has."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._ended.wait(SLICE):
            if deadline is not None and time.monotonic() >= deadline:
                return False
        return True

    def result(self) -> T:
        """The result of work that has ended.

        Raises:
            BaseException: what the work raised; ``asyncio.CancelledError`` when it was cancelled.
            RuntimeError: when it has not ended yet.
        """
        if self._task is None or not self._ended.is_set():
            raise RuntimeError("the work has not ended")
        return self._task.result()

    def wait(self) -> T:
        """Wait for the work and return its result; an interrupt is seen within ``SLICE`` seconds."""
        self.settle()
        return self.result()

    async def ended(self) -> None:
        """Wait from any event loop until the work has ended, whatever it ended with."""
        loop = asyncio.get_running_loop()
        event = asyncio.Event()

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # the waiter's loop was closed: nobody waits any more
                loop.call_soon_threadsafe(event.set)

        self.on_done(wake)
        await event.wait()

    async def wait_async(self) -> T:
        """Wait for the result from any event loop; when the waiter is cancelled, so is the work.

        The waiter then ends after the work, clean-up included; cancelled once more, at once.
        """
        try:
            await self.ended()
        except asyncio.CancelledError:
            self.cancel()
            await self.ended()
            raise
        return self.result()


def _call(callback: Callable[[], None]) -> None:
    """One that raises, as when the loop it would wake was closed, must not keep others from being called."""
    try:
        callback()
    except Exception:
        log.exception("a callback failed at the end of work")


_engine: Engine | None = None
_lock = threading.Lock()


def engine() -> Engine:
    """The process's engine, started at first use."""
    global _engine  # noqa: PLW0603  one engine a process is the point
    with _lock:
        if _engine is None:
            _engine = Engine()
        return _engine


def _forget() -> None:
    """After a fork the thread does not exist in the child: start over there."""
    global _engine, _lock  # noqa: PLW0603
    _engine = None
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


async def outlast(task: asyncio.Task[Any]) -> bool:
    """Wait until a task has ended, also when the caller is cancelled meanwhile; whether it was."""
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            cancelled = True
    return cancelled
