"""How a cell waits for a turn: interruptible at any moment, and answering questions meanwhile.

On ipykernel 7 the cell is turned into an ``await``, so that the kernel handles messages (widgets, comms)
while the turn runs. Elsewhere the cell blocks in short slices. Either way an interrupt is noted by a
handler of our own, which never raises: the turn is asked to stop, ends with what it has, and its ``Reply``
is the cell's value. A second interrupt changes nothing.
"""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Self

from ..conversation import Reply, Session, Turn
from ..errors import ConjureError, StoppedError
from .approvals import Asker, Stop

if TYPE_CHECKING:
    from .view import View

#: Longest wait before the cell looks up, in seconds. A bare wait holds an interrupt back until it ends.
SLICE = 0.05

#: Seconds without another interrupt before a stopped cell ends. Between two cells an interrupt hits the
#: kernel itself, which may then lose its reply; people press twice.
GRACE = 0.3


class Interrupts:
    """Notes interrupts instead of raising ``KeyboardInterrupt``, in the main thread, inside a ``with``."""

    def __init__(self) -> None:
        self.pressed = False
        self._last = 0.0
        self._before: Any = None

    def settling(self) -> bool:
        """Whether the last interrupt is so recent that another may follow."""
        return self.pressed and time.monotonic() - self._last < GRACE

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.pressed = True
        self._last = time.monotonic()


class Wait:
    """Waits for one turn.

    Args:
        session: the turn's session.
        start: starts the turn; it returns at once.
        view: shows it.
        asker: puts questions to the user; None when nobody can be asked.

    Attributes:
        reply: what the turn gave, also when it failed; None before it is over.
    """

    def __init__(self, session: Session, start: Callable[[], Turn], view: View, asker: Asker | None) -> None:
        self._session = session
        self._start = start
        self._view = view
        self._asker = asker
        self._stopping = False
        self.reply: Reply | None = None

    def run(self) -> Reply:
        """Wait by blocking."""
        with Interrupts() as interrupts:
            ended = threading.Event()
            turn = self._begin(ended.set)
            while not turn.done():
                self._look(turn, interrupts.pressed)
                ended.wait(SLICE)
            try:
                return self._end(turn)
            finally:
                while interrupts.settling():
                    time.sleep(SLICE)

    async def run_async(self) -> Reply:
        """Wait by awaiting, in the kernel's own loop."""
        with Interrupts() as interrupts:
            loop = asyncio.get_running_loop()
            ended: asyncio.Future[None] = loop.create_future()
            turn = self._begin(lambda: _wake(loop, ended))
            while not turn.done():
                self._look(turn, interrupts.pressed)
                try:
                    await asyncio.wait({ended}, timeout=SLICE)
                except asyncio.CancelledError:
                    # The kernel cancels a cell that is interrupted before our handler is in place.
                    interrupts.pressed = True
                    task = asyncio.current_task()
                    if task is not None:
                        task.uncancel()
            try:
                return self._end(turn)
            finally:
                while interrupts.settling():  # noqa: ASYNC110  it waits for something not to happen
                    await asyncio.sleep(SLICE)

    def _begin(self, ended: Callable[[], None]) -> Turn:
        turn = self._start()  # what cannot start leaves no display behind
        self._view.start()
        turn.on_done(ended)
        return turn

    def _look(self, turn: Turn, pressed: bool) -> None:
        if self._asker is not None and not self._stopping and not pressed:
            try:
                self._asker.serve()
            except Stop:
                pressed = True
        if pressed and not self._stopping:
            self._stopping = True
            turn.stop()

    def _end(self, turn: Turn) -> Reply:
        self.reply, failure = outcome(self._session, turn)
        self._view.finish(self.reply)
        if failure is not None:
            raise failure
        return self.reply


def outcome(session: Session, turn: Turn) -> tuple[Reply, Exception | None]:
    """What a turn that is over gave, and what it failed with; there is a reply to show in any case."""
    try:
        return turn.result(), None
    except StoppedError:
        return Reply("", stop_reason="stopped", session_id=session.id), None
    except Exception as error:  # noqa: BLE001  the caller raises it, once the display says that it is over
        last = session.last
        if last is not None and turn.number and last.turn == turn.number:
            return last, error
        told = str(error) if isinstance(error, ConjureError) else f"{type(error).__name__}: {error}"
        return Reply("", stop_reason="error", error=told, session_id=session.id), error


def _wake(loop: asyncio.AbstractEventLoop, ended: asyncio.Future[None]) -> None:
    def resolve() -> None:
        if not ended.done():
            ended.set_result(None)

    loop.call_soon_threadsafe(resolve)
