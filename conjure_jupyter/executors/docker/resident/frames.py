"""How the two sides speak: frames of a JSON header and bytes.

A frame is two lengths of 4 bytes, big-endian, of the header and of the data; then both. Each side's frames
are numbered by the call they belong to. A call's data is as many frames as it needs, so that the frames of
others come in between.

To the resident: ``{"id", "op", …}`` opens a call; ``more`` is true in each frame after which its data goes
on. ``{"op": "cancel", "id"}`` ends one, ``{"op": "ping"}`` asks for ``{"pong": true}``. Back: ``{"id", "out":
true}`` carries output as it is written, ``{"id", "data": true}`` a piece of the answer, ``{"id", "done":
{…}}`` or ``{"id", "fail": KIND, "words"}`` is the last.

Runs on both sides: standard library only.
"""

from __future__ import annotations

import json
import struct
from typing import Any

#: Bytes of data in one frame: small enough that others need not wait for it.
CHUNK = 1 << 18
#: Most bytes of a header, and of a whole frame, that are taken.
MAX_HEADER, MAX_FRAME = 1 << 20, 1 << 21
#: Seconds between two signs of life from the host, and of silence after which the resident ends itself.
PING, SILENCE = 4.0, 30.0

_LENGTHS = struct.Struct(">II")

#: Header and data.
Frame = tuple[dict[str, Any], bytes]


class FrameError(Exception):
    """What came is no frame."""


def encode(header: dict[str, Any], data: bytes | memoryview = b"") -> bytes:
    """A frame as it is sent.

    Raises:
        FrameError: the other side would not take it.
    """
    head = json.dumps(header, separators=(",", ":")).encode("ascii")
    if len(head) > MAX_HEADER or len(head) + len(data) > MAX_FRAME:
        raise FrameError("it is too large")
    return b"".join((_LENGTHS.pack(len(head), len(data)), head, data))


class Frames:
    """Takes bytes as they come and gives the frames in them.

    Args:
        max_header: most bytes of a header that is taken.
    """

    def __init__(self, max_header: int = MAX_HEADER) -> None:
        self._max_header = max_header
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that are whole now.

        Raises:
            FrameError: it is none; nothing that follows can be read.
        """
        self._buffer += data
        found: list[Frame] = []
        start = 0
        try:
            while len(self._buffer) - start >= _LENGTHS.size:
                head, size = _LENGTHS.unpack_from(self._buffer, start)
                if head > self._max_header or head + size > MAX_FRAME:
                    raise FrameError("it is too large")
                middle = start + _LENGTHS.size + head
                end = middle + size
                if len(self._buffer) < end:
                    break
                header = _header(self._buffer[end - size - head : middle])
                found.append((header, bytes(memoryview(self._buffer)[middle:end])))
                start = end
        finally:
            del self._buffer[:start]
        return found


def _header(text: bytearray) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FrameError("its header is no JSON") from error
    if not isinstance(header, dict):
        raise FrameError("its header is no object")
    return header
