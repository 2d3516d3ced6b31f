"""From a checked URL to the addresses that it may be fetched from."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import threading
from collections.abc import Awaitable, Callable, Sequence

from ...errors import FetchBlockedError, FetchError
from .addresses import Address
from .hosts import Host
from .policy import FetchPolicy
from .urls import URL, refused_place

#: Looks a name up, once: host name and port in, the addresses as text out, best first.
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


async def system_resolve(name: str, port: int) -> list[str]:
    """What the system says a name stands for, IPv4 and IPv6.

    A look-up cannot be called off and may hang for a minute. Each has a thread of its own that nobody waits
    for at the end; in the loop's pool a few of them would hold up all else that runs there.

    Raises:
        OSError: the name is not known, or nobody can be asked.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[str]] = loop.create_future()

    def give(found: list[str] | OSError) -> None:
        if answer.done():
            return
        if isinstance(found, OSError):
            answer.set_exception(found)
        else:
            answer.set_result(found)

    def look_up() -> None:
        found: list[str] | OSError
        try:
            # As bytes, or Python would encode the name by its own, older rules.
            entries = socket.getaddrinfo(name.encode(), port, type=socket.SOCK_STREAM)
            found = list(dict.fromkeys(str(entry[4][0]) for entry in entries))
        except OSError as error:
            found = error
        with contextlib.suppress(RuntimeError):  # the loop may have been closed meanwhile
            loop.call_soon_threadsafe(give, found)

    threading.Thread(target=look_up, name="conjure-lookup", daemon=True).start()
    return await answer


class RefusedAddressError(Exception):
    """A host is, or stands for, an address that is refused.

    Attributes:
        name: the class of the address.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


async def look_up(host: Host, port: int, policy: FetchPolicy, resolve: Resolve) -> list[Address]:
    """Look a host up once and check every answer; one that is refused refuses the host. There may be none.

    A name with a public and a private address is how rebinding begins, so it is not enough that one is good.

    Raises:
        OSError: the name is not known.
        RefusedAddressError: an address is refused.
    """
    answers = [str(host.address)] if host.address is not None else await resolve(host.name, port)
    for answer in answers:
        refused = policy.refused_address(answer)
        if refused is not None:
            raise RefusedAddressError(refused)
    return [ipaddress.ip_address(answer) for answer in answers]


async def checked_addresses(url: URL, policy: FetchPolicy, resolve: Resolve) -> list[Address]:
    """The addresses that a URL may be fetched from; see :func:`look_up`.

    Raises:
        FetchBlockedError: an address is refused; says its class.
        FetchError: the name is not known.
    """
    try:
        addresses = await look_up(url.host, url.port, policy, resolve)
    except OSError as error:
        raise FetchError(str(url), f"the host name {url.host.name} cannot be looked up") from error
    except RefusedAddressError as error:
        subject = f"what {url.host.name} stands for"
        raise FetchBlockedError(str(url), refused_place(subject, error.name)) from None
    if not addresses:
        raise FetchError(str(url), f"the host name {url.host.name} has no address")
    return addresses
