"""The HTTP side of the scripted server: one thread a connection, answers written as they are made."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from .faults import CutConnection, Delay, Wire
from .script import Step, to_step

_NOTHING = to_step("")


@dataclass(slots=True)
class Answer:
    """What goes back: a body in pieces, and what goes wrong on the way.

    Attributes:
        status: HTTP status.
        headers: without ``content-length``; the body is sent in chunks.
        pieces: the body; for a stream, one event a piece.
        step: delays, cuts and the form of the writes.
        on_hang_up: called when the client is gone before the end.
    """

    status: int
    headers: dict[str, str]
    pieces: Iterable[bytes]
    step: Step = _NOTHING
    on_hang_up: Callable[[], None] = field(default=lambda: None)


#: Takes method, path, headers (lower case) and body.
Handle = Callable[[str, str, dict[str, str], bytes], Answer]


class Server:
    """Serves ``handle`` on a free port of 127.0.0.1 until closed."""

    def __init__(self, handle: Handle) -> None:
        self.stopped = threading.Event()
        handler = type("Handler", (_Handler,), {"handlers": (handle,), "stopped": self.stopped})
        self._http = _HTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, name="fake-claude", daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """``http://127.0.0.1:PORT``."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def connections(self) -> int:
        """Connections taken so far."""
        return self._http.accepted

    def close(self) -> None:
        """Stop serving and break the connections that are open; twice is fine."""
        self.stopped.set()
        self._http.shutdown()
        self._http.server_close()
        self._http.hang_up()
        self._thread.join()


class _HTTPServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.accepted = 0
        self._open: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self.accepted += 1
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is what tests are about, not news."""

    def hang_up(self) -> None:
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Without it every small write waits for the client's delayed acknowledgement, some 45 ms.
    disable_nagle_algorithm = True

    #: The one function that answers; in a tuple, as a function in a class would become a method.
    handlers: ClassVar[tuple[Handle]]
    stopped: ClassVar[threading.Event]

    def do_POST(self) -> None:
        self._respond()

    def do_GET(self) -> None:
        self._respond()

    def _respond(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self.handlers[0](self.command, self.path.partition("?")[0], headers, body)
        try:
            self._send(answer)
        except OSError:
            answer.on_hang_up()
            self.close_connection = True

    def _send(self, answer: Answer) -> None:
        delay: Delay = answer.step.first(Delay) or Delay()
        cut: CutConnection | None = answer.step.first(CutConnection)
        wire: Wire = answer.step.first(Wire) or Wire()
        if self._wait(delay.seconds) or (cut and cut.after_events is None and cut.after_bytes is None):
            self._break()
            return
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        left = cut.after_bytes if cut else None
        pieces = [b"".join(answer.pieces)] if wire.whole else answer.pieces
        for at, piece in enumerate(pieces):
            if self._wait(delay.per_event) or (cut and cut.after_events == at):
                self._break()
                return
            if left is not None and left < len(piece):
                self._write(piece[:left], wire.fragment)
                self._break()
                return
            left = None if left is None else left - len(piece)
            self._write(piece, wire.fragment)
        self.wfile.write(b"0\r\n\r\n")

    def _write(self, piece: bytes, fragment: int | None) -> None:
        size = fragment or len(piece) or 1
        for at in range(0, len(piece), size):
            part = piece[at : at + size]
            self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))

    def _wait(self, seconds: float) -> bool:
        """Wait; whether the server was closed meanwhile."""
        return self.stopped.wait(seconds) if seconds else self.stopped.is_set()

    def _break(self) -> None:
        """Reset the connection, as a network that fails does."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        # The files hold the socket open as well.
        self.rfile.close()
        self.wfile.close()
        self.connection.close()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the base class's name
        """Keep stderr clean."""
