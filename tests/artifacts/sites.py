"""Web servers of the tests' own: they count connections, keep requests, and answer as they are told."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

Answer = bytes | Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True)
class Request:
    """What a client sent; header names in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]


def reply(
    body: bytes = b"", status: int = 200, headers: Mapping[str, str] | None = None, *, length: int | None = -1
) -> bytes:
    """An answer; ``length`` is the Content-Length: -1 the true one, None no header."""
    lines = [f"HTTP/1.1 {status} Any"]
    if length is not None:
        lines.append(f"Content-Length: {len(body) if length == -1 else length}")
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def redirect(location: str, status: int = 302) -> bytes:
    return reply(b"see there", status, {"Location": location})


def redirecting(request: Request) -> bytes:
    """Answers ``/to?URL=…`` with a redirect there, and all else with a text."""
    parts = urlsplit(request.target)
    if parts.path == "/to":
        return redirect(parse_qs(parts.query)["url"][0])
    return reply(b"public", headers={"Content-Type": "text/plain"})


@dataclass
class Site:
    """A server at one address.

    Attributes:
        answer: what a request gets.
        connections: local address of each connection that was made.
        requests: what came over them.
    """

    answer: Callable[[Request], Answer] = redirecting
    connections: list[tuple[str, int]] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    port: int = 0
    _busy: set[asyncio.Task[None]] = field(default_factory=set)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    @contextlib.asynccontextmanager
    async def serving(
        self, address: str, port: int = 0, *, context: ssl.SSLContext | None = None
    ) -> AsyncIterator[Site]:
        server = await asyncio.start_server(self._handle, address, port, ssl=context)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for task in self._busy:
                task.cancel()
            await asyncio.gather(*self._busy, return_exceptions=True)
            await server.wait_closed()

    async def until(self, *, connections: int = 0, requests: int = 0) -> None:
        """Wait until that many connections were made and requests sent."""
        while len(self.connections) < connections or len(self.requests) < requests:
            self._news.clear()
            await self._news.wait()

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._busy.add(task)
        try:
            await self._speak(reader, writer)
        except asyncio.CancelledError:
            pass  # the site closes while it answers
        finally:
            self._busy.discard(task)
            writer.close()
            with contextlib.suppress(OSError, ssl.SSLError):
                await writer.wait_closed()

    async def _speak(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections.append(writer.get_extra_info("sockname")[:2])
        self._news.set()
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, ssl.SSLError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            method, target, _ = head[0].split(" ", 2)
            headers = {
                name.lower(): value.strip()
                for name, _, value in (line.partition(":") for line in head[1:] if line)
            }
            request = Request(method, target, headers)
            self.requests.append(request)
            self._news.set()
            answer = self.answer(request)
            if isinstance(answer, bytes):
                writer.write(answer)
                await writer.drain()
            else:
                await answer(writer)
