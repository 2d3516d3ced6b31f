"""A proxy in front of a real S3 server that fails on demand and keeps a log of what got through.

It reads whole requests and forwards them with their own ``Host``, so that signatures stay valid. Each fault
is used once, by the next request that it fits.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import socket
import struct
import threading
import time
import urllib.parse
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal, Self

Kind = Literal["500", "503", "429", "reset", "500 after", "reset after", "cut upload", "cut download"]

FAULTS: tuple[Kind, ...] = ("500", "503", "429", "reset", "500 after", "reset after", "cut upload")


@dataclass(slots=True)
class Fault:
    """What happens to the next ``times`` requests of a method, to keys that hold a text."""

    kind: Kind
    method: str = "PUT"
    key: str = ""
    times: int = 1


@dataclass(slots=True)
class Passed:
    """A request that reached the server: its number in the order of answers, and what it was."""

    number: int
    method: str
    key: str
    status: int


@dataclass
class Proxy:
    """Listens while it is a context; ``online`` may be switched."""

    upstream: int
    faults: list[Fault] = field(default_factory=list)
    online: bool = True
    delay: float = 0.0

    def __post_init__(self) -> None:
        self.log: list[Passed] = []
        self.refused = 0
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.port: int = self._listener.getsockname()[1]

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        self.disconnect()

    def disconnect(self) -> None:
        """Break every connection."""
        for connection in [*self._open]:
            _reset(connection)

    def puts(self, part: str = "") -> list[str]:
        """The keys whose puts the server confirmed, in order; parts of large files are not counted."""
        done = sorted(self.log, key=lambda passed: passed.number)
        return [each.key for each in done if each.method == "PUT" and each.status == 200 and part in each.key]

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._open.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError, http.client.HTTPException), connection.makefile("rb") as stream:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while self.online:
                line = stream.readline()
                if not line:
                    break
                method, target, _ = line.decode("latin-1").split(" ")
                headers = http.client.parse_headers(stream)
                body = stream.read(int(headers.get("Content-Length") or 0))
                if not self.online or not self._answer(connection, method, target, headers, body):
                    break
        if not self.online:
            self.refused += 1
        _reset(connection)
        self._open.discard(connection)

    def _answer(
        self,
        connection: socket.socket,
        method: str,
        target: str,
        headers: http.client.HTTPMessage,
        body: bytes,
    ) -> bool:
        """Answer a request; False when the connection is at its end."""
        key = urllib.parse.unquote(target.partition("?")[0])
        fault = self._fault(method, key)
        time.sleep(self.delay)
        if fault in ("500", "503", "429"):
            connection.sendall(_response(int(fault), b"<Error><Code>Fault</Code></Error>", method))
            return True
        if fault == "reset":
            return False
        if fault == "cut upload":
            self._cut_upload(method, target, headers, body)
            return False
        status, answer, length, kept = self._forward(method, target, headers, body)
        with self._lock:
            self.log.append(Passed(next(self._numbers), method, key, status))
        if fault == "500 after":
            connection.sendall(_response(500, b"<Error><Code>Fault</Code></Error>", method))
            return True
        if fault == "reset after":
            return False
        full = _response(status, answer, method, kept, length)
        connection.sendall(full[: len(full) - len(answer) // 2] if fault == "cut download" else full)
        return fault != "cut download"

    def _fault(self, method: str, key: str) -> Kind | None:
        with self._lock:
            for fault in self.faults:
                if fault.times and fault.method == method and fault.key in key:
                    fault.times -= 1
                    return fault.kind
        return None

    def _forward(
        self, method: str, target: str, headers: http.client.HTTPMessage, body: bytes
    ) -> tuple[int, bytes, str | None, list[tuple[str, str]]]:
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.upstream, timeout=60)) as server:
            server.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            for name, value in headers.items():
                server.putheader(name, value)
            server.endheaders(body)
            response = server.getresponse()
            dropped = {"content-length", "transfer-encoding", "connection", "keep-alive"}
            kept = [(name, value) for name, value in response.getheaders() if name.lower() not in dropped]
            return response.status, response.read(), response.getheader("Content-Length"), kept

    def _cut_upload(self, method: str, target: str, headers: http.client.HTTPMessage, body: bytes) -> None:
        with socket.create_connection(("127.0.0.1", self.upstream)) as server:
            head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            server.sendall(
                f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + body[: len(body) // 2]
            )


def _response(
    status: int,
    body: bytes,
    method: str,
    headers: list[tuple[str, str]] | None = None,
    length: str | None = None,
) -> bytes:
    lines = [f"HTTP/1.1 {status} X", *(f"{name}: {value}" for name, value in headers or [])]
    if status not in (204, 304):
        lines.append(f"Content-Length: {length if method == 'HEAD' and length else len(body)}")
    head = "\r\n".join([*lines, "", ""]).encode("latin-1")
    return head if method == "HEAD" else head + body


def _reset(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.shutdown(socket.SHUT_RDWR)
    with contextlib.suppress(OSError):
        connection.close()
