"""The end of the network inside the container: connections to a port of its loopback, as frames over stdio.

Its source is sent to the container's Python whole, so it is one file, needs the standard library alone and
runs on Python 3.8. The wire format is written here once; the other side imports it.

A frame is a header (kind, channel, size of the payload) and the payload. Each accepted connection is a
channel. A side sends at most as many bytes of data on a channel as it was given credit for, which begins at
``WINDOW``; once they were handed on, it is given credit for as many again. So a slow program or server holds
up its own channel only, and no more than a window of it is ever kept. The relay may therefore wait in a
write: the other side always reads.
"""

from __future__ import annotations

import os
import selectors
import socket
import struct
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

HEADER = struct.Struct("!BII")
NUMBER = struct.Struct("!I")

#: To the host: listening on the port of the payload.
READY = 1
#: To the host: a program connected.
OPEN = 2
DATA = 3
#: Nothing more will be sent on the channel, as after a half-close.
EOF = 4
#: Done with the channel, whose number is free once both sides said so. What was sent before is delivered.
CLOSE = 5
#: The other side may send so many bytes more.
CREDIT = 6

#: Most bytes of a frame's payload.
PIECE = 64 * 1024
#: Bytes of data that may be on their way in each direction of a channel.
WINDOW = 256 * 1024
#: Most channels at the same time.
MOST = 256

#: Connections beyond ``MOST`` that are being told so; further ones are closed without a word.
_MOST_REFUSED = 64
#: Seconds for a program to take what was sent to it, after the host has closed its channel.
_FLUSH = 30.0
#: Seconds for it to close its own side afterwards; closing with unread input would lose what was sent.
_LINGER = 3.0

_SIZES = {READY: (4, 4), OPEN: (0, 0), DATA: (1, PIECE), EOF: (0, 0), CLOSE: (0, 0), CREDIT: (4, 4)}
_BUSY_TEXT = "too many connections through the sandbox's proxy; close some and try again\n"
_BUSY = (
    "HTTP/1.1 503 Too many connections\r\nContent-Type: text/plain\r\nConnection: close\r\n"
    f"Content-Length: {len(_BUSY_TEXT)}\r\n\r\n{_BUSY_TEXT}"
).encode()


def frame(kind: int, channel: int, payload: bytes = b"") -> bytes:
    """One frame."""
    return HEADER.pack(kind, channel, len(payload)) + payload


