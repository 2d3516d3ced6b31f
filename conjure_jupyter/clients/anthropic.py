"""Claude, through Anthropic's SDK or a client object of the user's."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, ClassVar, NoReturn

from conjure_jupyter.errors import (
    APIError,
    InvalidRequestError,
    MissingCredentialError,
    StreamInterruptedError,
)
from conjure_jupyter.settings import Settings

from .base import Client, Request, StreamEvent
from .credentials import ADVICE, check_base_url, has_credential, own_base_url
from .options import request_fields, with_block_caching
from .translate import from_event, translate
from .transports import (
    BlockingCreateTransport,
    BlockingPostTransport,
    Call,
    CreateTransport,
    PostTransport,
    Transport,
)

#: Shorter values are placeholders, and cutting them out would spoil ordinary words.
MIN_SECRET = 8

#: Seconds to wait for a connection.
CONNECT_TIMEOUT = 5.0


class AnthropicClient(Client):
    """Asks Claude.

    Args:
        client: an object of Anthropic's SDK (``Anthropic``, ``AnthropicBedrock``, ``AnthropicVertex``,
            ``AnthropicFoundry``…, blocking or asynchronous), or one that looks like it; None makes an
            ``AsyncAnthropic`` at the first request, with the credential the SDK finds then.
        settings: model options, caching and time limits; the environment's when None.

    Raises:
        SettingsError: the base URL ends in ``/v1``.
    """

    name: ClassVar[str] = "anthropic"
    live: ClassVar[bool] = True

    def __init__(self, client: Any = None, *, settings: Settings | None = None) -> None:
        self._given = client
        self._settings = settings or Settings.from_env()
        self._transport: Transport | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._making = asyncio.Lock()
        if _plain(client):
            check_base_url(str(client.base_url))
        elif client is None:
            own_base_url()

    async def stream(self, request: Request) -> AsyncIterator[StreamEvent]:
        """Send one request and yield the answer's raw events.

        Raises:
            MissingCredentialError: before anything is sent, with what to set.
            StreamInterruptedError: the answer ended without ``message_stop``.
            APIError: anything else the service or the network did.
        """
        transport = await self._ready()
        body = self._body(request)
        call = Call()
        whole = False
        try:
            async with contextlib.aclosing(_batches(transport, body, call)) as batches:
                async for events in batches:
                    for event in events:
                        kind = event.get("type")
                        if kind == "ping":
                            continue
                        if kind == "error":
                            _fail(event, call, transport)
                        yield event
                        if kind == "message_stop":
                            whole = True
        except Exception as error:
            ours = self._translated(error)
            if ours is error:
                raise
            if whole:
                return
            # The original's text may repeat what the service said; its traceback adds nothing for the user.
            raise ours from None
        if not whole:
            raise StreamInterruptedError(
                "The answer broke off: the service closed the stream early", request_id=call.request_id
            )

    async def count_tokens(self, request: Request) -> int | None:
        """Ask the service for the input tokens of a request; None where it has no such endpoint.

        Raises:
            APIError: the service refused the request, or cannot be reached.
        """
        transport = await self._ready()
        try:
            return await transport.count(self._body(request))
        except Exception as error:
            ours = self._translated(error)
            if _cannot_count(ours):
                return None
            if ours is error:
                raise
            raise ours from None

    async def close(self) -> None:
        """Close the connections this object opened; a client object of the user's stays open."""
        transport, self._transport = self._transport, None
        if transport is None or transport.client is self._given:
            return
        if self._loop is asyncio.get_running_loop() and _owns_connections(self._given, transport.client):
            await transport.client.close()

    def _body(self, request: Request) -> dict[str, Any]:
        body = {**request_fields(self._settings, request.max_tokens), **request.body()}
        for name, value in request.extra.items():
            if value is None:
                body.pop(name, None)
        return with_block_caching(body) if _caches_by_block(self._given) else body

    def _translated(self, error: Exception) -> Exception:
        if isinstance(error, APIError):
            return error
        secrets = _secrets(self._transport.client) if self._transport else ()
        return translate(error, secrets=secrets) or error

    async def _ready(self) -> Transport:
        """The transport for the running loop, made at first use.

        Raises:
            MissingCredentialError: the SDK would find no credential.
        """
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            # Another loop than before, as after a fork: its connections cannot be used here.
            self._loop, self._making, self._transport = loop, asyncio.Lock(), None
        if self._transport is None:
            async with self._making:
                if self._transport is None:
                    self._transport = await self._made()
        return self._transport

    async def _made(self) -> Transport:
        if self._given is None and not has_credential() and own_base_url() is None:
            raise MissingCredentialError(f"No credential for Claude: {ADVICE}")
        try:
            # Importing the SDK takes about a second, which the loop must not lose.
            return await asyncio.to_thread(self._make)
        except Exception as error:
            ours = translate(error)
            if ours is None:
                raise
            raise ours from None

    def _make(self) -> Transport:
        if self._given is None:
            return PostTransport(self._new())
        given = self._given
        blocking = not _asynchronous(given)
        if hasattr(given, "with_options"):
            # Retries are the loop's: the user sees them. The copy shares credentials and connections.
            given = given.with_options(max_retries=0, **_own_connections(given))
        if _plain(given) and not given.middleware:
            return BlockingPostTransport(given) if blocking else PostTransport(given)
        return BlockingCreateTransport(given) if blocking else CreateTransport(given)

    def _new(self) -> Any:
        import anthropic
        import httpx2

        options: dict[str, Any] = {
            "max_retries": 0,
            "timeout": httpx2.Timeout(self._settings.api_timeout, connect=CONNECT_TIMEOUT),
        }
        if not has_credential():
            # A compatible server without a credential: tell the SDK that none is meant to be sent.
            options["default_headers"] = {"Authorization": anthropic.omit}
        return anthropic.AsyncAnthropic(**options)


