"""The engine's side of the supervisor: run a command, read what it prints, end it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
import threading
import time
import weakref
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ..errors import ExecutorError
from . import groups
from .calls import Call, Command, NotStartedError
from .contract import CommandResult
from .workers import Worker

_HERE = Path(__file__).parent

#: How the processes of a command are found.
Way = Literal["reaper", "groups"]
#: Workers that wait for the next command.
MAX_IDLE = 4
#: Seconds past the time limit, or past a cancellation, after which a worker that does not answer is killed.
OVERDUE = 1.6


@dataclass(frozen=True, slots=True)
class Launcher:
    """How the supervisor is started inside a sandbox.

    Attributes:
        prefix: a program and its arguments, which ends by running the rest.
        environment: variables that the supervisor gets besides its own.
        outside: tells a process id here from the sandbox's own, None when it has ended, and one inside.
    """

    prefix: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    outside: Callable[[int | None, int], int | None] = lambda _, inside: inside


class Commands:
    """Runs commands through one resident supervisor, started at first use and again when it died.

    Belongs to the event loop that uses it. A fork of this process starts its own.

    Args:
        way: how the processes of a command are found; what the system does best when None.
        expendable: whether a kernel short of memory should end commands before all else (Linux).
        launcher: starts the supervisor inside a sandbox.
    """

    def __init__(
        self, way: Way | None = None, *, expendable: bool = False, launcher: Launcher | None = None
    ) -> None:
        self._launcher = launcher or Launcher()
        self._way: Way = way or ("reaper" if sys.platform == "linux" else "groups")
        self._expendable = expendable
        self._loop: asyncio.AbstractEventLoop | None = None
        self._connection: socket.socket | None = None
        self._idle: list[Worker] = []
        self._busy: set[Worker] = set()
        self.pid: int | None = None
        _all.add(self)

    async def start(self) -> None:
        """Start the supervisor and a worker, so that the first command does not wait for them.

        Raises:
            ExecutorError: they cannot be started.
        """
        self._bind()
        if not self._idle:
            self._idle.append(self._new_worker())

    async def run(self, command: Command, on_output: Callable[[bytes], None] | None = None) -> CommandResult:
        """Run a command to its end, its time limit, or the caller's cancellation.

        Raises:
            ExecutorError: bash cannot be started, or the processes that watch it were killed.
        """
        self._bind()
        for _ in range(3):
            with contextlib.suppress(NotStartedError):
                return await self._run(self._take_worker(), command, on_output)
        raise ExecutorError("the supervisor of local commands ends as soon as it starts")

    async def _run(
        self, worker: Worker, command: Command, on_output: Callable[[bytes], None] | None
    ) -> CommandResult:
        loop = asyncio.get_running_loop()
        call = Call(loop, command.output_limit, on_output)
        watchdog = loop.call_later(command.timeout + OVERDUE, self._overdue, worker, call)
        self._busy.add(worker)
        try:
            await worker.send_command(call, command)
            await asyncio.shield(call.finished)
            if call.overdue:
                await _uncancelled(sweep(call.marker))
            return call.result(command.timeout)
        except asyncio.CancelledError:
            if call.sent:
                await _uncancelled(self._end(worker, call))
            raise
        except ExecutorError:
            await _uncancelled(sweep(call.marker))
            raise
        finally:
            watchdog.cancel()
            call.close()
            self._busy.discard(worker)
            self._put_back(worker, call)

    async def _end(self, worker: Worker, call: Call) -> None:
        """End a command that nobody waits for any more."""
        worker.end_command()
        await asyncio.wait([call.finished], timeout=OVERDUE)
        if call.answer is None:
            self._overdue(worker, call)
            await sweep(call.marker)

    def _overdue(self, worker: Worker, call: Call) -> None:
        """The worker does not answer: a command may have stopped it. What it leaves is ended elsewhere."""
        call.overdue = True
        pid = self._pid_of(worker)
        if pid is not None:
            _kill(pid)
        else:
            if self.pid is not None:
                _kill(self.pid)
            call.fail(ExecutorError("the supervisor of local commands does not answer and was ended"))

    def _pid_of(self, worker: Worker) -> int | None:
        """A worker's process id here; it tells the one it has where it runs."""
        return None if worker.pid is None else self._launcher.outside(self.pid, worker.pid)

    def _take_worker(self) -> Worker:
        while self._idle:
            worker = self._idle.pop()
            if not worker.lost:
                return worker
        return self._new_worker()

    def _put_back(self, worker: Worker, call: Call) -> None:
        worker.call = None
        if call.answer is None or worker.lost or worker.retired or len(self._idle) >= MAX_IDLE:
            worker.close()
        else:
            self._idle.append(worker)

    def _new_worker(self) -> Worker:
        loop = asyncio.get_running_loop()
        for _ in range(2):
            supervisor = self._connection or self._boot(loop)
            ours, theirs = socket.socketpair()
            with theirs:
                try:
                    socket.send_fds(supervisor, [b"F"], [theirs.fileno()])
                except OSError:
                    ours.close()
                    self._supervisor_lost()
                else:
                    return Worker(loop, ours)
        raise ExecutorError("the supervisor of local commands cannot be reached")

    def _boot(self, loop: asyncio.AbstractEventLoop) -> socket.socket:
        if not sys.executable:
            raise ExecutorError("commands need sys.executable, which this Python does not know")
        ours, theirs = socket.socketpair()
        supervisor = [sys.executable, "-I", "-S", str(_HERE / "supervisor.py"), self._way]
        arguments = [*self._launcher.prefix, *supervisor]
        if self._expendable:
            arguments.append("expendable")
        # A command can read its ancestors' environment, so the supervisor gets none of the kernel's secrets.
        environment = {name: os.environ[name] for name in _SUPERVISOR_NEEDS if name in os.environ}
        environment.update(self._launcher.environment)
        actions = [(os.POSIX_SPAWN_DUP2, theirs.fileno(), 0)]
        try:
            with theirs:
                # A session of its own: a Ctrl-C or a kill of the kernel's process group must not end it.
                self.pid = os.posix_spawn(
                    arguments[0], arguments, environment, file_actions=actions, setsid=True
                )
        except OSError as error:
            ours.close()
            raise ExecutorError(f"the supervisor of local commands cannot be started: {error}") from error
        ours.setblocking(False)
        loop.add_reader(ours.fileno(), self._supervisor_lost)
        self._connection = ours
        return ours

    def _supervisor_lost(self) -> None:
        """It ended, which is the only thing it ever says; running commands go on with their workers."""
        if self._connection is None or self._loop is None:
            return
        self._loop.remove_reader(self._connection.fileno())
        self._connection.close()
        self._connection = None
        pid, self.pid = self.pid, None
        for worker in self._busy:
            worker.retired = True
        while self._idle:
            self._idle.pop().close()
        if pid is not None:
            threading.Thread(target=_reap, args=(pid,), name="conjure-reap", daemon=True).start()

    def _bind(self) -> None:
        """Belong to the running loop; what belonged to another one, now closed, is let go."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            pid = self.pid
            self.forget()
            self._loop = loop
            if pid is not None:
                threading.Thread(target=_reap, args=(pid,), name="conjure-reap", daemon=True).start()

    def forget(self) -> None:
        """Close everything without a word to the loop: in a fork it is the parent's, and so is the rest."""
        for worker in [*self._idle, *self._busy]:
            worker.forget()
        self._idle.clear()
        self._busy = set()
        if self._connection is not None:
            self._connection.close()
        self._connection = self.pid = self._loop = None

    async def close(self) -> None:
        """End all commands and the supervisor; a later command starts it again. Never raises."""
        if self._loop is None or self._loop is not asyncio.get_running_loop():
            self.forget()
            return
        calls = [worker.call for worker in self._busy if worker.call is not None]
        for worker in self._busy:
            worker.retired = True
            worker.end_command()
        for call in calls:
            call.closed = True
        if calls:
            await asyncio.wait([call.finished for call in calls], timeout=OVERDUE)
        pid, self.pid = self.pid, None
        self._supervisor_lost()
        if pid is not None:
            await asyncio.to_thread(_reap, pid)


