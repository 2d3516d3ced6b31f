"""Certificates: the connection goes to an address, and it is the name that is verified."""

from __future__ import annotations

import asyncio
import gc
import ssl
import warnings
from pathlib import Path

import pytest
import trustme

from conjure_jupyter.errors import FetchBlockedError, FetchError

from .loopback import PUBLIC, loopback
from .payloads import PUBLIC_NAME
from .sites import redirect, reply


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def server_with(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context


def client_of(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


async def test_the_name_is_verified_and_sent_and_the_address_connected_to(
    authority: trustme.CA, tmp_path: Path
) -> None:
    asked: list[str | None] = []
    server = server_with(authority.issue_cert(PUBLIC_NAME))
    server.sni_callback = lambda connection, name, context: asked.append(name)
    async with loopback(tmp_path, server=server, client=client_of(authority)) as place:
        fetched = await place.fetcher(url_schemes=("https",)).fetch(place.url("/a"))
        assert fetched.path.read_bytes() == b"public"
        assert asked == [PUBLIC_NAME]
        assert place.public.requests[0].headers["host"] == f"{PUBLIC_NAME}:{place.port}"
        assert place.public.connections == [(PUBLIC, place.port)]


async def test_an_internationalised_name_is_verified_in_its_ascii_form(
    authority: trustme.CA, tmp_path: Path
) -> None:
    name = "xn--bcher-kva.example.com"
    server = server_with(authority.issue_cert(name))
    async with loopback(tmp_path, server=server, client=client_of(authority)) as place:
        place.dns.records[name] = [[PUBLIC]]
        fetched = await place.fetcher().fetch(place.url(name="b\u00fccher.example.com"))
        assert fetched.url == place.url(name=name)


async def test_an_address_in_a_url_is_verified_as_an_address(authority: trustme.CA, tmp_path: Path) -> None:
    server = server_with(authority.issue_cert(PUBLIC))
    async with loopback(tmp_path, server=server, client=client_of(authority)) as place:
        assert (await place.fetcher().fetch(place.url(name=PUBLIC))).size == len(b"public")
        with pytest.raises(FetchError, match="certificate is not good"):
            await place.fetcher().fetch(place.url())


@pytest.mark.parametrize("names", [("other.example.com",), (PUBLIC,), ("*.public.example.com",)])
async def test_a_certificate_for_another_name_is_refused(
    names: tuple[str, ...], authority: trustme.CA, tmp_path: Path
) -> None:
    """One for the address as well: whoever holds the address need not be who the name says."""
    server = server_with(authority.issue_cert(*names))
    async with loopback(tmp_path, server=server, client=client_of(authority)) as place:
        with pytest.raises(FetchError, match=f"certificate is not good for {PUBLIC_NAME}"):
            await place.fetcher().fetch(place.url())
        assert place.public.requests == []


async def test_a_certificate_of_an_unknown_authority_is_refused(
    authority: trustme.CA, tmp_path: Path
) -> None:
    server = server_with(trustme.CA().issue_cert(PUBLIC_NAME))
    async with loopback(tmp_path, server=server, client=client_of(authority)) as place:
        with pytest.raises(FetchError, match="certificate is not good"):
            await place.fetcher().fetch(place.url())


async def test_certificates_are_checked_without_being_asked_to(authority: trustme.CA, tmp_path: Path) -> None:
    server = server_with(authority.issue_cert(PUBLIC_NAME))
    async with loopback(tmp_path, server=server) as place:
        url = place.url().replace("http:", "https:")
        with pytest.raises(FetchError, match="certificate is not good"):
            await place.fetcher().fetch(url)


async def test_a_server_without_tls_is_told_as_such(authority: trustme.CA, tmp_path: Path) -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(reply(b"", 400))
        writer.close()
        await writer.wait_closed()

    async with loopback(tmp_path, client=client_of(authority)) as place:
        server = await asyncio.start_server(speak, PUBLIC)
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(FetchError, match="no secure connection"):
            await place.fetcher(url_ports=(str(port),)).fetch(f"https://{PUBLIC_NAME}:{port}/")
        server.close()
        await server.wait_closed()


async def test_a_handshake_that_never_ends_is_bounded_and_its_connection_closed(
    authority: trustme.CA, tmp_path: Path
) -> None:
    async with loopback(tmp_path, client=client_of(authority)) as place:  # this site waits for a request
        with pytest.raises(FetchError, match="url_timeout"):
            await place.fetcher(url_timeout=0.3).fetch(place.url())
        call = asyncio.create_task(place.fetcher().fetch(place.url()))
        await place.public.until(connections=2)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        with warnings.catch_warnings(record=True) as unclosed:
            warnings.simplefilter("always")
            gc.collect()
        assert [str(each.message) for each in unclosed] == []


async def test_https_is_never_left_for_http(authority: trustme.CA, tmp_path: Path) -> None:
    server = server_with(authority.issue_cert(PUBLIC_NAME))
    async with loopback(tmp_path, server=server, client=client_of(authority)) as place:
        place.dns.records["plain.example.com"] = [[PUBLIC]]
        place.public.answer = lambda request: redirect(f"http://plain.example.com:{place.port}/")
        with pytest.raises(FetchBlockedError, match="from https to http"):
            await place.fetcher(url_schemes=("http", "https")).fetch(place.url())
        assert len(place.public.connections) == 1
        assert not place.dns.look_ups("plain.example.com")


async def test_http_may_lead_to_https(authority: trustme.CA, tmp_path: Path) -> None:
    server = server_with(authority.issue_cert(PUBLIC_NAME))
    async with loopback(tmp_path / "tls", server=server, client=client_of(authority)) as secure:
        secure.public.answer = lambda request: reply(b"secure")
        async with loopback(tmp_path / "plain", lambda request: redirect(secure.url("/b"))) as plain:
            plain.context = secure.context
            fetcher = plain.fetcher(url_ports=(str(plain.port), str(secure.port)))
            fetched = await fetcher.fetch(plain.url("/a").replace("https", "http"))
            assert fetched.path.read_bytes() == b"secure"
            assert fetched.final_url == secure.url("/b")
