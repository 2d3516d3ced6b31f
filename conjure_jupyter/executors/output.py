"""What is kept of a command's output: its head and its tail, however much it prints."""

from __future__ import annotations

from collections import deque


class Output:
    """Collects bytes in bounded memory.

    Args:
        limit: bytes to keep; half of them from the start, half from the end.
    """

    def __init__(self, limit: int) -> None:
        self._head_limit = limit - limit // 2
        self._tail_limit = limit // 2
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.total = 0

    def add(self, data: bytes) -> None:
        """More output."""
        self.total += len(data)
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if not data:
            return
        if len(data) > self._tail_limit:
            data = data[len(data) - self._tail_limit :]
        self._tail.append(data)
        self._tail_size += len(data)
        while self._tail and self._tail_size - len(self._tail[0]) >= self._tail_limit:
            self._tail_size -= len(self._tail.popleft())

    def finish(self) -> tuple[bytes, int]:
        """The kept output, a line in its middle naming what was cut, and how many bytes were."""
        tail = b"".join(self._tail)
        tail = tail[max(0, len(tail) - self._tail_limit) :]
        head = bytes(self._head)
        if self.total == len(head) + len(tail):
            return head + tail, 0
        head, tail = _whole_end(head), _whole_start(tail)
        cut = self.total - len(head) - len(tail)
        before = b"" if head.endswith(b"\n") or not head else b"\n"
        return head + before + b"[... %d bytes cut ...]\n" % cut + tail, cut


def _whole_end(data: bytes) -> bytes:
    """Without the first bytes of a character whose rest was cut."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 != 0x80:
            length = 1 if byte < 0xC0 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[:-back] if length > back else data
    return data


def _whole_start(data: bytes) -> bytes:
    """Without the last bytes of a character whose start was cut."""
    start = 0
    while start < min(3, len(data)) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:]
