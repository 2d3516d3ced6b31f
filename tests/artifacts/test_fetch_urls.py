"""The one parser: what it takes, what it makes of it, and that no other reader sees another host."""

from __future__ import annotations

import urllib.parse
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conjure_jupyter.artifacts.fetch import FetchPolicy, check_url
from conjure_jupyter.artifacts.fetch.urls import MAX_LENGTH, join, parse_url
from conjure_jupyter.errors import FetchBlockedError, SettingsError
from conjure_jupyter.settings import Settings

BOTH = FetchPolicy(schemes=frozenset({"http", "https"}))
HTTPS = FetchPolicy.of(Settings())


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("https://example.com", "https://example.com/"),
        ("HTTPS://Example.COM/Path", "https://example.com/Path"),
        ("https://example.com:443/a?b=c#d", "https://example.com/a?b=c"),
        ("https://example.com?q", "https://example.com/?q"),
        ("https://example.com:80/", "https://example.com:80/"),
        ("https://example.com/a b/%20c?d e", "https://example.com/a%20b/%20c?d%20e"),
        ("https://example.com/caf\u00e9?\u00fc", "https://example.com/caf%C3%A9?%C3%BC"),
        ("https://example.com/a/../b", "https://example.com/a/../b"),
        ("https://b\u00fccher.example.com/", "https://xn--bcher-kva.example.com/"),
        ("https://xn--bcher-kva.example.com/", "https://xn--bcher-kva.example.com/"),
        ("https://my_bucket.s3.example.com/", "https://my_bucket.s3.example.com/"),
        ("https://1.1.1.1/dns", "https://1.1.1.1/dns"),
        ("https://[2606:4700:4700:0::1111]:443/", "https://[2606:4700:4700::1111]/"),
        ("https://123.example.com/", "https://123.example.com/"),
        ("https://example.com/?url=http://127.0.0.1/@x", "https://example.com/?url=http://127.0.0.1/@x"),
    ],
)
def test_a_url_has_one_spelling(text: str, known: str) -> None:
    url = check_url(text, HTTPS)
    assert str(url) == known
    assert check_url(known, HTTPS) == url


def test_a_scheme_is_allowed_by_setting_only() -> None:
    with pytest.raises(FetchBlockedError, match="add http to url_schemes"):
        check_url("http://example.com/", HTTPS)
    allowed = FetchPolicy.of(Settings(url_schemes=("https", "HTTP")))
    assert check_url("http://example.com/", allowed).port == 80
    with pytest.raises(FetchBlockedError, match="https is not in url_schemes"):
        check_url("https://example.com/", FetchPolicy.of(Settings(url_schemes=("http",))))


def test_a_port_is_allowed_by_setting_only() -> None:
    with pytest.raises(FetchBlockedError, match="port 8443 is not allowed; add it to url_ports"):
        check_url("https://example.com:8443/", HTTPS)
    assert check_url("https://example.com:8443/", FetchPolicy.of(Settings(url_ports=("8443",)))).port == 8443
    with pytest.raises(FetchBlockedError, match="port 443 is not allowed"):
        check_url("https://example.com/", FetchPolicy.of(Settings(url_ports=("8443",))))


def test_fetching_can_be_turned_off() -> None:
    with pytest.raises(FetchBlockedError, match="url_fetch_enabled"):
        check_url("https://example.com/", FetchPolicy.of(Settings(url_fetch_enabled=False)))


@pytest.mark.parametrize("entry", ["example.com", "*.example.com", ".Example.com", "EXAMPLE.COM."])
def test_a_blocked_host_is_blocked_with_all_below_it(entry: str) -> None:
    policy = FetchPolicy.of(Settings(url_blocked_hosts=(entry,)))
    for host in ("example.com", "a.example.com", "a.b.example.com"):
        with pytest.raises(FetchBlockedError, match="url_blocked_hosts"):
            check_url(f"https://{host}/", policy)
    for host in ("notexample.com", "example.com.example.org", "example.co"):
        assert check_url(f"https://{host}/", policy).host.name == host


def test_an_address_can_be_blocked_too() -> None:
    policy = FetchPolicy.of(
        Settings(url_blocked_hosts=("1.1.1.0/24", "[2606:4700::]", "b\u00fccher.example.com"))
    )
    for host in ("1.1.1.1", "[2606:4700::]", "xn--bcher-kva.example.com"):
        with pytest.raises(FetchBlockedError, match="url_blocked_hosts"):
            check_url(f"https://{host}/", policy)
    assert policy.refused_address("1.1.1.200") is not None
    assert policy.refused_address("1.1.2.1") is None


@pytest.mark.parametrize(
    "changes",
    [
        {"url_schemes": ("ftp",)},
        {"url_schemes": ("",)},
        {"url_ports": ("https",)},
        {"url_ports": ("0",)},
        {"url_ports": ("65536",)},
        {"url_ports": ("80-90",)},
        {"url_blocked_hosts": ("https://example.com",)},
        {"url_blocked_hosts": ("exa mple.com",)},
        {"url_blocked_hosts": ("",)},
        {"url_blocked_hosts": ("127.1",)},
    ],
)
def test_a_setting_that_cannot_be_meant_is_an_error(changes: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=next(iter(changes))):
        FetchPolicy.of(Settings(**changes))