#: What Python may need to find its libraries.
_SUPERVISOR_NEEDS = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE")


async def sweep(marker: str) -> None:
    """End every process that carries a call's marker: when those that should have done it were killed."""
    await asyncio.to_thread(_sweep, marker)


def _sweep(marker: str) -> None:
    empty = 0
    for _ in range(50):
        found = groups.members(0, marker, set())
        empty = 0 if found else empty + 1
        if empty == 3:  # a process that forks and exits can slip past one look
            return
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in found:
                with contextlib.suppress(OSError):
                    group = os.getpgid(pid)
                    if group != os.getpgrp():
                        os.killpg(group, number)
                    os.kill(pid, number)


async def _uncancelled(work: Coroutine[Any, Any, None]) -> None:
    """Finish clean-up work although the caller is cancelled, once or more often, while it runs."""
    task = asyncio.ensure_future(work)
    while not task.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(task)


def _kill(pid: int) -> None:
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)


def _reap(pid: int) -> None:
    """Wait for a supervisor that was told to end; a zombie would stay otherwise."""
    end = time.monotonic() + 4.0
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(pid, os.WNOHANG)[0] == 0:
            if time.monotonic() > end:
                _kill(pid)
                os.waitpid(pid, 0)
                return
            time.sleep(0.005)


_all: weakref.WeakSet[Commands] = weakref.WeakSet()


def _forget_all() -> None:
    """After a fork: copies of our descriptors in the child would hide this process's death."""
    for commands in list(_all):
        commands.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
