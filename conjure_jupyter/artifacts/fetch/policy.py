"""What may be fetched, from where, and how much of it."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from ...errors import SettingsError
from ...settings import Settings
from .addresses import Address, Network, check_address
from .hosts import Host, below, parse_host

#: Redirects followed for one URL.
MAX_REDIRECTS = 5

_SCHEMES = frozenset({"http", "https"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchPolicy:
    """The rules of one fetcher.

    Attributes:
        enabled: whether anything is fetched at all.
        schemes: ``https``, and ``http`` where the user allows it.
        ports: ports that may be connected to.
        blocked_hosts: names that are refused with all below them.
        blocked_networks: addresses that are refused besides those that are not public.
        timeout: seconds for one URL: look-ups, redirects and content together.
        max_size: most bytes of one URL's content, after decompression.
        cache_ttl: seconds a fetched URL is used without asking again.
        cache_size: most bytes of the cache.
        allowed_networks: addresses that are fetched from although they are not public. No setting fills it,
            nor can the environment or a URL; it is for code that serves its own addresses, such as tests.
    """

    enabled: bool = True
    schemes: frozenset[str] = frozenset({"https"})
    ports: frozenset[int] = frozenset({80, 443})
    blocked_hosts: tuple[str, ...] = ()
    blocked_networks: tuple[Network, ...] = ()
    timeout: float = 30.0
    max_size: int = 10 * 1024 * 1024
    cache_ttl: float = 900.0
    cache_size: int = 200 * 1024 * 1024
    allowed_networks: tuple[Network, ...] = ()

    @classmethod
    def of(cls, settings: Settings) -> FetchPolicy:
        """The policy that the settings ask for.

        Raises:
            SettingsError: a scheme, port or blocked host that cannot be meant.
        """
        names: list[str] = []
        networks: list[Network] = []
        for entry in settings.url_blocked_hosts:
            blocked = _blocked(entry)
            if isinstance(blocked, str):
                names.append(blocked)
            else:
                networks.append(blocked)
        return cls(
            enabled=settings.url_fetch_enabled,
            schemes=frozenset(map(_scheme, settings.url_schemes)),
            ports=frozenset(map(_port, settings.url_ports)),
            blocked_hosts=tuple(names),
            blocked_networks=tuple(networks),
            timeout=settings.url_timeout,
            max_size=settings.url_max_size,
            cache_ttl=settings.url_cache_ttl,
            cache_size=settings.url_cache_size,
        )

    def refused_address(self, address: str | Address) -> str | None:
        """The class by which an address is refused, None when it may be connected to."""
        try:
            known = ipaddress.ip_address(address)
        except ValueError:
            return check_address(str(address))
        if any(known in network for network in self.blocked_networks):
            return "blocked by url_blocked_hosts"
        if any(known in network for network in self.allowed_networks):
            return None
        return check_address(known)

    def blocks(self, host: Host) -> bool:
        """Whether the user blocked a name, or a domain that it is in."""
        return host.address is None and any(below(host.name, blocked) for blocked in self.blocked_hosts)


def _scheme(text: str) -> str:
    scheme = text.strip().lower().removesuffix("://")
    if scheme not in _SCHEMES:
        raise SettingsError("url_schemes", f"{text!r} is not one of {', '.join(sorted(_SCHEMES))}")
    return scheme


def _port(text: str) -> int:
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit() and 1 <= int(digits) <= 65535):
        raise SettingsError("url_ports", f"{text!r} is not a number from 1 to 65535")
    return int(digits)


def _blocked(text: str) -> str | Network:
    """A blocked name or network; ``*.name`` and ``.name`` mean ``name``, which covers all below it."""
    entry = text.strip()
    try:
        return ipaddress.ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        pass
    try:
        host = parse_host(entry.removeprefix("*").removeprefix(".").removesuffix("."))
    except ValueError as error:
        raise SettingsError("url_blocked_hosts", f"{text!r}: {error}; give a name or an address") from None
    return host.name
