"""What may be reached, and the connection to it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ....artifacts.fetch.connecting import CONNECT_TIMEOUT, MOST_ADDRESSES
from ....artifacts.fetch.hosts import Host
from ....artifacts.fetch.policy import FetchPolicy
from ....artifacts.fetch.resolving import RefusedAddressError, Resolve, look_up
from .connecting import Connect, Connection
from .hosts import AllowedHosts

#: Seconds for a look-up and a connection together.
TIMEOUT = 10.0
#: Look-ups at the same time. Each may hold a thread for longer than anybody waits for it.
_LOOK_UPS = 16


class RefusedError(Exception):
    """A request that gets an answer of ours.

    Attributes:
        status: the HTTP status.
        reason: why, in a sentence without its full stop.
        forbidden: whether it is the rules that forbid it, so that the user should know.
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.forbidden = status == 403


class Guard:
    """Connects to hosts of a list, on some ports, at public addresses.

    Args:
        hosts: the list.
        ports: the ports.
        resolve: looks names up.
        connect: connects to an address.
    """

    def __init__(self, hosts: AllowedHosts, ports: Sequence[int], resolve: Resolve, connect: Connect) -> None:
        self._hosts = hosts
        self._ports = tuple(ports)
        self._resolve = resolve
        self._connect = connect
        self._policy = FetchPolicy()
        self._look_ups = asyncio.Semaphore(_LOOK_UPS)

    async def connect(self, host: Host, port: int) -> Connection:
        """Check a host and port, look the host up once, and connect to an address that was checked.

        A name that is not on the list is not looked up: the look-up itself would tell it to somebody.

        Raises:
            RefusedError: it may not be reached, or cannot be.
        """
        if host not in self._hosts:
            raise RefusedError(403, f"host {host.name} is not on network_hosts; the user can add it")
        if port not in self._ports:
            ports = " and ".join(map(str, self._ports))
            raise RefusedError(403, f"port {port} is not allowed on this network, only {ports}")
        try:
            async with asyncio.timeout(TIMEOUT):
                return await self._reach(host, port)
        except TimeoutError:
            raise RefusedError(504, f"{host.name} does not answer on port {port}") from None

    async def _reach(self, host: Host, port: int) -> Connection:
        try:
            async with self._look_ups:
                addresses = await look_up(host, port, self._policy, self._resolve)
        except RefusedAddressError as error:
            raise RefusedError(
                403,
                f"host {host.name} stands for an address that is not public ({error.name}), "
                "and this network reaches no other",
            ) from None
        except OSError:
            raise RefusedError(502, f"the host name {host.name} cannot be looked up") from None
        for address in addresses[:MOST_ADDRESSES]:
            try:
                async with asyncio.timeout(CONNECT_TIMEOUT):
                    return await self._connect(str(address), port)
            except OSError:  # a time-out is one
                continue
        raise RefusedError(502, f"{host.name} takes no connection on port {port}")
