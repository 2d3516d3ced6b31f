"""Four ways to send a request through an SDK client object.

The plain clients of Anthropic's own API take a ready JSON body through the SDK's request machinery
(credentials, headers, proxies, error classes) and their answers are decoded here: the SDK's typed parameters
and models are what makes a long history slow. All other client objects (Bedrock, Vertex, Foundry, clients
with middleware, look-alikes) are asked through ``messages.create(stream=True)``. Each way has a blocking twin
that runs in a thread.

A transport yields lists of events, as many as came at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from typing import Any

from .base import StreamEvent
from .encoding import BodyEncoder, encode
from .sse import EventDecoder
from .threads import iterate

PATH = "/v1/messages"
COUNT_PATH = "/v1/messages/count_tokens"

#: Seconds to wait for the end of a stream after its last event, so that its connection can be used again.
DRAIN = 1.0

#: Fields of a request that the token count does not take.
_NOT_COUNTED = ("max_tokens", "stream", "metadata", "stop_sequences", "container", "service_tier")


class Call:
    """One request on its way.

    Attributes:
        request_id: the service's identifier of it, once its answer began.
        response: the HTTP response, once it began; None for clients that do not show it.
    """

    __slots__ = ("request_id", "response")

    def __init__(self) -> None:
        self.request_id: str | None = None
        self.response: Any = None

    def opened(self, response: Any) -> None:
        """Take note of the answer's head."""
        self.response = response
        headers = getattr(response, "headers", None)
        self.request_id = headers.get("request-id") if headers is not None else None

    def hang_up(self) -> None:
        """Wake the thread that reads the answer; closing its file from here would not."""
        stream = getattr(self.response, "extensions", {}).get("network_stream")
        connection = stream.get_extra_info("socket") if stream is not None else None
        if connection is not None:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class Transport(ABC):
    """Sends requests through one client object."""

    def __init__(self, client: Any) -> None:
        self.client = client

    @abstractmethod
    def batches(self, body: dict[str, Any], call: Call) -> AsyncGenerator[list[StreamEvent], None]:
        """Send ``body`` as a streaming request and yield its events as they come."""

    @abstractmethod
    async def count(self, body: dict[str, Any]) -> int:
        """Ask for the input tokens of ``body``."""


def _counted(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name not in _NOT_COUNTED}


class PostTransport(Transport):
    """A ready body through ``AsyncAnthropic``."""

    def __init__(self, client: Any) -> None:
        super().__init__(client)
        self._encoder = BodyEncoder()

    async def batches(self, body: dict[str, Any], call: Call) -> AsyncGenerator[list[StreamEvent], None]:
        """Send ``body`` and decode the answer's bytes."""
        response = await self._post(PATH, self._encoder.encode({**body, "stream": True}), stream=True)
        call.opened(response)
        decoder = EventDecoder()
        chunks = response.aiter_bytes()
        try:
            async for chunk in chunks:
                events = decoder.feed(chunk)
                if events:
                    yield events
                    if events[-1].get("type") == "message_stop":
                        await _drain(chunks)
                        return
            if events := decoder.finish():
                yield events
        finally:
            await response.aclose()

    async def count(self, body: dict[str, Any]) -> int:
        """Ask the service."""
        response = await self._post(COUNT_PATH, self._encoder.encode(_counted(body)), stream=False)
        return int(response.json()["input_tokens"])

    async def _post(self, path: str, content: bytes, *, stream: bool) -> Any:
        import httpx2

        return await self.client.post(path, cast_to=httpx2.Response, content=content, stream=stream)


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """Read to the end of an answer that is whole; what goes wrong here no longer matters."""
    with contextlib.suppress(Exception):
        async with asyncio.timeout(DRAIN):
            async for _ in chunks:
                pass


