"""The head of a proxy request: read, bounded, and what it asks for."""

from __future__ import annotations

import re

import h11

from ....artifacts.fetch.hosts import Host
from ....artifacts.fetch.policy import FetchPolicy
from ....artifacts.fetch.urls import URL, parse_authority, parse_url
from .channels import Channel
from .guard import RefusedError

#: Most bytes of the head of a request or an answer.
MAX_HEAD = 64 * 1024
_PIECE = 8 * 1024

#: What belongs to one connection and is not passed on (RFC 9110, section 7.6.1), framing included.
HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"content-length",
        b"expect",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authentication-info",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)

_HTTP = FetchPolicy(schemes=frozenset({"http"}))
#: A host that ends in a dot is the same name, spelled as DNS has it.
_DOT = re.compile(r"((?:[A-Za-z]+://)?[^/?#:@\[\]\\]*[^/?#:@\[\]\\.])\.(?=[:/?#]|\Z)")


def connection() -> h11.Connection:
    """A reader of one request."""
    return h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)


async def read_request(channel: Channel, conn: h11.Connection) -> h11.Request | None:
    """The head of the request on a channel; None when there is none before its end.

    Raises:
        RefusedError: what comes is no HTTP, or its head is too large.
        ChannelClosedError: the program went away.
    """
    data = b""
    try:
        while (event := conn.next_event()) is h11.NEED_DATA:
            # In small pieces, as the size is looked at between two of them.
            data = data or await channel.read()
            conn.receive_data(data[:_PIECE])
            data = data[_PIECE:]
        if data:
            conn.receive_data(data)
    except h11.RemoteProtocolError as error:
        raise RefusedError(error.error_status_hint, "that is no request a proxy understands") from None
    return event if isinstance(event, h11.Request) else None


def tunnel_target(request: h11.Request) -> tuple[Host, int]:
    """Host and port of a ``CONNECT``.

    Raises:
        RefusedError: it names none, or carries content.
    """
    if framing(request):
        raise RefusedError(400, "CONNECT has no content")
    try:
        host, port = parse_authority(_without_dot(request.target.decode("ascii")))
    except ValueError as error:
        raise RefusedError(400, f"the target of CONNECT cannot be used: {error}") from None
    if port is None:
        raise RefusedError(400, "CONNECT needs a host and a port")
    return host, port


def http_target(request: h11.Request) -> URL:
    """The URL of any other request; its host and that of the ``Host`` header are the same.

    Raises:
        RefusedError: it is no absolute http URL, or the header is for another host.
    """
    target = request.target.decode("ascii")
    if target.startswith("/") or target == "*":
        raise RefusedError(400, "this is a proxy; ask it for http://HOST/PATH, or by CONNECT")
    if target.lower().startswith("https:"):
        raise RefusedError(400, "https goes through CONNECT")
    try:
        url = parse_url(_without_dot(target), _HTTP)
        for name, value in request.headers:
            if name == b"host":
                host, port = parse_authority(_without_dot(value.decode("latin-1")))
                if (host, port or 80) != (url.host, url.port):
                    raise RefusedError(403, f"a request for the host {url.host.name} has the Host of another")
    except ValueError as error:
        raise RefusedError(400, f"the URL cannot be used: {error}") from None
    return url


def framing(message: h11.Request | h11.Response) -> list[tuple[bytes, bytes]]:
    """The one header by which the content of a message ends, if any."""
    headers = dict(message.headers)
    if b"transfer-encoding" in headers:
        return [(b"Transfer-Encoding", b"chunked")]
    if b"content-length" in headers:
        return [(b"Content-Length", headers[b"content-length"])]
    return []


def end_to_end(message: h11.Request | h11.Response) -> list[tuple[bytes, bytes]]:
    """The headers that are passed on, without any that frames the content or names the host."""
    named = {
        token.strip().lower()
        for name, value in message.headers
        if name == b"connection"
        for token in value.split(b",")
    }
    return [
        (raw, value)
        for raw, value in message.headers.raw_items()
        if raw.lower() not in HOP_BY_HOP and raw.lower() not in named and raw.lower() != b"host"
    ]


def _without_dot(text: str) -> str:
    return _DOT.sub(r"\1", text, count=1) if _DOT.match(text) else text
