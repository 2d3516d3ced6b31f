"""What the resident says, in order and in bounded memory: whoever has much to say waits for room.

Runs in the container: standard library only.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import deque
from typing import Any

from .frames import encode

#: Bytes that wait to be written before those who send more have to wait.
ROOM = 1 << 18


class Outbox:
    """Writes frames to a pipe.

    Args:
        fd: the pipe, which does not block.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[memoryview] = deque()
        self._size = 0
        self._senders: deque[asyncio.Future[None]] = deque()
        self._watched = False
        self.broken = False

    def post(self, header: dict[str, Any], data: bytes | memoryview = b"") -> None:
        """Say something short at once, before those who wait for room."""
        if self.broken:
            return
        frame = encode(header, data)
        self._waiting.append(memoryview(frame))
        self._size += len(frame)
        if not self._watched:
            self._write()

    async def send(self, header: dict[str, Any], data: bytes | memoryview) -> None:
        """Say something long once there is room, in turn with others."""
        if self._size >= ROOM or self._senders:
            turn = self._loop.create_future()
            self._senders.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                with contextlib.suppress(ValueError):
                    self._senders.remove(turn)
                self._next()
                raise
        self.post(header, data)
        self._next()

    def _next(self) -> None:
        """Let go on who waits longest, when there is room."""
        if self._size >= ROOM:
            return
        while self._senders:
            turn = self._senders.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    def _write(self) -> None:
        try:
            while self._waiting:
                piece = self._waiting[0]
                written = os.write(self._fd, piece)
                self._size -= written
                if written < len(piece):
                    self._waiting[0] = piece[written:]
                else:
                    self._waiting.popleft()
        except BlockingIOError:
            pass
        except OSError:  # nobody reads any more: the end of our input follows
            self.broken = True
            self._waiting.clear()
            self._size = 0
        if bool(self._waiting) is not self._watched:
            self._watched = bool(self._waiting)
            if self._watched:
                self._loop.add_writer(self._fd, self._write)
            else:
                self._loop.remove_writer(self._fd)
        self._next()