async def _batches(
    transport: Transport, body: dict[str, Any], call: Call
) -> AsyncGenerator[list[StreamEvent], None]:
    """The transport's batches; a token that the service no longer takes is renewed once."""
    try:
        async with contextlib.aclosing(transport.batches(body, call)) as batches:
            async for events in batches:
                yield events
    except Exception as error:
        if not _renewable(error, transport.client):
            raise
    else:
        return
    # One retry of the SDK's own is what makes it fetch a new token.
    renewing = type(transport)(transport.client.with_options(max_retries=1))
    async with contextlib.aclosing(renewing.batches(body, call)) as batches:
        async for events in batches:
            yield events


def _renewable(error: Exception, client: Any) -> bool:
    """Whether the service refused a token that the SDK fetched, and can fetch anew."""
    return getattr(error, "status_code", None) == 401 and getattr(client, "credentials", None) is not None


def _fail(event: StreamEvent, call: Call, transport: Transport) -> NoReturn:
    raise from_event(event, request_id=call.request_id, secrets=_secrets(transport.client))


def warm_up() -> None:
    """Import the SDK in the background, so that the first request does not wait for it."""
    if "anthropic" not in sys.modules:
        threading.Thread(target=__import__, args=("anthropic",), name="conjure-warm-up", daemon=True).start()


def is_sdk_client(value: object) -> bool:
    """Whether ``value`` is a client object of Anthropic's SDK, or looks like one."""
    return callable(getattr(getattr(value, "messages", None), "create", None))


def _plain(client: Any) -> bool:
    """Whether it is ``Anthropic`` or ``AsyncAnthropic`` itself: a subclass builds requests its own way."""
    cls = type(client)
    return _of_sdk(cls) and cls.__name__ in ("Anthropic", "AsyncAnthropic")


def _of_sdk(cls: type) -> bool:
    return cls.__module__.partition(".")[0] == "anthropic"


def _asynchronous(client: Any) -> bool:
    import inspect

    named = any(cls.__name__.startswith("Async") for cls in type(client).__mro__)
    return named or inspect.iscoroutinefunction(client.messages.create)


def _own_connections(client: Any) -> dict[str, Any]:
    """A pool of connections for the engine's loop, where the client has the SDK's default one.

    Connections that the user's loop opened cannot be used from another. A pool that the user configured is
    left as it is: its proxies and certificates matter more.
    """
    import anthropic

    pool = getattr(client, "_client", None)
    if not (_plain(client) and type(pool).__name__ == "AsyncHttpxClientWrapper"):
        return {}
    return {
        "http_client": anthropic.DefaultAsyncHttpxClient(base_url=client.base_url, timeout=client.timeout)
    }


def _owns_connections(given: Any, used: Any) -> bool:
    return given is None or getattr(given, "_client", None) is not getattr(used, "_client", None)


def _caches_by_block(client: Any) -> bool:
    """Bedrock and Vertex know ``cache_control`` on blocks only."""
    return any(word in type(client).__name__ for word in ("Bedrock", "Vertex"))


def _secrets(client: Any) -> tuple[str, ...]:
    values = (getattr(client, name, None) for name in ("api_key", "auth_token"))
    return tuple(value for value in values if isinstance(value, str) and len(value) >= MIN_SECRET)


def _cannot_count(error: Exception) -> bool:
    """Whether the error says that the service or the client object has no token count."""
    if isinstance(error, AttributeError):
        return True
    if type(error) is APIError:
        return True
    return (
        isinstance(error, InvalidRequestError)
        and error.status in (404, 405, 501)
        and "model" not in (error.message.lower())
    )
