"""The messages between this process and the one that renders.

A message is 4 bytes with the length of its header, 8 bytes with the length of its body (both big-endian),
the header as JSON, the body as it is. To the child: the job, then an answer to each ``fetch``. From it:
``fetch`` (a URL), ``file`` (a result), and last ``done``, ``failed`` (with a reason for Claude) or
``broken`` (a fault of ours).
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from typing import Any

_HEAD = struct.Struct(">IQ")
#: Bytes of a header.
_HEADER_LIMIT = 4 * 1024 * 1024

Message = tuple[dict[str, Any], bytes]


class WireError(Exception):
    """What arrived is no message, or too long."""


def encode(header: dict[str, Any], body: bytes = b"") -> bytes:
    """A message as bytes."""
    text = json.dumps(header).encode()
    return _HEAD.pack(len(text), len(body)) + text + body


async def read(reader: asyncio.StreamReader, limit: int) -> Message:
    """The next message of the child, which is not trusted.

    Args:
        limit: bytes its body may have.

    Raises:
        WireError: it is none, or over the limit.
        asyncio.IncompleteReadError: the child ended.
    """
    sizes = _sizes(await reader.readexactly(_HEAD.size), limit)
    text, body = await reader.readexactly(sizes[0]), await reader.readexactly(sizes[1])
    return _header(text), body


class Connection:
    """The child's end: blocking, and one message at a time."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def fileno(self) -> int:
        """The descriptor; its other end is the parent's."""
        return self._connection.fileno()

    def send(self, header: dict[str, Any], body: bytes = b"") -> None:
        """Send a message."""
        self._connection.sendall(encode(header, body))

    def receive(self) -> Message:
        """Wait for a message; the process ends when the parent is gone."""
        sizes = _sizes(self._exactly(_HEAD.size), 1 << 40)
        return _header(self._exactly(sizes[0])), self._exactly(sizes[1])

    def _exactly(self, size: int) -> bytes:
        parts = []
        while size:
            part = self._connection.recv(min(size, 1 << 20))
            if not part:
                raise SystemExit(1)
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def _sizes(head: bytes, limit: int) -> tuple[int, int]:
    header, body = _HEAD.unpack(head)
    if header > _HEADER_LIMIT or body > limit:
        raise WireError(f"a message of {header} and {body} bytes")
    return header, body


def _header(text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except ValueError as error:
        raise WireError("a header that is no JSON") from error
    if not isinstance(header, dict):
        raise WireError("a header that is no object")
    return header
