"""The engine that the tests of containers use: one that answers, or one of the tests' own.

Their own is one dockerd for all processes of a run. Each process holds a shared lock while it uses it, which
the kernel takes back however the process ends; the last one to let go stops the engine. One that a killed
run left behind is ended by the next, by its pid file.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from scripts.setup_docker import CACHE, MISSING, SEARCH, answering, answers

#: Where the tests' own engine keeps all it has; for this user only.
HOME = CACHE / "engine"
PID_FILE = HOME / "pid"
LOG = HOME / "log"
#: Seconds it may take to answer first, and to end.
PATIENCE = 60.0


class NoEngineError(Exception):
    """There is no engine, and none can be started; why, in one line."""


@contextlib.contextmanager
def engine() -> Iterator[str]:
    """The address of an engine that answers; it answers until the end of the block.

    Raises:
        NoEngineError: there is none.
    """
    found = answering()
    if found is not None:
        yield found
        return
    program = shutil.which("dockerd", path=SEARCH)
    if program is None or os.geteuid() != 0:
        raise NoEngineError(MISSING)
    CACHE.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (CACHE / "engine.users").open("w") as users:
        with alone():
            if not _held_by_others(users):
                _end()
                _start(program)
            fcntl.flock(users, fcntl.LOCK_SH)
        try:
            yield _address()
        finally:
            with alone():
                fcntl.flock(users, fcntl.LOCK_UN)
                if not _held_by_others(users):
                    _end()


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """One process at a time starts or stops the engine, or puts an image on it."""
    CACHE.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (CACHE / "engine.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _held_by_others(users: IO[str]) -> bool:
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(users, fcntl.LOCK_UN)
    return False


def _address() -> str:
    return f"unix://{HOME}/docker.sock"


def _start(program: str) -> None:
    # No bridge and no firewall rules: neither is there on every machine, nor is it the tests' to change.
    command = [program, "--bridge=none", "--iptables=false", "--ip6tables=false", "-H", _address()]
    command += ["--data-root", f"{HOME}/data", "--exec-root", f"{HOME}/run", "-p", str(PID_FILE)]
    HOME.mkdir(parents=True, exist_ok=True, mode=0o700)
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(LOG), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    # A session of its own: a Ctrl-C ends the tests, and they end the engine.
    environment = {**os.environ, "PATH": SEARCH}
    pid = os.posix_spawn(program, command, environment, file_actions=actions, setsid=True)
    _wait(pid)


def _wait(pid: int) -> None:
    """Wait until the engine answers.

    Raises:
        NoEngineError: it ended, or does not answer in time.
    """
    deadline = time.monotonic() + PATIENCE
    while not answers(_address()):
        if _ended(pid) or time.monotonic() > deadline:
            last = LOG.read_text(errors="replace").strip().splitlines()[-1:]
            raise NoEngineError(f"the engine does not start here: {' '.join(last)}")
        time.sleep(0.05)


def _end() -> None:
    """End the engine that the pid file names, and remove all it had."""
    with contextlib.suppress(OSError, ValueError):
        pid = int(PID_FILE.read_text())
        if b"dockerd" in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGTERM)  # it ends its containers first
            deadline = time.monotonic() + PATIENCE
            while not _ended(pid):
                if time.monotonic() > deadline:
                    os.kill(pid, signal.SIGKILL)
                time.sleep(0.05)
    for mounted in reversed(_mounts()):
        subprocess.run(["umount", "--lazy", mounted], capture_output=True, check=False)
    shutil.rmtree(HOME, ignore_errors=True)


def _ended(pid: int) -> bool:
    with contextlib.suppress(ChildProcessError):  # another process of the run started it
        os.waitpid(pid, os.WNOHANG)
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except OSError:
        return True
    return state == b"Z"


def _mounts() -> list[str]:
    """What is mounted below its folder, in the order in which it was."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    points = [line.split()[4].encode().decode("unicode_escape") for line in lines]
    return [point for point in points if point.startswith(f"{HOME}/")]
