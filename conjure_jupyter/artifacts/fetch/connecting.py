"""One request over one new connection, made to an address that was checked.

The transport gets the address in place of the name, so that nothing is looked up again; ``Host``, SNI and
the certificate's name stay those of the URL. There is no pool, no client and so no cookie, no credential
from ``.netrc``, no redirect followed and no proxy variable read.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from ..._version import __version__
from ...errors import FetchError
from .addresses import Address
from .urls import URL

if TYPE_CHECKING:
    import httpx2

#: Addresses of one name that are tried.
MOST_ADDRESSES = 4

#: Seconds for a connection to be made while there is another address to try.
CONNECT_TIMEOUT = 5.0

_HEADERS = {
    "User-Agent": f"conjure-jupyter/{__version__}",
    "Accept": "*/*",
    "Accept-Encoding": "gzip",
    "Connection": "close",
}


@asynccontextmanager
async def get(
    url: URL, addresses: Sequence[Address], context: ssl.SSLContext, headers: Mapping[str, str]
) -> AsyncIterator[httpx2.Response]:
    """Send GET and give the answer, its body unread; the connection is closed at the end.

    Only a connection that cannot be made is tried with the next address.

    Args:
        url: what to get.
        addresses: where it may be had, all of them checked; at least one.
        context: decides which certificates are good.
        headers: sent besides those that every request has.

    Raises:
        FetchError: no connection, a bad certificate, or an answer that is no HTTP.
    """
    import httpx2

    tried = addresses[:MOST_ADDRESSES]
    try:
        for address in tried:
            last = address == tried[-1]
            transport = httpx2.AsyncHTTPTransport(verify=context, trust_env=False)
            async with transport:
                request = _request(url, address, headers, None if last else CONNECT_TIMEOUT)
                try:
                    response = await _send(transport, request)
                except (httpx2.ConnectError, httpx2.ConnectTimeout):
                    if last:
                        raise
                    continue
                try:
                    yield response
                finally:
                    await response.aclose()
                return
    except httpx2.HTTPError as error:
        raise FetchError(str(url), _reason(error, url)) from error


async def _send(transport: httpx2.AsyncHTTPTransport, request: httpx2.Request) -> httpx2.Response:
    """Send a request; when it comes to nothing, its connection is closed.

    The transport does that too, but for a connection on which TLS is given up half way, as by a time limit.
    """
    opened: list[Any] = []

    async def trace(event: str, info: Mapping[str, Any]) -> None:
        if event == "connection.connect_tcp.complete":
            opened.append(info["return_value"])

    request.extensions = {**request.extensions, "trace": trace}
    try:
        return await transport.handle_async_request(request)
    except BaseException:
        for stream in opened:
            await stream.aclose()
        raise


def _request(
    url: URL, address: Address, headers: Mapping[str, str], connect_timeout: float | None
) -> httpx2.Request:
    import httpx2

    # Time is bounded once, for the whole of a fetch, by whoever calls.
    timeouts = {"connect": connect_timeout, "read": None, "write": None, "pool": None}
    return httpx2.Request(
        "GET",
        httpx2.URL(scheme=url.scheme, host=str(address), port=url.port, path="/"),
        headers={"Host": url.authority, **_HEADERS, **headers},
        extensions={"target": url.target.encode(), "sni_hostname": url.host.name, "timeout": timeouts},
    )


def _reason(error: httpx2.HTTPError, url: URL) -> str:
    """What happened, in words that name no address: what a name stands for may be nobody's business."""
    import httpx2

    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"the certificate is not good for {url.host.name} ({cause.verify_message})"
        if isinstance(cause, ssl.SSLError):
            return "no secure connection could be agreed on"
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
        return f"{url.host.name} does not take connections on port {url.port}"
    if isinstance(error, httpx2.RemoteProtocolError):
        return "the answer broke off or is no HTTP"
    return "the connection broke"
