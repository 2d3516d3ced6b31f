"""One running command, as this side sees it: its output, and what the shell says of its end."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, cast

from ....errors import ExecutorError
from ...contract import CommandResult, ExecutionContext
from ...environment import QUIET
from ...groups import MARKER
from ...output import Output
from ..link import LinkLostError
from . import notes
from .refusals import system_number
from .shell import NO_ANSWER, Shell, number

_log = logging.getLogger(__name__)

#: Seconds past which no time limit is told to a shell; the one on this side holds besides.
_LONGEST = 10_000_000.0

Reason = Literal["exited", "timeout", "ended"]


@dataclass(frozen=True, slots=True)
class Ended:
    """What a shell says of the end of its command.

    Attributes:
        reason: why it ended.
        code: its exit code.
        leftovers: how many processes it left behind.
        stuck: how many could not be ended.
        strays: orphans that may be its own.
        notes: limits of the container that it met.
    """

    reason: Reason
    code: int | None = None
    leftovers: int = 0
    stuck: int = 0
    strays: int = 0
    notes: tuple[str, ...] = ()


class Run:
    """A command in a shell.

    Args:
        shell: its shell.
        limit: bytes of output to keep, and to tell ``on_output``.
    """

    def __init__(self, shell: Shell, limit: int, on_output: Callable[[bytes], None] | None) -> None:
        self.shell = shell
        self.marker = secrets.token_hex(16)
        self._output = Output(limit)
        self._on_output = on_output
        self._unheard = limit
        self._started = time.monotonic()

    async def go(self, command: str, context: ExecutionContext, timeout: float, spared: str) -> Ended:
        """Run the command to its end.

        Args:
            timeout: seconds.
            spared: processes that are never counted as strays.

        Raises:
            ExecutorError: bash could not be started.
            LinkLostError: the shell ended, or says what it cannot.
        """
        environment = {**QUIET, **context.environment, MARKER: self.marker}
        words = await self.shell.call(
            [
                *(
                    "run",
                    self.marker,
                    f"{min(timeout, _LONGEST):.3f}",
                    str(context.working_directory),
                    spared,
                ),
                command,
                *(f"{name}={value}" for name, value in environment.items()),
            ],
            sink=self._heard,
        )
        if words[0] == "refused":
            number_ = system_number(" ".join(words[1:]))
            reason = "the working directory cannot be used" if number_ is None else os.strerror(number_)
            raise ExecutorError(f"bash could not be started: {reason}")
        if len(words) != 10 or words[0] != "done" or words[1] not in ("exited", "timeout", "ended"):
            raise LinkLostError(NO_ANSWER)
        code, leftovers, stuck, strays = map(number, words[2:6])
        if code > 255:
            raise LinkLostError(NO_ANSWER)
        told = self.notes(words[6:], failed=code != 0)
        return Ended(cast("Reason", words[1]), code, leftovers, stuck, strays, told)

    def notes(self, words: list[str], *, failed: bool) -> tuple[str, ...]:
        """What the container's counts say now, in a shell's words.

        Raises:
            LinkLostError: they are none.
        """
        before, now = list(map(number, self.shell.begun[1:])), list(map(number, words))
        if len(before) != 4 or len(now) != 4:
            raise LinkLostError(NO_ANSWER)
        return tuple(notes.limits(now[0] - before[0], now[1], now[2] - before[2], now[3], failed=failed))

    async def end(self) -> None:
        """Ask the shell to end the command. Never raises."""
        with contextlib.suppress(LinkLostError):
            await self.shell.say("end")

    def result(self, ended: Ended) -> CommandResult:
        """How the command ended."""
        if ended.stuck:
            _log.warning("%d processes of a command could not be ended", ended.stuck)
        output, cut = self._output.finish()
        timed_out = ended.reason == "timeout"
        return CommandResult(
            output=output,
            exit_code=None if timed_out else ended.code,
            timed_out=timed_out,
            duration=time.monotonic() - self._started,
            total_bytes=self._output.total,
            truncated_bytes=cut,
            leftovers=ended.leftovers,
            notes=ended.notes,
        )

    def _heard(self, data: bytes) -> None:
        self._output.add(data)
        if self._on_output is None or self._unheard <= 0:
            return
        piece = data[: self._unheard]
        self._unheard -= len(piece)
        try:
            self._on_output(piece)
        except Exception:  # noqa: BLE001  a listener's fault must not lose the command's result
            _log.exception("a listener of a command's output failed; it hears no more")
            self._on_output = None
