"""A small internet behind the proxy, and a place with a relay in it.

Names resolve to addresses that are public by their numbers, so that the guard has something to check; what is
connected to at them is a server of the tests on this machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import trustme

from conjure_jupyter.executors.docker.limited import LimitedNetwork
from conjure_jupyter.executors.docker.link import LinkLostError, Source, Stream
from tests.artifacts.sites import Site

PUBLIC = "93.184.216.34"
OTHER = "151.101.1.69"
#: The site that is allowed, one that is not, and one that only its domain allows.
NAME, FORBIDDEN, BELOW = "files.example.test", "evil.example.test", "a.b.cdn.test"
HOSTS = (NAME, "*.cdn.test")


class Piped(Stream):
    """A process of this machine, as a stream."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._in, self._out, self._error = process.stdin, process.stdout, process.stderr

    async def read(self) -> tuple[Source, bytes] | None:
        if data := await self._out.read(1024 * 1024):
            return "stdout", data
        if data := await self._error.read(1024):
            return "stderr", data
        await self.process.wait()
        return None

    async def write(self, data: bytes) -> None:
        try:
            self._in.write(data)
            await self._in.drain()
        except OSError as error:
            raise LinkLostError("gone") from error

    def close(self) -> None:
        self._in.close()


@dataclass
class Beside:
    """What a container is to the network, without one: the relay is a process of this machine."""

    argv: Sequence[str] = ()
    streams: list[Piped] = field(default_factory=list)

    async def attach(self, argv: Sequence[str]) -> Stream:
        pipe = asyncio.subprocess.PIPE
        argv = self.argv or [sys.executable, *argv[1:]]
        process = await asyncio.create_subprocess_exec(*argv, stdin=pipe, stdout=pipe, stderr=pipe)
        self.streams.append(Piped(process))
        return self.streams[-1]

    async def ended(self) -> None:
        for stream in self.streams:
            stream.close()
            await stream.process.wait()


@dataclass
class World:
    """Names, what they stand for, and the servers at two ports.

    Attributes:
        names: the addresses of a name at its first look-up, its second …; the last ones stay.
        ports: which port of this machine a port of the world is.
        looked_up: names in the order of their look-ups.
        connected: addresses and ports that were connected to.
        told: what the user hears.
        down: addresses that take no connection.
    """

    names: dict[str, list[list[str]]] = field(default_factory=dict)
    ports: dict[int, int] = field(default_factory=dict)
    looked_up: list[str] = field(default_factory=list)
    connected: list[tuple[str, int]] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    down: set[str] = field(default_factory=set)
    plain: Site = field(default_factory=Site)
    secure: Site = field(default_factory=Site)
    trust: bytes = b""

    async def resolve(self, name: str, port: int) -> list[str]:
        self.looked_up.append(name)
        if name not in self.names:
            raise OSError("unknown")
        turns = self.names[name]
        return turns.pop(0) if len(turns) > 1 else turns[0]

    async def connect(self, address: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        self.connected.append((address, port))
        if address in self.down:
            raise ConnectionRefusedError
        return await asyncio.open_connection("127.0.0.1", self.ports[port], limit=64 * 1024)

    def network(self, hosts: Sequence[str] = HOSTS, **options: Any) -> LimitedNetwork:
        options = {"on_refused": self.told.append, **options}
        return LimitedNetwork(hosts, resolve=self.resolve, connect=self.connect, **options)

    def client(self) -> ssl.SSLContext:
        return ssl.create_default_context(cadata=self.trust.decode())


@contextlib.asynccontextmanager
async def world() -> AsyncIterator[World]:
    """Start the servers."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(NAME, FORBIDDEN, BELOW).configure_cert(context)
    found = World(trust=authority.cert_pem.bytes())
    found.names |= {NAME: [[PUBLIC]], FORBIDDEN: [[PUBLIC]], BELOW: [[PUBLIC]]}
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(found.plain.serving("127.0.0.1"))
        await stack.enter_async_context(found.secure.serving("127.0.0.1", context=context))
        found.ports |= {80: found.plain.port, 443: found.secure.port}
        yield found


@contextlib.asynccontextmanager
async def proxied(
    place: World, hosts: Sequence[str] = HOSTS, **options: Any
) -> AsyncIterator[tuple[int, Mapping[str, str]]]:
    """A network with a relay beside it; its port, and the variables."""
    beside = Beside()
    network = place.network(hosts, **options)
    try:
        variables = await network.start(beside)
        yield int(variables["HTTP_PROXY"].rpartition(":")[2]), variables
    finally:
        await network.close()
        await beside.ended()


async def ask(port: int, request: bytes, *, end: bool = False) -> bytes:
    """Send bytes to the proxy, and ``end`` afterwards; all that comes back."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        await writer.drain()
        if end:
            writer.write_eof()
        return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


def get(url: str, host: str | None = None, *more: str) -> bytes:
    host = url.split("/")[2] if host is None else host
    return "\r\n".join([f"GET {url} HTTP/1.1", f"Host: {host}", *more, "", ""]).encode()


def connect(target: str) -> bytes:
    return f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode()


async def secured(
    port: int, context: ssl.SSLContext, target: str, name: str | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """TLS through a tunnel, asking for a name of one's choice.

    Raises:
        ConnectionRefusedError: the proxy gave no tunnel; says how.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(connect(target))
    head = await reader.readuntil(b"\r\n\r\n")
    if b" 200 " not in head.splitlines()[0]:
        writer.close()
        raise ConnectionRefusedError(head.decode())
    try:
        await writer.start_tls(context, server_hostname=name)
    except BaseException:
        writer.close()
        raise
    return reader, writer