class Decoder:
    """Frames from bytes that come in any pieces; keeps less than one frame."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[int, int, bytes]]:
        """Kind, channel and payload of each frame that is whole by now.

        Raises:
            ValueError: it is no frame, or larger than one may be.
        """
        held, at = self._held, 0
        held += data
        while len(held) - at >= HEADER.size:
            kind, channel, size = HEADER.unpack_from(held, at)
            low, high = _SIZES.get(kind, (1, 0))
            if not low <= size <= high:
                raise ValueError(f"a frame of kind {kind} and {size} bytes")
            end = at + HEADER.size + size
            if end > len(held):
                break
            with memoryview(held) as view:
                payload = bytes(view[at + HEADER.size : end])
            at = end
            yield kind, channel, payload
        del held[:at]


class _Channel:
    """A connection; ``number`` is None for one that is only told that there are too many."""

    def __init__(self, connection: socket.socket, number: int | None) -> None:
        self.connection = connection
        self.number = number
        self.credit = WINDOW
        self.out = bytearray()
        self.delivered = 0
        self.watched = 0
        self.read_all = False  # the program sends no more
        self.ended = False  # the host sends no more
        self.shut = False  # and the program was told so
        self.closed = False  # the connection is no more
        self.deadline: float | None = None  # set once the host has closed the channel


class Relay:
    """Accepts connections until its input ends.

    Args:
        port: where to listen; 0 for any that is free.
    """

    def __init__(self, port: int) -> None:
        self._select = selectors.DefaultSelector()
        self._channels: dict[int, _Channel] = {}
        self._refused: list[_Channel] = []
        self._last = 0
        self._frames: list[bytes] = []
        self._waiting = 0
        self._decoder = Decoder()
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(("127.0.0.1", port))
        self._listener.listen(MOST)
        self._listener.setblocking(False)

    def run(self) -> None:
        """Serve.

        Raises:
            OSError: nobody reads the output any more.
            ValueError: the input is not frames.
        """
        self._send(READY, 0, NUMBER.pack(self._listener.getsockname()[1]))
        self._select.register(self._listener, selectors.EVENT_READ, self._listener)
        self._select.register(0, selectors.EVENT_READ, None)
        while True:
            self._flush()
            for key, mask in self._select.select(1.0 if self._expire() else None):
                if key.data is None:
                    data = os.read(0, 4 * PIECE)
                    if not data:
                        return
                    for kind, number, payload in self._decoder.feed(data):
                        self._take(kind, number, payload)
                elif key.data is self._listener:
                    self._accept()
                else:
                    self._move(key.data, mask)

    def _send(self, kind: int, number: int | None, payload: bytes = b"") -> None:
        if number is None:
            return
        self._frames.append(frame(kind, number, payload))
        self._waiting += len(payload)
        if self._waiting >= 4 * PIECE:
            self._flush()

    def _flush(self) -> None:
        data = memoryview(b"".join(self._frames))
        self._frames.clear()
        self._waiting = 0
        while data:
            data = data[os.write(1, data) :]

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:
            time.sleep(0.01)  # it went away again, or there are no descriptors left for now
            return
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if len(self._channels) < MOST:
            self._last = self._last % 0xFFFFFFFF + 1
            channel = self._channels[self._last] = _Channel(connection, self._last)
            self._send(OPEN, self._last)
        elif len(self._refused) < _MOST_REFUSED:
            channel = _Channel(connection, None)
            channel.out += _BUSY
            channel.ended = True
            channel.deadline = time.monotonic() + _FLUSH
            self._refused.append(channel)
        else:
            connection.close()
            return
        self._watch(channel)

    def _take(self, kind: int, number: int, payload: bytes) -> None:
        """Do what the host says."""
        channel = self._channels.get(number)
        if channel is None:
            return
        if kind == CLOSE:
            channel.ended = True
            channel.deadline = time.monotonic() + _FLUSH
            if channel.closed:
                del self._channels[number]
        elif kind == DATA:
            channel.out += payload
            # Mostly it fits, and need not wait for the selector to say so.
            self._move(channel, selectors.EVENT_WRITE)
            return
        elif kind == EOF:
            channel.ended = True
        elif kind == CREDIT:
            channel.credit += NUMBER.unpack(payload)[0]
        self._watch(channel)

    def _move(self, channel: _Channel, mask: int) -> None:
        """Move what the connection has, and takes."""
        if channel.closed:
            return
        try:
            if mask & selectors.EVENT_READ:
                self._receive(channel)
            if mask & selectors.EVENT_WRITE and channel.out:
                self._deliver(channel)
        except BlockingIOError:
            pass
        except OSError:
            self._close(channel)
            return
        self._watch(channel)

    def _receive(self, channel: _Channel) -> None:
        lingers = channel.deadline is not None
        data = channel.connection.recv(PIECE if lingers else min(PIECE, channel.credit))
        if not data:
            channel.read_all = True
        if lingers:
            return
        channel.credit -= len(data)
        self._send(DATA if data else EOF, channel.number, data)

    def _deliver(self, channel: _Channel) -> None:
        with memoryview(channel.out) as view:
            sent = channel.connection.send(view)
        del channel.out[:sent]
        channel.delivered += sent
        if channel.delivered >= WINDOW // 2:
            self._send(CREDIT, channel.number, NUMBER.pack(channel.delivered))
            channel.delivered = 0

    def _watch(self, channel: _Channel) -> None:
        """Ask the selector for what the connection can do next, and end it when that is nothing."""
        if channel.closed:
            return
        if channel.ended and not channel.out and not channel.shut:
            channel.shut = True
            if channel.deadline is not None:
                channel.deadline = time.monotonic() + _LINGER
            try:
                channel.connection.shutdown(socket.SHUT_WR)
            except OSError:
                self._close(channel)
                return
        if channel.shut and channel.read_all:
            self._close(channel)
            return
        lingers = channel.deadline is not None
        wanted = selectors.EVENT_READ if not channel.read_all and (channel.credit > 0 or lingers) else 0
        wanted |= selectors.EVENT_WRITE if channel.out else 0
        if wanted == channel.watched:
            return
        if not channel.watched:
            self._select.register(channel.connection, wanted, channel)
        elif not wanted:
            self._select.unregister(channel.connection)
        else:
            self._select.modify(channel.connection, wanted, channel)
        channel.watched = wanted

    def _close(self, channel: _Channel) -> None:
        """Let go of the connection; the number stays taken until the host has closed the channel too."""
        if channel.watched:
            self._select.unregister(channel.connection)
        channel.closed = True
        channel.connection.close()
        channel.out.clear()
        self._send(CLOSE, channel.number)
        if channel.number is None:
            self._refused.remove(channel)
        elif channel.deadline is not None:
            del self._channels[channel.number]

    def _expire(self) -> bool:
        """Close what lingers too long; whether anything lingers still."""
        lingering = [each for each in self._channels.values() if each.deadline is not None] + self._refused
        now = time.monotonic()
        for channel in lingering:
            if channel.deadline is not None and channel.deadline <= now:
                self._close(channel)
        return bool(lingering)


def main() -> int | str:
    """Serve on the port of the first argument; the exit status."""
    try:
        Relay(int(sys.argv[1])).run()
    except OSError as error:
        return str(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
