"""A container's connections, each a channel of frames over the relay's one stream.

The container is not trusted. What is kept for it is bounded: of each channel a window in and a little more
than one out, and of channels ``MOST``. Frames for channels that are not there are dropped, as they may be on
their way when a channel closes; whatever else an honest relay cannot send is a ``FrameError``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from .relay import CLOSE, CREDIT, DATA, EOF, NUMBER, PIECE, WINDOW, frame


class FrameError(Exception):
    """The relay sent what no relay sends."""


class ChannelClosedError(ConnectionError):
    """The program in the container is gone from the other end."""


class Channel:
    """One connection of a program in the container. All methods belong to the engine's loop.

    One task may read and one may write at the same time.

    Args:
        number: the relay's name for it.
        turn: called when there is something to send.
    """

    def __init__(self, number: int, turn: Callable[[Channel], None]) -> None:
        self.number = number
        self.moved = asyncio.get_running_loop().time()
        self.sent = 0
        self.received = 0
        self._turn = turn
        self._in = bytearray()
        self._allowed = WINDOW  # bytes that the relay may still send
        self._owed = 0  # bytes that were read and not credited yet
        self._ended = False
        self._out = bytearray()
        self._credit = WINDOW
        self._end = self._end_sent = False
        self._close = self._close_sent = False
        self._gone = False
        self._readable = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()

    @property
    def over(self) -> bool:
        """Whether both sides closed it."""
        return self._gone and self._close_sent

    async def read(self) -> bytes:
        """The next bytes, at most a window of them; none at the end.

        Raises:
            ChannelClosedError: the program went away.
        """
        await self._readable.wait()
        if not self._in:
            if self._ended:
                return b""
            raise ChannelClosedError
        data = bytes(self._in)
        self._in.clear()
        if not (self._ended or self._gone):
            self._readable.clear()
        self._owed += len(data)
        if self._owed >= WINDOW // 2:
            self._turn(self)
        return data

    async def write(self, data: bytes) -> None:
        """Send; waits while the program is slow to take it.

        Raises:
            ChannelClosedError: the program went away.
        """
        await self._writable.wait()
        if self._gone or self._close:
            raise ChannelClosedError
        self._out += data
        if len(self._out) >= PIECE:
            self._writable.clear()
        self._turn(self)

    def end(self) -> None:
        """Say that nothing more will be written."""
        self._end = True
        self._turn(self)

    def close(self) -> None:
        """Let go of it, once what was written is sent. May be called twice."""
        self._close = True
        self._in.clear()
        self._turn(self)

    def abort(self) -> None:
        """Let go of it at once. May be called twice."""
        self._out.clear()
        self.close()

    def take(self, kind: int, payload: bytes) -> None:
        """Do what a frame of the relay says.

        Raises:
            FrameError: more data or credit than can be.
        """
        self.moved = asyncio.get_running_loop().time()
        if self._gone:
            return
        if kind == DATA:
            self._take_data(payload)
        elif kind == CREDIT:
            self._credit += NUMBER.unpack(payload)[0]
            if self._credit > WINDOW:
                raise FrameError("credit that was never used")
            self._turn(self)
        elif kind in (EOF, CLOSE):
            if kind == EOF:
                self._ended = True
            else:
                self._gone = True
                self._out.clear()
                self._writable.set()
                self._turn(self)
            self._readable.set()
        else:
            raise FrameError(f"a frame of kind {kind} on an open channel")

    def _take_data(self, payload: bytes) -> None:
        self._allowed -= len(payload)
        if self._allowed < 0 or self._ended:
            raise FrameError("data that there was no room for")
        self.received += len(payload)
        if self._close:
            return
        self._in += payload
        self._readable.set()

    def give(self) -> tuple[bytes, bool]:
        """Frames to send in this turn, and whether there is more for another one."""
        if self._close_sent:
            return b"", False
        frames = []
        if self._owed >= WINDOW // 2 and not self._gone and not self._close:
            frames.append(frame(CREDIT, self.number, NUMBER.pack(self._owed)))
            self._allowed += self._owed
            self._owed = 0
        size = min(len(self._out), self._credit, PIECE)
        if size:
            with memoryview(self._out) as view:
                frames.append(frame(DATA, self.number, bytes(view[:size])))
            del self._out[:size]
            self._credit -= size
            self.sent += size
            self.moved = asyncio.get_running_loop().time()
        if len(self._out) < PIECE:
            self._writable.set()
        if not self._out:
            if self._close:
                self._close_sent = True
                frames.append(frame(CLOSE, self.number))
            elif self._end and not self._end_sent and not self._gone:
                self._end_sent = True
                frames.append(frame(EOF, self.number))
        return b"".join(frames), bool(self._out and self._credit)
