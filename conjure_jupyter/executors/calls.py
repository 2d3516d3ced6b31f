"""One running command, as the engine sees it: its output, its answer, and its result."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import ExecutorError
from .contract import CommandResult
from .output import Output

_log = logging.getLogger(__name__)

#: Seconds that the output pipe is read on after the command ended, in case others hold it.
DRAIN = 2.0
#: Seconds before the output pipe is listened to: most commands are quicker, and then the engine wakes once,
#: for the answer, in place of once for each write.
PATIENCE = 0.005
#: Bytes read at once; a pipe that was found full is widened to as much.
CHUNK = 1 << 16
WIDE = 1 << 20
_F_SETPIPE_SZ = 1031


@dataclass(frozen=True, slots=True)
class Command:
    """What to run.

    Attributes:
        text: for ``bash -c``.
        bash: the program's absolute path.
        cwd: the folder to run in.
        environment: all that it sees.
        timeout: seconds.
        output_limit: bytes of output to keep.
    """

    text: str
    bash: str
    cwd: str
    environment: Mapping[str, str]
    timeout: float
    output_limit: int


class NotStartedError(Exception):
    """The worker was gone before it took the command."""


class Call:
    """A running command: its output, its answer, and when both are whole."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, limit: int, on_output: Callable[[bytes], None] | None
    ) -> None:
        self._loop = loop
        self._on_output = on_output
        self._unheard = limit
        self._size = CHUNK
        self.marker = secrets.token_hex(16)
        self.started = time.monotonic()
        self.output = Output(limit)
        self.answer: dict[str, Any] | None = None
        self.overdue = False
        self.sent = False
        self.closed = False
        self.finished: asyncio.Future[None] = loop.create_future()
        self._drain: asyncio.TimerHandle | None = None
        self._read, self.write = os.pipe()
        os.set_blocking(self._read, False)
        self._listening = loop.call_later(PATIENCE, loop.add_reader, self._read, self._readable)

    def take(self, answer: dict[str, Any]) -> None:
        """The command ended: what is left in the pipe, then done."""
        self.answer = answer
        self._listening.cancel()
        while self._read >= 0 and self._readable():
            pass
        if self._read >= 0:
            self._loop.add_reader(self._read, self._readable)
            self._drain = self._loop.call_later(DRAIN, self.finish)
        else:
            self.finish()

    def fail(self, error: Exception) -> None:
        """The worker is gone."""
        if not self.finished.done():
            self.finished.set_exception(error)

    def finish(self) -> None:
        """No more is read."""
        if not self.finished.done():
            self.finished.set_result(None)

    def close(self) -> None:
        """Let go of the pipe."""
        self._listening.cancel()
        if self._drain is not None:
            self._drain.cancel()
        if self._read >= 0:
            self._loop.remove_reader(self._read)
        self.forget()

    def forget(self) -> None:
        """Close the pipe without a word to the loop, which after a fork is not ours."""
        for fd in (self._read, self.write):
            if fd >= 0:
                os.close(fd)
        self._read = self.write = -1

    def handed_over(self) -> None:
        """The worker has the write end: ours would keep the pipe open."""
        os.close(self.write)
        self.write = -1

    def _readable(self) -> bool:
        """Read once; say whether there may be more."""
        try:
            data = os.read(self._read, self._size)
        except BlockingIOError:
            return False
        if not data:
            self._loop.remove_reader(self._read)
            os.close(self._read)
            self._read = -1
            if self.answer is not None:
                self.finish()
            return False
        if len(data) == CHUNK == self._size:
            self._size = WIDE
            with contextlib.suppress(OSError):  # a flood: fewer, larger reads
                fcntl.fcntl(self._read, _F_SETPIPE_SZ, WIDE)
        self.output.add(data)
        self._tell(data)
        return True

    def _tell(self, data: bytes) -> None:
        if self._on_output is None or self._unheard <= 0:
            return
        piece = data[: self._unheard]
        self._unheard -= len(piece)
        try:
            self._on_output(piece)
        except Exception:  # noqa: BLE001  a listener's fault must not lose the command's result
            _log.exception("a listener of a command's output failed; it hears no more")
            self._on_output = None

    def result(self, timeout: float) -> CommandResult:
        """How the command ended.

        Raises:
            ExecutorError: it could not be started, or the executor was closed meanwhile.
        """
        if self.closed:
            raise ExecutorError("the executor was closed while the command ran, which ended it")
        answer = self.answer or {"reason": "timeout", "code": None, "leftovers": 0, "stuck": 0}
        if "error" in answer:
            raise ExecutorError(f"bash could not be started: {answer['error']}")
        if answer["stuck"]:
            _log.warning("%d processes of a command could not be ended", answer["stuck"])
        output, cut = self.output.finish()
        timed_out = answer["reason"] == "timeout"
        return CommandResult(
            output=output,
            exit_code=None if timed_out else answer["code"],
            timed_out=timed_out,
            duration=answer.get("duration", min(time.monotonic() - self.started, timeout + DRAIN)),
            total_bytes=self.output.total,
            truncated_bytes=cut,
            leftovers=answer["leftovers"],
        )
