"""Every trick against URL fetching, through the proxy, with the host itself on the list where it can be."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

import pytest

from conjure_jupyter.errors import SettingsError
from tests.artifacts.payloads import LOCAL, PUBLIC_NAME, Payload, payloads
from tests.artifacts.sites import redirecting

from .world import World, ask, connect, get, proxied, world

PUBLIC = "93.184.216.34"
ALL = list(payloads(PUBLIC, 80))
GROUPS = sorted({payload.group for payload in ALL})


def authority(url: str) -> str:
    """Host and port, as a program that does not check would take them."""
    return url.split("://", 1)[-1].split("/", 1)[0] if "://" in url else url


def listed(place: World, urls: list[str]) -> list[str]:
    """The hosts of URLs, as far as a list takes them at all."""
    found = [PUBLIC_NAME, "*.example.com"]
    for url in urls:
        for host in (authority(url), authority(url).rpartition("@")[2]):
            for entry in (host, host.rpartition(":")[0], host.strip("[]")):
                with contextlib.suppress(SettingsError):
                    place.network([entry])
                    found.append(entry)
    return found


def answers(dns: Mapping[str, object]) -> dict[str, list[list[str]]]:
    """What names stand for; a network has its own idea of local ones."""
    local = {name.lower(): [["10.0.0.53"]] for name in LOCAL} | {PUBLIC_NAME: [[PUBLIC]]}
    return local | {name: [list(turn) for turn in turns] for name, turns in dns.items()}  # type: ignore[attr-defined]  # the payloads' own type is narrower


@pytest.mark.parametrize("group", GROUPS)
async def test_none_gets_through(group: str) -> None:
    """What is connected to is the public address on its two ports, or nothing, whatever a program sends."""
    tried = 0
    async with world() as place:
        place.plain.answer = redirecting
        mine = [payload for payload in ALL if payload.group == group]
        urls = [url for payload in mine for url in hops(payload)]
        async with proxied(place, listed(place, urls)) as (port, _):
            for payload in mine:
                place.names = answers(payload.dns)
                for url in hops(payload):
                    for request in requests(url):
                        await ask(port, request, end=True)
                        tried += 1
                    if payload.refusal is not None and url == hops(payload)[-1]:
                        bad = [each for each in place.connected if each[0] != PUBLIC]
                        assert bad == [], payload
        assert {each[0] for each in place.connected} <= {PUBLIC}
        assert {each[1] for each in place.connected} <= {80, 443}
    assert tried >= 2 * len(mine)


def hops(payload: Payload) -> list[str]:
    """The URL and those that its redirects lead to, which a program would ask for in turn."""
    found = [payload.url]
    while "/to?url=" in found[-1]:
        target = unquote(found[-1].partition("/to?url=")[2])
        found.append("http:" + target if target.startswith("//") else target)
    return found


def requests(url: str) -> list[bytes]:
    host = authority(url)
    name = host.rpartition("@")[2]
    with contextlib.suppress(ValueError):
        name = urlsplit(url).netloc.rpartition("@")[2] or name
    target = name if name.rpartition("]")[2].count(":") else f"{name}:80"
    made = [connect(target), connect(target.rpartition(":")[0] + ":443")]
    for header in {host, name}:
        lines = f"GET {url} HTTP/1.1\r\nHost: {header}\r\nConnection: close\r\n\r\n"
        made += [lines.encode(), lines.encode("ascii", "ignore")]
    return [*made, get(f"http://{PUBLIC_NAME}/", name) if name.isascii() else made[0]]
