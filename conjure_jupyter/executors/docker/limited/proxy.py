"""A guarded HTTP proxy for one connection at a time: ``CONNECT``, and plain requests in absolute form."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import h11

from .channels import Channel
from .exchange import exchange
from .guard import Guard, RefusedError
from .hello import HelloError
from .requests import connection, http_target, read_request, tunnel_target
from .tunnel import tunnel

log = logging.getLogger(__name__)

#: Seconds for the head of a request to come.
HEAD_TIMEOUT = 30.0


class Proxy:
    """Serves channels.

    Args:
        guard: says what may be reached, and connects.
        tell: hears, in a sentence, what the rules forbade.
    """

    def __init__(self, guard: Guard, tell: Callable[[str], None]) -> None:
        self._guard = guard
        self._tell = tell

    async def serve(self, channel: Channel) -> None:
        """Answer the one request of a channel. Raises nothing; whatever goes wrong ends the channel alone."""
        try:
            await self._serve(channel)
        except RefusedError as error:
            if error.forbidden:
                self._tell(error.reason)
            await _refuse(channel, error)
        except (OSError, h11.ProtocolError):
            log.debug("a connection broke off", exc_info=True)
        except Exception:
            log.exception("a connection of a container failed")

    async def _serve(self, channel: Channel) -> None:
        conn = connection()
        try:
            async with asyncio.timeout(HEAD_TIMEOUT):
                request = await read_request(channel, conn)
        except TimeoutError:
            raise RefusedError(408, "the request did not come in time") from None
        if request is None:
            return
        if request.method == b"CONNECT":
            host, port = tunnel_target(request)
            reached = await self._guard.connect(host, port)
            conn.next_event()
            try:
                await tunnel(channel, host, conn.trailing_data[0], reached)
            except HelloError as error:
                self._tell(f"a tunnel to {host.name} was closed: {error}")
        else:
            url = http_target(request)
            await exchange(channel, conn, request, url, await self._guard.connect(url.host, url.port))


async def _refuse(channel: Channel, error: RefusedError) -> None:
    """Say why. The reason stands in the status line too, which is all that many clients show of a refusal."""
    body = f"{error.reason}\n"
    try:
        await channel.write(
            (
                f"HTTP/1.1 {error.status} {error.reason}\r\nContent-Type: text/plain; charset=utf-8\r\n"
                f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}"
            ).encode("ascii", "replace")
        )
    except OSError:
        log.debug("nobody waited for a refusal")
