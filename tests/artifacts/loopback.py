"""A small internet on this machine's loopback addresses, with everything that is asked of it counted."""

from __future__ import annotations

import contextlib
import ipaddress
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from conjure_jupyter.artifacts.fetch import Fetcher, FetchPolicy
from conjure_jupyter.settings import Settings

from .dns import NameServer
from .payloads import PUBLIC_NAME
from .sites import Answer, Request, Site, redirecting

#: The one address that the policy lets pass; all other loopback addresses are refused as they should be.
PUBLIC = "127.0.0.2"
FORBIDDEN = "127.0.0.1"


@dataclass
class Loopback:
    """A site that may be fetched from and one that may not, at the same port, and a name server."""

    public: Site
    forbidden: Site
    dns: NameServer
    folder: Path
    context: ssl.SSLContext | None
    fetchers: list[Fetcher] = field(default_factory=list)
    now: float = 1_000_000.0

    @property
    def port(self) -> int:
        return self.public.port

    def url(self, path: str = "/", name: str = PUBLIC_NAME) -> str:
        return f"{'https' if self.context else 'http'}://{name}:{self.port}{path}"

    def fetcher(
        self, cache: Path | None = None, *, allowed: tuple[str, ...] = (PUBLIC,), **changes: Any
    ) -> Fetcher:
        """A fetcher by the settings, with this internet as the public one.

        ``allowed`` are the addresses that pass although they are loopback; ``changes`` are settings.
        """
        values = {"url_schemes": ("http", "https"), "url_ports": ("80", "443", str(self.port)), **changes}
        policy = FetchPolicy.of(Settings(**values))
        fields = {name: getattr(policy, name) for name in FetchPolicy.__slots__}
        fields["allowed_networks"] = tuple(map(ipaddress.ip_network, allowed))
        fetcher = Fetcher(
            FetchPolicy(**fields),
            cache or self.folder,
            resolve=self.dns.resolve,
            context=self.context,
            clock=lambda: self.now,
        )
        self.fetchers.append(fetcher)
        return fetcher


@contextlib.asynccontextmanager
async def loopback(
    folder: Path,
    answer: Callable[[Request], Answer] = redirecting,
    *,
    server: ssl.SSLContext | None = None,
    client: ssl.SSLContext | None = None,
) -> AsyncIterator[Loopback]:
    """Start it; ``answer`` is what the public site says, ``server`` and ``client`` make it speak TLS."""
    async with contextlib.AsyncExitStack() as stack:
        dns = stack.enter_context(NameServer())
        dns.records[PUBLIC_NAME] = [[PUBLIC]]
        try:
            public = await stack.enter_async_context(Site(answer).serving(PUBLIC, context=server))
        except OSError:
            pytest.skip(f"this system has no second loopback address ({PUBLIC})")
        forbidden = await stack.enter_async_context(Site().serving(FORBIDDEN, public.port))
        place = Loopback(public, forbidden, dns, folder / "cache", client)
        yield place
        for fetcher in place.fetchers:
            await fetcher.close()
