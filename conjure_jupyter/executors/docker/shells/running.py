"""Commands over attached shells: started, watched from outside, and cleared up after."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, TypeVar

from ....engine import outlast
from ....errors import ConjureError, ExecutorError
from ...contract import CommandResult, ExecutionContext
from ..link import LinkLostError
from . import notes
from .command import Ended, Run
from .pool import Pool
from .shell import NO_ANSWER, Collected, Shell, number

T = TypeVar("T")

_log = logging.getLogger(__name__)

#: Seconds past the time limit, or past a cancellation, after which a shell that does not answer is given up.
OVERDUE = 1.0
#: Seconds that another shell gets to end what such a one ran.
SWEEP = 0.9
#: Seconds that commands get to end when the link is closed.
CLOSING = 1.6
_CLOSED = "the executor was closed while the command ran, which ended it"


class Runs:
    """Runs commands, each in a shell of its own.

    Args:
        pool: where the shells come from.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._spared = " "
        self._strays = False
        self._running: dict[Run, asyncio.Task[Ended]] = {}
        self._closed = False

    async def survey(self) -> None:
        """Learn which processes are there before any command, to leave them alone.

        Raises:
            LinkLostError: no shell can be started.
        """
        async with self._pool.shell() as shell:
            words = await shell.call(["survey"])
        if words[:1] != ["done"]:
            raise LinkLostError(NO_ANSWER)
        self._spared = f" {' '.join(words[1:])} "

    async def run(
        self,
        command: str,
        context: ExecutionContext,
        *,
        timeout: float,
        on_output: Callable[[bytes], None] | None,
    ) -> CommandResult:
        """Run a command to its end, its time limit or the caller's cancellation."""
        for _ in range(3):
            async with self._pool.shell() as shell:
                run = Run(shell, context.output_limit, on_output)
                task = asyncio.ensure_future(run.go(command, context, timeout, self._spared))
                self._running[run] = task
                try:
                    result = await self._watched(run, task, timeout)
                except asyncio.CancelledError:
                    await _whole(self._end(run, task))
                    raise
                except LinkLostError:
                    if await _whole(self._sweep_hard(run)) is None:
                        self._pool.lost = True  # nobody answers any more
                    if self._pool.lost or run.shell.begun:
                        raise
                    continue  # the shell had ended while it waited: nothing was started
                finally:
                    del self._running[run]
            return await self._told(result, context)
        raise LinkLostError("Shells in the container end as soon as they start")

    async def _watched(self, run: Run, task: asyncio.Task[Ended], timeout: float) -> CommandResult:
        """The result, at most a little after the time limit."""
        await asyncio.wait([task], timeout=timeout + OVERDUE)
        if not task.done():
            _log.warning("a shell in the container does not end its command in time; another one does")
            left = await self._sweep_hard(run)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            if left is None:
                self._pool.lost = True
                raise LinkLostError("The container does not answer")
            return run.result(replace(left, leftovers=0))
        ended = task.result()
        self._strays |= ended.strays > 0
        if self._strays and len(self._running) == 1:
            # What hid its descent may be any command's, so it is left until no other one runs.
            self._strays = False
            swept = await self._sweep(run)
            ended = replace(ended, leftovers=ended.leftovers + (swept.leftovers if swept else 0))
        if self._closed:
            raise ExecutorError(_CLOSED)
        return run.result(ended)

    async def _told(self, result: CommandResult, context: ExecutionContext) -> CommandResult:
        """The result with a note on full disks, if its output complains of one."""
        if not notes.complains(result.output):
            return result
        folders = [*map(str, (context.working_directory, *context.writable_paths)), "/tmp"]  # noqa: S108  its own
        said = Collected(100 * len(folders))
        with contextlib.suppress(ConjureError, TimeoutError):
            async with asyncio.timeout(SWEEP), self._pool.shell() as shell:
                await shell.call(["room", *folders], sink=said.add)
        return replace(result, notes=(*result.notes, *notes.disks(folders, bytes(said.data))))

    async def _end(self, run: Run, task: asyncio.Task[Ended]) -> None:
        """End a command that nobody waits for any more."""
        await run.end()
        await asyncio.wait([task], timeout=OVERDUE)
        ended = task.done() and not task.cancelled() and task.exception() is None
        if not ended:
            await self._sweep_hard(run)
        elif task.result().strays:
            await self._sweep(run)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def _sweep(self, run: Run) -> Ended | None:
        """End what is left of a command; how many processes there were, None if that failed."""
        with contextlib.suppress(ConjureError, TimeoutError):
            async with asyncio.timeout(SWEEP), self._pool.shell() as shell:
                return await self._swept(shell, run, [])
        return None

    async def _sweep_hard(self, run: Run) -> Ended | None:
        """The same where the command's own shell does not answer: what waits may have been stopped too.

        A shell that waited and a new one try it side by side: the one may be stopped, and where there is no
        room for another process the other cannot be started.
        """
        waiting = self._pool.give_up()
        pids = [run.shell.pid, *(shell.pid for shell in waiting)]
        tries = [asyncio.ensure_future(self._swept_by_new(run, pids))]
        tries += [asyncio.ensure_future(self._swept(shell, run, pids)) for shell in waiting[:1]]
        left: Ended | None = None
        for done in asyncio.as_completed(tries, timeout=SWEEP):
            with contextlib.suppress(ConjureError, TimeoutError):
                left = await done
                break
        for each in tries:
            each.cancel()
        await asyncio.gather(*tries, return_exceptions=True)
        for shell in waiting:
            shell.close()
        self._pool.fill()
        return left

    async def _swept_by_new(self, run: Run, pids: list[int]) -> Ended:
        shell = await self._pool.fresh()
        try:
            return await self._swept(shell, run, pids)
        finally:
            shell.close()

    async def _swept(self, shell: Shell, run: Run, pids: list[int]) -> Ended:
        everything = "all" if len(self._running) == 1 else ""
        words = await shell.call(
            ["sweep", run.marker, f" {' '.join(map(str, pids))} ", everything, self._spared]
        )
        if len(words) != 7 or words[0] != "done":
            raise LinkLostError(NO_ANSWER)
        told = run.notes(words[3:], failed=True) if run.shell.begun else ()
        return Ended("timeout", leftovers=number(words[1]), notes=told)

    async def close(self) -> None:
        """End every command. Never raises."""
        self._closed = True
        tasks = [task for run, task in self._running.items() if not task.done()]
        for run in list(self._running):
            await run.end()
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSING)


async def _whole(work: Coroutine[Any, Any, T]) -> T:
    """Finish clean-up work although the caller is cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    await outlast(task)
    return task.result()
