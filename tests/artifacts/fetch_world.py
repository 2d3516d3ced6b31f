"""A network namespace in which every address is this machine's: what a client really connects to is seen.

``run(subject)`` starts ``python -m tests.artifacts.fetch_world SUBJECT`` in a namespace of its own, where
all of IPv4 and IPv6 is local, a name server answers on port 53 and the system is told to ask it. Nothing is
put into the subject: it resolves by the system and connects where it will. Each payload gives one JSON line:
``group``, ``url``, ``outcome`` (``refused``, ``fetched``, ``failed``), ``ms`` (milliseconds a try took),
``reached`` (addresses that it should not have connected to).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from .dns import NameServer
from .payloads import LOCAL, PORTS, PUBLIC_NAME, payloads
from .sites import Site

PUBLIC = "93.184.216.34"
PROXY_PORT = 3128
ALLOWED = {(PUBLIC, 80), (PUBLIC, 443)}

#: Seconds for one payload.
PATIENCE = 5.0

_SETUP = """
ip link set lo up
ip route add local 0.0.0.0/0 dev lo
if [ -e /proc/net/if_inet6 ]; then ip -6 route add local ::/0 dev lo; fi
mount --bind "$1/resolv.conf" /etc/resolv.conf
if [ -e /etc/nsswitch.conf ]; then mount --bind "$1/nsswitch.conf" /etc/nsswitch.conf; fi
shift
exec "$@"
"""

Fetch = Callable[[str], Awaitable[str]]


def run(
    subject: str, environ: Mapping[str, str] | None = None, *, each: int = 1000
) -> list[dict[str, Any]] | None:
    """The lines of a subject, None where a namespace cannot be had.

    Args:
        subject: a key of ``SUBJECTS``.
        environ: variables that it gets besides ours.
        each: most payloads of one group.
    """
    if not all(map(shutil.which, ("unshare", "ip", "mount"))):
        return None
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "resolv.conf").write_text("nameserver 127.0.0.1\noptions timeout:2 attempts:1\n")
        Path(folder, "nsswitch.conf").write_text("hosts: files dns\n")
        inside = ["unshare", *user, "--net", "--mount", "sh", "-ec", _SETUP, "sh", folder]
        if subprocess.run([*inside, "true"], capture_output=True, check=False).returncode:
            return None
        done = subprocess.run(
            [*inside, sys.executable, "-m", "tests.artifacts.fetch_world", subject, str(each)],
            env={**os.environ, **(environ or {})},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    return [json.loads(line) for line in done.stdout.splitlines()]


def ours() -> Fetch:
    """The fetcher as the settings make it; http is allowed, so that what refuses is not the scheme."""
    from conjure_jupyter.artifacts.fetch import Fetcher, FetchPolicy
    from conjure_jupyter.errors import FetchBlockedError
    from conjure_jupyter.settings import Settings

    settings = Settings(url_schemes=("http", "https"), url_cache_ttl=0, url_timeout=PATIENCE)
    fetcher = Fetcher(FetchPolicy.of(settings))

    async def fetch(url: str) -> str:
        try:
            await fetcher.fetch(url)
        except FetchBlockedError:
            return "refused"
        return "fetched"

    return fetch


def plain() -> Fetch:
    """httpx as it comes, following redirects."""
    import httpx

    async def fetch(url: str) -> str:
        async with httpx.AsyncClient(follow_redirects=True, timeout=PATIENCE, trust_env=False) as client:
            await client.get(url)
        return "fetched"

    return fetch


def checked_first() -> Fetch:
    """langchain-core's check of a URL, and httpx afterwards."""
    from langchain_core._security._ssrf_protection import validate_safe_url

    after = plain()

    async def fetch(url: str) -> str:
        try:
            await asyncio.to_thread(validate_safe_url, url)
        except ValueError:
            return "refused"
        return await after(url)

    return fetch


def guarded() -> Fetch:
    """langchain-core's client that checks what it connects to."""
    from langchain_core._security._exceptions import SSRFBlockedError
    from langchain_core._security._policy import SSRFPolicy
    from langchain_core._security._transport import ssrf_safe_async_client

    policy = SSRFPolicy(allowed_schemes=frozenset({"http", "https"}))

    async def fetch(url: str) -> str:
        async with ssrf_safe_async_client(policy, timeout=PATIENCE, trust_env=False) as client:
            try:
                await client.get(url)
            except SSRFBlockedError:
                return "refused"
        return "fetched"

    return fetch


SUBJECTS = {"ours": ours, "plain": plain, "checked first": checked_first, "guarded": guarded}


async def main(subject: str, each: int) -> None:
    """Try every payload and print what became of it."""
    async with contextlib.AsyncExitStack() as stack:
        dns = stack.enter_context(NameServer(port=53))
        sites = []
        for port in {80, 443, PROXY_PORT, *PORTS}:
            for address in ("0.0.0.0", "::"):
                with contextlib.suppress(OSError):
                    sites.append(await stack.enter_async_context(Site().serving(address, port)))
        fetch = SUBJECTS[subject]()
        tried: Counter[str] = Counter()
        for payload in payloads(PUBLIC, 80):
            tried[payload.group] += 1
            if tried[payload.group] > each:
                continue
            # A network has its own idea of local names.
            dns.records = {name.lower(): [["10.0.0.53"]] for name in LOCAL if name != "localhost"}
            dns.records |= {PUBLIC_NAME: [[PUBLIC]], **payload.dns}
            # A name that changes its answer is asked for several times, as somebody who means it would.
            times = 4 if payload.group == "rebinding" else 1
            began = time.perf_counter()
            outcomes = [await _outcome(fetch, payload.url) for _ in range(times)]
            took = (time.perf_counter() - began) / times
            reached = {place for site in sites for place in site.connections} - ALLOWED
            for site in sites:
                site.connections.clear()
            line = {
                "group": payload.group,
                "url": payload.url,
                "outcome": outcomes[0],
                "ms": took * 1000,
                "reached": sorted(f"{address} {port}" for address, port in reached),
            }
            print(json.dumps(line))


async def _outcome(fetch: Fetch, url: str) -> str:
    try:
        async with asyncio.timeout(PATIENCE):
            return await fetch(url)
    except Exception:  # noqa: BLE001  whatever a subject raises, it did not fetch
        return "failed"


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
