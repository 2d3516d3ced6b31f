"""Every trick by which a URL would reach what is not public, one test each, with connections counted."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from conjure_jupyter.errors import FetchBlockedError

from .loopback import PUBLIC, loopback
from .payloads import Payload, payloads
from .sites import Request

#: The port of every site in a payload's name; the sites' own is put in its place.
PORT = 65001

ALL = list(payloads(PUBLIC, PORT))


def test_there_are_payloads_of_every_class() -> None:
    assert len(ALL) > 270
    assert min(Counter(payload.group for payload in ALL).values()) >= 5
    assert len({payload.url for payload in ALL}) == len(ALL)


@pytest.mark.parametrize("payload", ALL, ids=lambda payload: f"{payload.group}: {payload.url!a}")
async def test_nothing_but_the_public_site_is_connected_to(payload: Payload, tmp_path: Path) -> None:
    async with loopback(tmp_path) as place:
        place.dns.records.update(payload.dns)
        fetcher = place.fetcher(url_timeout=10)
        url = payload.url.replace(str(PORT), str(place.port))
        if payload.refusal is None:
            fetched = await fetcher.fetch(url)
            assert fetched.path.read_bytes() == b"public"
        else:
            with pytest.raises(FetchBlockedError) as caught:
                await fetcher.fetch(url)
            assert payload.refusal in caught.value.reason
        assert place.forbidden.connections == []
        hops = 0 if not payload.group.startswith("redirects") else 2 if "two" in payload.group else 1
        if payload.refusal is not None:
            assert len(place.public.connections) == hops


async def test_what_is_refused_by_its_form_is_not_even_looked_up(tmp_path: Path) -> None:
    async with loopback(tmp_path) as place:
        fetcher = place.fetcher()
        by_form = [each for each in ALL if not each.dns and each.refusal and "redirects" not in each.group]
        assert len(by_form) > 180
        for payload in by_form:
            with pytest.raises(FetchBlockedError):
                await fetcher.fetch(payload.url.replace(str(PORT), str(place.port)))
        assert not place.dns.queries


@pytest.mark.parametrize(
    "payload", [each for each in ALL if each.group == "rebinding"], ids=lambda each: each.url
)
async def test_a_name_that_changes_its_answer_is_refused_by_the_answer_of_each_connection(
    payload: Payload, tmp_path: Path
) -> None:
    """One look-up a fetch, and the connection goes to what it said: there is nothing in between to change."""
    (name,) = payload.dns
    flips = name.startswith("flips")
    async with loopback(tmp_path) as place:
        place.dns.records.update(payload.dns)
        fetcher = place.fetcher(url_cache_ttl=0)
        for turn in range(6):
            url = payload.url.replace(str(PORT), str(place.port)) + str(turn)
            if turn == 0 or (flips and turn % 2 == 0):
                await fetcher.fetch(url)
            else:
                with pytest.raises(FetchBlockedError):
                    await fetcher.fetch(url)
            assert place.dns.look_ups(name) == turn + 1
        assert place.forbidden.connections == []
        assert len(place.public.connections) == (3 if flips else 1)


async def test_a_connection_is_not_used_for_a_later_fetch(tmp_path: Path) -> None:
    """A pooled connection would be one whose address was checked for another fetch, by an older answer."""
    async with loopback(tmp_path) as place:
        fetcher = place.fetcher()
        await fetcher.fetch(place.url("/one"))
        await fetcher.fetch(place.url("/two"))
        assert len(place.public.connections) == 2
        assert place.dns.look_ups("public.example.com") == 2


@pytest.mark.parametrize(
    "name", ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"]
)
async def test_proxy_variables_are_ignored(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with loopback(tmp_path) as place:
        monkeypatch.setenv(name, f"http://127.0.0.1:{place.port}")
        monkeypatch.setenv("NO_PROXY", "")
        fetched = await place.fetcher().fetch(place.url())
        assert fetched.path.read_bytes() == b"public"
        assert place.forbidden.connections == []


async def test_no_credential_and_no_cookie_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("default login me password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))

    async with loopback(tmp_path) as place:
        told = place.public.answer

        def answer(request: Request) -> bytes:
            found = told(request)
            assert isinstance(found, bytes)
            return found.replace(b"\r\n", b"\r\nSet-Cookie: a=b; Path=/\r\n", 1)

        place.public.answer = answer
        fetcher = place.fetcher()
        await fetcher.fetch(place.url("/to?url=/one"))
        await fetcher.fetch(place.url("/two"))
        assert len(place.public.requests) == 3
        for request in place.public.requests:
            assert set(request.headers) == {"host", "user-agent", "accept", "accept-encoding", "connection"}
            assert request.headers["host"] == f"public.example.com:{place.port}"
            assert request.method == "GET"
