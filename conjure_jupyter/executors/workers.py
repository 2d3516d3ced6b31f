"""The engine's end of the connection to one worker of the supervisor."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket

from ..errors import ExecutorError
from . import groups
from .calls import Call, Command, NotStartedError

_READ = 1 << 16


class Worker:
    """The connection to one worker."""

    def __init__(self, loop: asyncio.AbstractEventLoop, connection: socket.socket) -> None:
        self._loop = loop
        self._connection = connection
        self._buffer = b""
        self.pid: int | None = None
        self.call: Call | None = None
        self.lost = False
        self.retired = False
        connection.setblocking(False)
        loop.add_reader(connection.fileno(), self._readable)

    async def send_command(self, call: Call, command: Command) -> None:
        """Hand the command over.

        Raises:
            NotStartedError: the worker is gone.
        """
        request = {
            "op": "run",
            "command": command.text,
            "bash": command.bash,
            "cwd": command.cwd,
            "env": {**command.environment, groups.MARKER: call.marker},
            "timeout": command.timeout,
            "marker": call.marker,
        }
        body = json.dumps(request).encode()
        message = len(body).to_bytes(4, "big") + body
        self.call = call
        try:
            sent = socket.send_fds(self._connection, [message], [call.write])
            call.handed_over()
            if sent < len(message):
                await self._loop.sock_sendall(self._connection, message[sent:])
            call.sent = True
        except OSError as error:
            raise NotStartedError from error

    def end_command(self) -> None:
        """Ask for the command's end; the answer comes as always."""
        body = json.dumps({"op": "end"}).encode()
        with contextlib.suppress(OSError):
            self._connection.send(len(body).to_bytes(4, "big") + body)

    def close(self) -> None:
        """The worker ends what it runs, then itself."""
        self.lost = True
        if self._connection.fileno() >= 0:
            self._loop.remove_reader(self._connection.fileno())
            self._connection.close()

    def forget(self) -> None:
        """Close our copy in a fork."""
        self.lost = True
        self._connection.close()
        if self.call is not None:
            self.call.forget()

    def _readable(self) -> None:
        try:
            data = self._connection.recv(_READ)
        except BlockingIOError:
            return
        except OSError:
            self._gone(unread=True)  # reset: what we sent was never read
            return
        if not data:
            self._gone(unread=False)
            return
        self._buffer += data
        while len(self._buffer) >= 4:
            end = 4 + int.from_bytes(self._buffer[:4], "big")
            if len(self._buffer) < end:
                return
            message, self._buffer = json.loads(self._buffer[4:end]), self._buffer[end:]
            if "worker" in message:
                self.pid = message["worker"]
            elif self.call is not None:
                self.call.take(message)

    def _gone(self, *, unread: bool) -> None:
        self.close()
        if self.call is None:
            return
        if unread or self.pid is None:
            self.call.fail(NotStartedError())
        elif self.call.overdue:
            self.call.finish()
        else:
            self.call.fail(
                ExecutorError(
                    "the process that watched the command was killed; what the command had started was "
                    "ended, and it may have done a part of its work"
                )
            )
