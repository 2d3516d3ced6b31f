"""The fetcher as it ships, in a network where every address answers: what it connects to is what counts."""

from __future__ import annotations

import pytest

from .fetch_world import PROXY_PORT, PUBLIC, run
from .payloads import payloads


def test_the_system_as_it_is_reaches_the_public_site_and_nothing_else() -> None:
    proxy = f"http://10.0.0.9:{PROXY_PORT}"
    names = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    lines = run("ours", dict.fromkeys(names, proxy))
    if lines is None:
        pytest.skip("no network namespace can be made here (unshare, ip, mount)")
    expected = list(payloads(PUBLIC, 80))
    assert [line["url"] for line in lines] == [payload.url for payload in expected]
    assert [line for line in lines if line["reached"]] == []
    wrong = [
        line
        for line, payload in zip(lines, expected, strict=True)
        if line["outcome"] != ("fetched" if payload.refusal is None else "refused")
    ]
    assert wrong == []


def test_a_plain_client_does_reach_what_it_should_not() -> None:
    """The network can tell good from bad: without a guard most payloads arrive."""
    pytest.importorskip("httpx", reason="httpx is not installed")
    lines = run("plain", each=5)
    if lines is None:
        pytest.skip("no network namespace can be made here (unshare, ip, mount)")
    reached = {line["group"] for line in lines if line["reached"]}
    assert {"IPv4 literals", "odd spellings", "local names", "rebinding", "redirects", "ports"} <= reached
