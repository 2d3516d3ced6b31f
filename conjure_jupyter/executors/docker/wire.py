"""A connection to the engine that, after one request, is the input and output of a process.

The SDK could make the request, but it reads ahead into a buffer that it then throws away, with the first
output of the process in it, and what it hands out is for one thread that waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import socket
import weakref
from collections.abc import Mapping
from typing import Any

from .addresses import Address
from .translation import refused, translated

#: Seconds a connection may take to be made, and a request to be answered.
CONNECT_LIMIT = 5.0
ANSWER_LIMIT = 60.0
#: Bytes that wait for a slow reader before the engine is made to wait; asyncio keeps at most twice as many.
AHEAD = 256 * 1024

_SWITCHED = (101, 200)


class Wire:
    """Both directions of one connection.

    Attributes:
        reader: what the engine sends; not more than twice ``AHEAD`` of it waits here.
        writer: what it gets.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        _all.add(self)

    def half_close(self) -> bool:
        """Say that no more will be sent; False where that takes closing everything, as with TLS."""
        if not self.writer.can_write_eof():
            return False
        with contextlib.suppress(OSError, RuntimeError):
            self.writer.write_eof()
        return True

    def close(self) -> None:
        """End both directions at once, with what was not sent yet. Never raises."""
        with contextlib.suppress(RuntimeError):  # the loop is closed, and took the connection with it
            self.writer.transport.abort()

    def forget(self) -> None:
        """In a fork: let go of our copy without a word to the other side or to the loop."""
        connection = self.writer.get_extra_info("socket")
        if connection is None or connection.fileno() < 0:
            return
        # The number stays taken: the transport still believes that it is the connection, and closes it.
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, connection.fileno(), inheritable=False)
        os.close(nothing)


async def upgrade(address: Address, path: str, body: Mapping[str, Any] | None = None) -> Wire:
    """Ask the engine for something that answers with a stream.

    Args:
        address: ``unix`` or ``tcp``.
        path: with the version of the interface.

    Raises:
        DockerUnavailableError: the engine does not answer.
        ContainerError: it refuses.
    """
    with translated(address):
        async with asyncio.timeout(CONNECT_LIMIT):
            wire = await _dial(address)
        try:
            async with asyncio.timeout(ANSWER_LIMIT):
                status, message = await _request(
                    wire, path, b"" if body is None else json.dumps(body).encode()
                )
        except asyncio.IncompleteReadError as error:
            wire.close()
            raise ConnectionResetError("it closed the connection instead of answering") from error
        except BaseException:
            wire.close()
            raise
    if status in _SWITCHED:
        return wire
    wire.close()
    raise refused(message, address, status)


async def _dial(address: Address) -> Wire:
    if address.scheme == "unix":
        return Wire(*await asyncio.open_unix_connection(address.path, limit=AHEAD))
    context = None if address.tls is None else await asyncio.to_thread(address.tls.context)
    wire = Wire(
        *await asyncio.open_connection(
            address.host,
            address.port,
            limit=AHEAD,
            ssl=context,
            server_hostname=None if context is None else address.host,
        )
    )
    connection = wire.writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return wire


async def _request(wire: Wire, path: str, body: bytes) -> tuple[int, str]:
    lines = [
        f"POST {path} HTTP/1.1",
        "Host: docker",
        "Connection: Upgrade",
        "Upgrade: tcp",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    ]
    wire.writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
    await wire.writer.drain()
    try:
        head = (await wire.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.LimitOverrunError as error:
        raise ConnectionError("its answer is no HTTP") from error
    found = re.match(r"HTTP/1\.[01] ([0-9]{3})", head)
    if found is None:
        raise ConnectionError("its answer is no HTTP")
    status = int(found.group(1))
    return status, "" if status in _SWITCHED else await _message(wire.reader, head)


async def _message(reader: asyncio.StreamReader, head: str) -> str:
    """What an answer that is no stream says."""
    length = re.search(r"^content-length: *([0-9]+)", head, re.IGNORECASE | re.MULTILINE)
    if length is None:
        text = await reader.read(AHEAD)
    else:
        text = await reader.readexactly(min(int(length.group(1)), AHEAD))
    decoded = text.decode(errors="replace").strip()
    with contextlib.suppress(ValueError, TypeError, KeyError):
        return str(json.loads(decoded)["message"])
    return decoded or head.partition("\r\n")[0]


_all: weakref.WeakSet[Wire] = weakref.WeakSet()


def _forget_all() -> None:
    """After a fork: our copies in the child would keep a container alive when this process dies."""
    for wire in list(_all):
        wire.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
