"""Server-sent events, decoded to the JSON objects they carry.

The Messages API says the type of an event twice: in the ``event:`` line and in the data. The data is what
counts here, so servers that leave the line out are understood too.
"""

from __future__ import annotations

import json
from typing import Any

from conjure_jupyter.errors import StreamInterruptedError

#: Most bytes of one line: far above any event of the API, and a bound on a server gone wrong.
MAX_LINE = 64 * 1024 * 1024


class EventDecoder:
    r"""Turns the bytes of a stream, cut anywhere, into events.

    Line ends may be ``\n``, ``\r\n`` or ``\r``. Comments, ``id`` and ``retry`` are passed over.
    """

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0
        self._held = b""
        self._data: list[bytes] = []
        self._name = b""
        self._first = True

    def feed(self, chunk: bytes) -> list[dict[str, Any]]:
        """The events that ``chunk`` completes, in order.

        Raises:
            StreamInterruptedError: an event's data is not a JSON object.
        """
        lines = self._unified(chunk).split(b"\n")
        if self._pieces and len(lines) > 1:
            lines[0] = b"".join((*self._pieces, lines[0]))
            self._pieces.clear()
            self._size = 0
        self._keep(lines.pop())
        events = []
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[5:])
            elif line.startswith(b"event:"):
                self._name = line[6:].strip()
            elif not line:
                if self._data and (event := self._dispatch()) is not None:
                    events.append(event)
                self._name = b""
        return events

    def finish(self) -> list[dict[str, Any]]:
        """The event that only lacked its blank line when the stream ended, if it is whole."""
        try:
            return self.feed(b"\n\n")
        except StreamInterruptedError:
            return []

    def _unified(self, chunk: bytes) -> bytes:
        """``chunk`` with plain line ends and without a byte order mark."""
        if self._first:
            self._first = False
            chunk = chunk.removeprefix(b"\xef\xbb\xbf")
        if not self._held and b"\r" not in chunk:
            return chunk
        chunk = self._held + chunk
        # The last byte may be the first half of a line end of two.
        self._held = b"\r" if chunk.endswith(b"\r") else b""
        return chunk.removesuffix(b"\r").replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _keep(self, piece: bytes) -> None:
        if not piece:
            return
        self._size += len(piece)
        if self._size > MAX_LINE:
            raise StreamInterruptedError(f"The service sent a line of more than {MAX_LINE} bytes")
        self._pieces.append(piece)

    def _dispatch(self) -> dict[str, Any] | None:
        data = b"\n".join(self._data) if len(self._data) > 1 else self._data[0]
        self._data.clear()
        if data.strip() in (b"", b"[DONE]"):
            return None
        try:
            event = json.loads(data)
        except ValueError:
            event = None
        if not isinstance(event, dict):
            raise StreamInterruptedError("The service sent an event that is not a JSON object")
        if "type" not in event:
            event["type"] = self._name.decode("utf-8", "replace")
        return event