class BlockingPostTransport(Transport):
    """A ready body through ``Anthropic``, in a thread."""

    def __init__(self, client: Any) -> None:
        super().__init__(client)
        self._encoder = BodyEncoder()

    def batches(self, body: dict[str, Any], call: Call) -> AsyncGenerator[list[StreamEvent], None]:
        """Send ``body`` and decode the answer's bytes."""
        content = self._encoder.encode({**body, "stream": True})
        return iterate(lambda stopped: self._read(content, call, stopped), call.hang_up)

    def _read(self, content: bytes, call: Call, stopped: threading.Event) -> Iterator[list[StreamEvent]]:
        import httpx2

        response = self.client.post(PATH, cast_to=httpx2.Response, content=content, stream=True)
        call.opened(response)
        decoder = EventDecoder()
        try:
            for chunk in response.iter_bytes():
                if stopped.is_set():
                    return
                if events := decoder.feed(chunk):
                    yield events
            if events := decoder.finish():
                yield events
        finally:
            response.close()

    async def count(self, body: dict[str, Any]) -> int:
        """Ask the service."""
        import httpx2

        content = encode(_counted(body))
        response = await asyncio.to_thread(
            self.client.post, COUNT_PATH, cast_to=httpx2.Response, content=content
        )
        return int(response.json()["input_tokens"])


class CreateTransport(Transport):
    """``messages.create`` of any asynchronous client."""

    async def batches(self, body: dict[str, Any], call: Call) -> AsyncGenerator[list[StreamEvent], None]:
        """Send ``body`` and turn the SDK's events back into dicts."""
        create = self.client.messages.create
        stream = await create(**_arguments(create, body), stream=True)
        call.opened(getattr(stream, "response", None))
        try:
            async for event in stream:
                yield [_as_dict(event)]
        finally:
            if (close := getattr(stream, "close", None)) is not None:
                await close()

    async def count(self, body: dict[str, Any]) -> int:
        """Ask the client object."""
        count = self.client.messages.count_tokens
        answer = await count(**_arguments(count, _counted(body)))
        return int(answer.input_tokens)


class BlockingCreateTransport(Transport):
    """``messages.create`` of any blocking client, in a thread."""

    def batches(self, body: dict[str, Any], call: Call) -> AsyncGenerator[list[StreamEvent], None]:
        """Send ``body`` and turn the SDK's events back into dicts."""
        return iterate(lambda stopped: self._read(body, call, stopped), call.hang_up)

    def _read(
        self, body: dict[str, Any], call: Call, stopped: threading.Event
    ) -> Iterator[list[StreamEvent]]:
        create = self.client.messages.create
        stream = create(**_arguments(create, body), stream=True)
        response = getattr(stream, "response", None)
        call.opened(response)
        try:
            for event in stream:
                if stopped.is_set():
                    return
                yield [_as_dict(event)]
        finally:
            if (close := getattr(stream, "close", None)) is not None:
                close()

    async def count(self, body: dict[str, Any]) -> int:
        """Ask the client object."""
        count = self.client.messages.count_tokens
        answer = await asyncio.to_thread(lambda: count(**_arguments(count, _counted(body))))
        return int(answer.input_tokens)


def _arguments(method: Any, body: dict[str, Any]) -> dict[str, Any]:
    """``body`` as keyword arguments; fields the method does not know go as ``extra_body``."""
    try:
        parameters = inspect.signature(method).parameters
    except (TypeError, ValueError):
        return body
    if "extra_body" not in parameters:
        return body
    known = {name: value for name, value in body.items() if name in parameters}
    rest = {name: value for name, value in body.items() if name not in parameters}
    return {**known, "extra_body": rest} if rest else known


def _as_dict(event: Any) -> StreamEvent:
    """An SDK event with what the server sent, unknown fields included, and nothing the server left out."""
    if isinstance(event, dict):
        return event
    if hasattr(event, "to_dict"):
        # A block of a kind or with a name that the SDK does not know yet is no reason to warn the user.
        converted: StreamEvent = event.to_dict(warnings=False)
        return converted
    if hasattr(event, "model_dump"):
        dumped: StreamEvent = event.model_dump(exclude_unset=True)
        return dumped
    parsed: StreamEvent = json.loads(json.dumps(event, default=vars))
    return parsed
