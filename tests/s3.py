"""Real S3 servers for tests, each a process of its own on a free port of this machine.

``rclone serve s3`` keeps objects as files and is quick, but takes a conditional put without enforcing it;
moto's server enforces it.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KEY_ID, SECRET = "test-id", "test-secret"

#: Seconds a server may take to answer first.
START = 60.0


@dataclass(frozen=True, slots=True)
class Server:
    """A running server.

    Attributes:
        port: on 127.0.0.1.
        folder: where rclone keeps buckets as folders and objects as files; None for moto.
    """

    port: int
    folder: Path | None = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def options(self, prefix: str = "sessions", *, port: int | None = None) -> dict[str, Any]:
        """Options of ``S3Storage``, through a proxy when ``port`` names one."""
        return {
            "bucket": "test",
            "prefix": prefix,
            "endpoint": f"http://127.0.0.1:{port}" if port else self.endpoint,
            "access_key": KEY_ID,
            "secret_key": SECRET,
            "region": "us-east-1",
        }

    def files(self, prefix: str = "sessions") -> dict[str, bytes]:
        """What the server holds, read from its disk."""
        assert self.folder is not None
        root = self.folder / "test" / prefix
        return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@contextlib.contextmanager
def rclone(folder: Path) -> Iterator[Server]:
    """Serve a folder as S3; it gets one bucket, ``test``."""
    (folder / "test").mkdir(parents=True, exist_ok=True)
    port = free_port()
    command = [
        str(Path(sys.executable).with_name("rclone")),
        *("serve", "s3", "--auth-key", f"{KEY_ID},{SECRET}", "--addr", f"127.0.0.1:{port}"),
        *("--config", "", "--vfs-cache-mode", "off", str(folder)),
    ]
    with _running(command, port):
        yield Server(port, folder)


@contextlib.contextmanager
def moto() -> Iterator[Server]:
    """Serve S3 from memory, conditions enforced; there is one bucket, ``test``."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with _running(command, port):
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=START)) as connection:
            connection.request("PUT", "/test", headers={"Host": "s3.amazonaws.com"})
            assert connection.getresponse().status == 200
        yield Server(port)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def _running(command: list[str], port: int) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + START
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            assert process.poll() is None, f"{command[0]} ended with {process.returncode}"
            assert time.monotonic() < deadline, f"{command[0]} does not answer"
            time.sleep(0.02)
        yield
    finally:
        process.kill()
        process.wait()
