"""Kill a writer with ``kill -9`` at any point and look at what it left.

One server process imports what the writers need and forks a writer for each request, so that hundreds of
kills cost a few milliseconds each. A writer is a function ``work(ack, *args)``, named ``module:function``;
``ack(text)`` says that something is acknowledged. Everything acknowledged before the kill is in
``Victim.kill()``'s answer, and must be found again.

::

    with CrashServer(preload=["tests.timeline.writer"]) as server:
        victim = server.start("tests.timeline.writer:work", str(folder))
        victim.wait_for(12)
        acknowledged = victim.kill(after=0.0004)
"""

from __future__ import annotations

import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

#: Seconds after which a writer that says nothing is taken for stuck.
PATIENCE = 30.0

_ROOT = Path(__file__).parents[2]


class CrashServer:
    """Starts writers.

    Args:
        preload: modules that are imported once, before the first fork.
    """

    def __init__(self, preload: Sequence[str] = ()) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with theirs:
            command = [sys.executable, "-m", __name__, str(theirs.fileno()), *preload]
            self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], cwd=_ROOT)
        self._socket.settimeout(PATIENCE)

    def start(self, work: str, *args: str) -> Victim:
        """Fork a writer that runs ``work``."""
        read, write = os.pipe()
        try:
            request = json.dumps({"work": work, "args": args}).encode()
            socket.send_fds(self._socket, [request], [write])
            pid = int(self._socket.recv(100))
        finally:
            os.close(write)
        return Victim(self, pid, read)

    def reap(self, pid: int) -> int:
        """Wait until a writer is gone with all that it held, and return its exit status."""
        self._socket.send(json.dumps({"reap": pid}).encode())
        return int(self._socket.recv(100))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()
        self._process.wait(PATIENCE)


class Victim:
    """A writer that runs.

    Attributes:
        pid: its process.
        acknowledged: what it acknowledged and was read so far.
    """

    def __init__(self, server: CrashServer, pid: int, pipe: int) -> None:
        self.pid = pid
        self.acknowledged: list[str] = []
        self._server = server
        self._pipe = pipe
        self._rest = b""

    def wait_for(self, count: int) -> bool:
        """Read until ``count`` things are acknowledged; False when the writer ended before."""
        while len(self.acknowledged) < count:
            ready, _, _ = select.select([self._pipe], [], [], PATIENCE)
            assert ready, f"writer {self.pid} says nothing"
            if not self._read():
                return False
        return True

    def kill(self, after: float = 0.0) -> list[str]:
        """End it with SIGKILL in ``after`` seconds and return all that it had acknowledged."""
        deadline = time.perf_counter() + after
        while time.perf_counter() < deadline:
            pass  # a sleep is too coarse for a point inside a write
        os.kill(self.pid, signal.SIGKILL)
        status = self._finish()
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, (
            f"the writer failed: {self.acknowledged}"
        )
        return self.acknowledged

    def finish(self) -> list[str]:
        """Let it run to its end and return all that it acknowledged."""
        assert self._finish() == 0, f"the writer failed: {self.acknowledged}"
        return self.acknowledged

    def _finish(self) -> int:
        while self._read():
            pass
        os.close(self._pipe)
        return self._server.reap(self.pid)

    def _read(self) -> bool:
        data = os.read(self._pipe, 65536)
        *lines, self._rest = (self._rest + data).split(b"\n")
        self.acknowledged += [line.decode() for line in lines]
        return bool(data)


def _serve(fd: int) -> None:
    with socket.socket(fileno=fd) as requests:
        while True:
            data, fds, _, _ = socket.recv_fds(requests, 65536, 1)
            if not data:
                return
            request = json.loads(data)
            if "reap" in request:
                _, status = os.waitpid(request["reap"], 0)
                requests.send(str(status).encode())
                continue
            pid = os.fork()
            if pid == 0:
                requests.close()
                _write(fds[0], request)
            os.close(fds[0])
            requests.send(str(pid).encode())


def _write(pipe: int, request: dict[str, Any]) -> None:
    module, _, name = request["work"].partition(":")
    code = 1
    try:
        work: Callable[..., None] = getattr(importlib.import_module(module), name)
        work(lambda text: os.write(pipe, text.encode() + b"\n"), *request["args"])
        code = 0
    except Exception:
        traceback.print_exc()
        raise
    finally:
        os._exit(code)


if __name__ == "__main__":
    for preloaded in sys.argv[2:]:
        importlib.import_module(preloaded)
    _serve(int(sys.argv[1]))