def test_no_setting_allows_an_address_that_is_not_public() -> None:
    assert FetchPolicy.of(Settings(url_blocked_hosts=())).allowed_networks == ()
    assert not any("allowed_network" in name for name in Settings.__slots__)


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("127.0.0.%31", "percent-encoded"),
        ("0x7f.1", "unusual spelling of an IPv4 address"),
        ("example.com.", "ends in a dot"),
        ("\uff11.example.com", "no internationalised name"),
        ("B\u00dcCHER.example.com", "no internationalised name"),
        ("a..example.com", "no valid name"),
        ("a" * 64 + ".example.com", "no valid name"),
        (".".join(["a" * 60] * 5), "no valid name"),
        ("[fe80::1%25eth0]", "has a zone"),
    ],
)
def test_the_reason_says_what_is_wrong_with_a_host(host: str, reason: str) -> None:
    with pytest.raises(FetchBlockedError, match=reason):
        check_url(f"https://{host}/", HTTPS)


def test_an_error_shows_no_password() -> None:
    for text in (
        "https://me:secret@example.com/",
        "https://me:secret@x@example.com/",
        "ftp://me:secret@example.com",
    ):
        with pytest.raises(FetchBlockedError) as caught:
            check_url(text, HTTPS)
        assert "secret" not in str(caught.value) + caught.value.url


def test_a_url_is_not_longer_than_what_servers_take() -> None:
    assert check_url("https://example.com/".ljust(MAX_LENGTH, "a"), HTTPS)
    with pytest.raises(FetchBlockedError, match="longer than 8,192"):
        check_url("https://example.com/".ljust(MAX_LENGTH + 1, "a"), HTTPS)


# RFC 3986, section 5.4, for its base; the dots of an absolute path stay as the server wrote them.
@pytest.mark.parametrize(
    ("reference", "target"),
    [
        ("g", "http://a.b/b/c/g"),
        ("./g", "http://a.b/b/c/g"),
        ("g/", "http://a.b/b/c/g/"),
        ("/g", "http://a.b/g"),
        ("//g.h", "http://g.h"),
        ("?y", "http://a.b/b/c/d;p?y"),
        ("g?y", "http://a.b/b/c/g?y"),
        ("#s", "http://a.b/b/c/d;p?q"),
        ("g#s", "http://a.b/b/c/g"),
        (";x", "http://a.b/b/c/;x"),
        ("", "http://a.b/b/c/d;p?q"),
        (".", "http://a.b/b/c/"),
        ("./", "http://a.b/b/c/"),
        ("..", "http://a.b/b/"),
        ("../g", "http://a.b/b/g"),
        ("../..", "http://a.b/"),
        ("../../g", "http://a.b/g"),
        ("../../../g", "http://a.b/g"),
        ("/../g", "http://a.b/g"),
        ("g.", "http://a.b/b/c/g."),
        ("..g", "http://a.b/b/c/..g"),
        ("./g/.", "http://a.b/b/c/g/"),
        ("g?y/../x", "http://a.b/b/c/g?y/../x"),
        ("https://g.h/i", "https://g.h/i"),
        ("http:g", "http:g"),
    ],
)
def test_a_location_is_read_as_the_standard_says(reference: str, target: str) -> None:
    assert join(parse_url("http://a.b/b/c/d;p?q", BOTH), reference) == target


# Pieces that URLs and tricks with them are made of, in any order.
WORDS = "http:// https:// http: // .. ::1 %00 %2e 127.0.0.1 0x7f localhost example.com :80 :443 user"
PIECES = st.sampled_from([*"/\\@#?:;[].1a \t\u3002\uff11\u00fc\u200b", *WORDS.split()])


@given(st.lists(PIECES, max_size=10).map("".join) | st.text(max_size=40).map("http://".__add__))
def test_who_reads_an_accepted_url_otherwise_still_reads_the_same_host(text: str) -> None:
    """Python's own parser and the HTTP library's see the host that was checked, in both spellings."""
    try:
        url = check_url(text, BOTH)
    except FetchBlockedError:
        return
    assert check_url(str(url), BOTH) == url
    assert str(url).isascii()
    for spelling in (text, str(url)):
        theirs = urllib.parse.urlsplit(spelling)
        assert theirs.username is None
        if spelling.isascii():
            assert theirs.hostname == url.host.name
    assert httpx2.URL(str(url)).raw_host.decode() == url.host.name
    assert (httpx2.URL(str(url)).port or {"http": 80, "https": 443}[url.scheme]) == url.port


@given(st.text(max_size=60))
def test_any_location_is_read_or_refused(text: str) -> None:
    base = parse_url("https://example.com/a/b?c", BOTH)
    try:
        url = check_url(join(base, text), BOTH)
    except FetchBlockedError:
        return
    assert url.target.startswith("/")
