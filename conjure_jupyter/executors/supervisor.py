"""The process that stands between the engine and the commands it runs.

Run as a script (``python -I -S supervisor.py WAY [expendable]``, ``WAY`` being ``reaper`` or ``groups``) with
a Unix socket as standard input; it imports nothing of this package, to start quickly and fork cheaply.

The supervisor forks a *worker* for each socket it is sent. A worker runs one command at a time: it starts
bash in a session of its own, watches the clock, and when the command ends, by itself, at its time limit or
on request, ends everything the command started and reports. Whoever closes a socket ends what hangs on it,
so a kernel that dies by ``kill -9`` takes every command with it. When a worker dies, its orphans come to
the supervisor (Linux), which ends them.

Wire format, to a worker and back: 4 bytes of length, big-endian, then JSON. A request carries the write
end of the output pipe as ancillary data. To the supervisor goes one byte with a socket: fork a worker.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import signal
import socket
import sys
import time
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Seconds that leftovers of a command get to end by themselves, such as a ``tee`` with its last lines.
LINGER = 0.1
#: Seconds from SIGTERM to SIGKILL: after the command ended by itself, and when it is ended.
LEFTOVER_GRACE, GRACE = 0.2, 0.5
#: Seconds after which what cannot be ended (in the kernel, or another user's) is given up.
GIVE_UP = 1.0
#: Empty looks in a row that count as proof where orphans go elsewhere.
LOOKS = 3
#: Seconds that workers get to end their commands when the kernel is gone.
PATIENCE = 3.0
#: How readily the kernel ends expendable commands, from -1000 to 1000, when memory runs out.
EXPENDABLE = 1000
#: A longer command goes to bash through a file: Linux takes 128 KiB for one argument.
LONG_COMMAND = 100_000

_RESET_SIGNALS = [
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGPIPE,
    signal.SIGXFSZ,
]


class Way(Protocol):
    """How the processes of a command are found: ``reaper`` or ``groups``."""

    INHERITS_ORPHANS: bool

    def prepare(self) -> None:
        """Called once in each process."""

    def members(self, shell: int, marker: str, spared: set[int]) -> list[int]:
        """Every living process of the call."""


class Children:
    """The children of this process: who ended, and a way to sleep until one does."""

    def __init__(self) -> None:
        self.ended: dict[int, int] = {}
        self.wake, self._write = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(self._write, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)

    def close(self) -> None:
        """Hear no more; for a fork, which hears of its own children."""
        signal.set_wakeup_fd(-1)
        os.close(self.wake)
        os.close(self._write)

    def reap(self) -> bool:
        """Collect those that ended; say whether any child is left."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.wake, 4096)
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            self.ended[pid] = os.waitstatus_to_exitcode(status)

    def sleep(self, seconds: float) -> None:
        """Until a child ends, at most ``seconds``."""
        select.select([self.wake], [], [], max(0.0, seconds))


class Ending:
    """Ends every process of a call."""

    def __init__(self, way: Way, children: Children, shell: int, marker: str, spared: set[int]) -> None:
        self._way = way
        self._children = children
        self._shell = shell
        self._marker = marker
        self._spared = spared

    def members(self) -> list[int]:
        """What is left."""
        return self._way.members(self._shell, self._marker, self._spared)

    def gone(self) -> bool:
        """Whether nothing is left; no look at other processes where none is needed."""
        if not self._children.reap() and self._way.INHERITS_ORPHANS:
            return True
        return not self.members()

    def wait(self, seconds: float) -> bool:
        """Wait until nothing is left, at most ``seconds``; say whether it is so."""
        end = time.monotonic() + seconds
        while not self.gone():
            left = end - time.monotonic()
            if left <= 0:
                return False
            # Where orphans are not ours we hear nothing of their end, and the shell is gone already.
            self._children.sleep(min(left, 0.02))
        return True

    def terminate(self, grace: float) -> None:
        """SIGTERM for all, ``grace`` seconds, then no mercy."""
        self._signal(self.members(), signal.SIGTERM)
        self._signal(self.members(), signal.SIGCONT)  # what is stopped hears nothing else
        if not self.wait(grace):
            self.kill()

    def kill(self) -> None:
        """Stop all before killing any: what is stopped forks no more, and a parent cannot react."""
        end = time.monotonic() + GIVE_UP
        while not self._surely_gone() and time.monotonic() < end:
            stopped: set[int] = set()
            while fresh := set(self.members()) - stopped:
                self._signal(fresh, signal.SIGSTOP)
                stopped |= fresh
            self._signal(stopped, signal.SIGKILL)
            self.wait(0.05)

    def _surely_gone(self) -> bool:
        """Where orphans are not ours, a process that forks and exits can slip past one look."""
        looks = 1 if self._way.INHERITS_ORPHANS else LOOKS
        return all(self.gone() for _ in range(looks))

    def _signal(self, pids: Iterable[int], number: int) -> None:
        """Signal whole process groups: the system does that in one step, which no fork escapes."""
        groups = set()
        for pid in pids:
            group = _group(pid)
            if group is None or group == os.getpgrp():
                _send(pid, number)
            else:
                groups.add(group)
        for group in groups:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, number)


