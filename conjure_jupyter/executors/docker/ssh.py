"""An engine behind ``ssh://``, made to look like one behind a socket of this machine.

Each connection to the socket becomes input and output of an ``ssh … docker system dial-stdio`` of its own;
a shared ssh connection makes all but the first quick. The system's ssh is used because it knows the user's
keys, agent, jump hosts and known hosts. The SDK's own way needs paramiko even to start that program, and its
connections cannot be used by an event loop.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import socket
import subprocess
import tempfile
import threading
import weakref
from pathlib import Path
from urllib.parse import urlsplit

from ...errors import DockerUnavailableError
from .addresses import Address

#: Seconds a first answer of the other machine may take.
CONNECT_LIMIT = 5
#: Seconds for which the shared connection outlives the last one that used it.
LINGER = 10


class Tunnel:
    """A socket of this machine whose connections end at the engine of another.

    Args:
        address: an ``ssh`` one.

    Attributes:
        path: the socket; for this user only.

    Raises:
        DockerUnavailableError: there is no ssh on this machine.
    """

    def __init__(self, address: Address) -> None:
        program = shutil.which("ssh")
        if program is None:
            raise DockerUnavailableError(f"{address} needs the ssh command: install OpenSSH's client")
        self._complaint = ""
        self._complained = threading.Event()
        # The name of a socket may have 104 bytes on macOS, whose own temporary folder takes half of them.
        self._folder = Path(tempfile.mkdtemp(prefix="conjure-", dir="/tmp"))
        self.path = self._folder / "engine.sock"
        self._command = [program, *_options(self._folder), *_target(address)]
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.path))
        self._listener.listen(16)
        _all.add(self)
        self._clean = weakref.finalize(self, _remove, self._folder, os.getpid())  # at the latest at the exit
        threading.Thread(target=self._accept, name="conjure-ssh", daemon=True).start()

    def reason(self) -> str:
        """Why a connection just ended, in ssh's words; empty when ssh was content. Waits for it a moment."""
        self._complained.wait(0.5)
        return self._complaint

    def close(self) -> None:
        """Take no further connections; those that stand go on. Never raises."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread, which close() alone does not
        self._listener.close()
        self._clean()

    def forget(self) -> None:
        """In a fork: the socket is the parent's."""
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), name="conjure-ssh", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection:
                process = subprocess.Popen(
                    self._command,
                    stdin=connection.fileno(),
                    stdout=connection.fileno(),
                    stderr=subprocess.PIPE,
                    start_new_session=True,  # a Ctrl-C is meant for the cell
                )
        except OSError as error:
            self._complain(str(error))
            return
        with process:
            said = process.stderr.read() if process.stderr is not None else b""
        if process.returncode:
            lines = said.decode(errors="replace").strip().splitlines()
            self._complain(lines[-1] if lines else f"ssh ended with {process.returncode}")

    def _complain(self, text: str) -> None:
        self._complaint = text
        self._complained.set()


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # in a fork it is the parent's
        shutil.rmtree(folder, ignore_errors=True)


def _options(folder: Path) -> list[str]:
    # Nobody can answer a question here. The shared connection is for this socket alone.
    pairs = {
        "BatchMode": "yes",
        "ConnectTimeout": CONNECT_LIMIT,
        "ServerAliveInterval": 5,
        "ServerAliveCountMax": 3,
        "ControlMaster": "auto",
        "ControlPath": folder / "%C",
        "ControlPersist": LINGER,
    }
    return ["-T", *(part for name, value in pairs.items() for part in ("-o", f"{name}={value}"))]


def _target(address: Address) -> list[str]:
    parts = urlsplit(address.url)
    user = ["-l", parts.username] if parts.username else []
    port = ["-p", str(parts.port)] if parts.port else []
    at = f"--host {shlex.quote(f'unix://{parts.path}')} " if parts.path else ""
    return [*user, *port, "--", parts.hostname or "", f"docker {at}system dial-stdio"]


_all: weakref.WeakSet[Tunnel] = weakref.WeakSet()


def _forget_all() -> None:
    """After a fork: a copy of the listening socket would leave connections without answer."""
    for tunnel in list(_all):
        tunnel.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