def _group(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except OSError:
        return None


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


class Worker:
    """Runs the commands that come through one socket, one after the other."""

    def __init__(self, connection: socket.socket, way: Way, *, expendable: bool) -> None:
        self._connection = connection
        self._way = way
        self._expendable = expendable
        self._children = Children()
        self._null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        self._buffer = b""
        self._running = self._leaving = False
        signal.signal(signal.SIGTERM, self._leave)
        self._poll = select.poll()
        self._poll.register(connection.fileno(), select.POLLIN)
        self._poll.register(self._children.wake, select.POLLIN)

    def _leave(self, *_: object) -> None:
        """The supervisor says that nobody waits for us any more: end the command, then ourselves."""
        if not self._running:
            os._exit(0)
        self._leaving = True  # the watch sees it at once: the signal woke it

    def serve(self) -> None:
        """Until the other side closes its end."""
        while not self._leaving:
            received = self._receive()
            if received is None:
                return
            request, fds = received
            if request.get("op") != "run":
                continue  # the wish to end a command that has ended meanwhile
            self._running = True
            try:
                answer = self._run(request, fds)
            except OSError as error:
                answer = {"error": error.strerror, "errno": error.errno}
            finally:
                for fd in fds:
                    os.close(fd)
                os.chdir("/")
                self._running = False
            try:
                self._answer(answer)
            except OSError:
                return

    def _receive(self) -> tuple[dict[str, Any], list[int]] | None:
        """The next message with the descriptors that came along; None at the end."""
        fds: list[int] = []
        while True:
            if len(self._buffer) >= 4:
                end = 4 + int.from_bytes(self._buffer[:4], "big")
                if len(self._buffer) >= end:
                    body, self._buffer = self._buffer[4:end], self._buffer[end:]
                    return json.loads(body), fds
            data, more = _receive_fds(self._connection, 1 << 20)
            fds += more
            if not data:
                return None
            self._buffer += data

    def _answer(self, answer: dict[str, Any]) -> None:
        body = json.dumps(answer).encode()
        self._connection.sendall(len(body).to_bytes(4, "big") + body)

    def _run(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        started = time.monotonic()
        os.chdir(request["cwd"])
        shell = self._spawn(request, fds[0])
        os.close(fds.pop())  # now the pipe ends when the command's own ends are closed
        ending = Ending(self._way, self._children, shell, request["marker"], set())
        deadline = started + request["timeout"]
        reason = self._watch(shell, deadline)
        leftovers = 0
        if reason == "exited":
            if not ending.gone() and not ending.wait(LINGER):
                leftovers = len(ending.members())
                ending.terminate(LEFTOVER_GRACE)
        else:
            ending.terminate(GRACE)
        stuck = 0 if ending.gone() else len(ending.members())
        code = self._children.ended.get(shell)
        self._children.ended.clear()
        return {
            "reason": reason,
            "code": None if code is None else code if code >= 0 else 128 - code,
            "leftovers": leftovers,
            "stuck": stuck,
            "duration": time.monotonic() - started,
        }

    def _spawn(self, request: dict[str, Any], output: int) -> int:
        command: str = request["command"]
        arguments = ["bash", "--noprofile", "--norc", "-c", command]
        actions = [
            (os.POSIX_SPAWN_DUP2, self._null, 0),
            (os.POSIX_SPAWN_DUP2, output, 1),
            (os.POSIX_SPAWN_DUP2, output, 2),
        ]
        script = -1
        if len(os.fsencode(command)) > LONG_COMMAND:
            script = _script(os.fsencode(command))
            arguments[4:] = [". /dev/fd/3"]
            actions.append((os.POSIX_SPAWN_DUP2, script, 3))
        usual = _expend(EXPENDABLE) if self._expendable else None
        try:
            return os.posix_spawn(
                request["bash"],
                arguments,
                request["env"],
                file_actions=actions,
                setsid=True,
                setsigmask=[],
                setsigdef=_RESET_SIGNALS,
            )
        finally:
            if usual is not None:
                _expend(usual)
            if script >= 0:
                os.close(script)

    def _watch(self, shell: int, deadline: float) -> str:
        """Wait for the shell: ``exited``, ``timeout``, or ``ended`` (wished for, or nobody is there)."""
        while True:
            self._children.reap()
            if shell in self._children.ended:
                return "exited"
            left = deadline - time.monotonic()
            if left <= 0:
                return "timeout"
            if self._leaving:
                return "ended"
            for fd, _ in self._poll.poll(left * 1000 + 1):
                if fd == self._connection.fileno():
                    try:
                        if self._receive() is None:
                            self._poll.unregister(fd)
                    except OSError:
                        self._poll.unregister(fd)
                    return "ended"


def _expend(value: int) -> int | None:
    """Set what the kernel thinks of this process when it is short of memory, and of those it starts then.

    Returns:
        What it was; None where that cannot be set, or not taken back.
    """
    try:
        with open("/proc/self/oom_score_adj", "r+b", buffering=0) as file:  # noqa: PTH123  see reaper
            usual = int(file.read())
            file.write(b"%d" % value)
            return usual
    except (OSError, ValueError):
        return None


def _receive_fds(connection: socket.socket, size: int) -> tuple[bytes, list[int]]:
    """Data, and a descriptor that came along; what arrives so is inheritable until told otherwise."""
    data, fds, _, _ = socket.recv_fds(connection, size, 1)
    for fd in fds:
        os.set_inheritable(fd, False)
    return data, fds


def _script(command: bytes) -> int:
    """An unnamed file, not one of descriptors 0 to 3, that holds a command too long for an argument."""
    import fcntl
    import tempfile

    with tempfile.TemporaryFile() as file:
        file.write(command)
        file.seek(0)
        return fcntl.fcntl(file.fileno(), fcntl.F_DUPFD_CLOEXEC, 10)


class Supervisor:
    """Forks workers, and ends what is left of those that died."""

    def __init__(self, connection: socket.socket, way: Way, *, expendable: bool = False) -> None:
        self._connection = connection
        self._way = way
        self._expendable = expendable
        self._children = Children()
        self._workers: set[int] = set()
        self._owner = os.getppid()

    def serve(self) -> None:
        """Until the other side closes its end, or the process that started us is gone."""
        owner = _pidfd(self._owner)
        watched = [self._connection.fileno(), self._children.wake, *([] if owner is None else [owner])]
        while True:
            ready, _, _ = select.select(watched, [], [])
            self._collect()
            if owner in ready:
                break
            if self._connection.fileno() in ready and not self._obey():
                break
        self._finish()

    def _obey(self) -> bool:
        """Do what one record asks; False at the end."""
        try:
            record, fds = _receive_fds(self._connection, 1)
        except OSError:
            return False
        if not record:
            return False
        if fds:
            self._fork(socket.socket(fileno=fds[0]))
        return True

    def _fork(self, connection: socket.socket) -> None:
        try:
            pid = os.fork()
        except OSError:  # no more processes: who asked hears it by the end of the connection
            connection.close()
            return
        if pid:
            connection.close()
            self._workers.add(pid)
            return
        status = 1
        try:
            self._connection.close()
            self._children.close()
            self._way.prepare()
            body = json.dumps({"worker": os.getpid()}).encode()
            connection.sendall(len(body).to_bytes(4, "big") + body)
            Worker(connection, self._way, expendable=self._expendable).serve()
            status = 0
        finally:
            os._exit(status)

    def _collect(self) -> None:
        """Forget workers that ended, and end the processes that a dead one left to us."""
        self._children.reap()
        died = self._workers & set(self._children.ended)
        self._workers -= died
        self._children.ended.clear()
        if died and self._way.INHERITS_ORPHANS:
            Ending(self._way, self._children, 0, "", self._workers).kill()

    def _finish(self) -> None:
        """Let the workers end their commands; then end what is left."""
        end = time.monotonic() + PATIENCE
        for pid in self._workers:
            _send(pid, signal.SIGTERM)
        while self._workers and time.monotonic() < end:
            self._children.sleep(end - time.monotonic())
            self._collect()
        for pid in self._workers:
            _send(pid, signal.SIGKILL)
        if self._way.INHERITS_ORPHANS:
            Ending(self._way, self._children, 0, "", set()).kill()


def _pidfd(pid: int) -> int | None:
    """A descriptor that is readable when a process has ended; None where the system has no such thing."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def main() -> None:
    """Serve the socket that is standard input."""
    os.closerange(3, 65_536)  # what other libraries of the kernel left inheritable is no command's business
    connection = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
    way: Any = importlib.import_module(sys.argv[1])
    way.prepare()
    Supervisor(connection, way, expendable="expendable" in sys.argv[2:]).serve()


if __name__ == "__main__":
    main()
