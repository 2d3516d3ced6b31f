"""What a TLS client asks for: the hellos of a real client, and hellos that none sends."""

from __future__ import annotations

import ssl
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conjure_jupyter.artifacts.fetch.hosts import parse_host
from conjure_jupyter.executors.docker.limited.hello import HelloError, HelloWatch

HOST = parse_host("files.example.com")
NAME, OTHER = b"files.example.com", b"evil.example.com"
SECRET = b"\x17\x03\x03\x00\x05abcde"
CHANGE = b"\x14\x03\x03\x00\x01\x01"


def real(name: str | None, *, highest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> bytes:
    """The first flight of the standard library's client."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.maximum_version = highest
    out = ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name).do_handshake()
    return out.read()


def extension(kind: int, data: bytes) -> bytes:
    return struct.pack("!HH", kind, len(data)) + data


def names(*found: bytes, kind: int = 0) -> bytes:
    entries = b"".join(struct.pack("!BH", kind, len(each)) + each for each in found)
    return extension(0, struct.pack("!H", len(entries)) + entries)


TLS_1_3 = extension(43, b"\x02\x03\x04")


def hello(*extensions: bytes, tail: bytes = b"") -> bytes:
    """A message."""
    joined = b"".join(extensions)
    body = b"\x03\x03" + bytes(32) + b"\0" + b"\0\x02\x13\x01" + b"\x01\0" + struct.pack("!H", len(joined))
    body += joined + tail
    return b"\x01" + len(body).to_bytes(3, "big") + body


def records(message: bytes, size: int = 16384) -> bytes:
    pieces = [message[at : at + size] for at in range(0, len(message), size)]
    return b"".join(b"\x16\x03\x01" + struct.pack("!H", len(each)) + each for each in pieces)


GOOD = records(hello(names(NAME), TLS_1_3))


@pytest.mark.parametrize("highest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_real_hello_for_the_host_passes_unchanged(highest: ssl.TLSVersion) -> None:
    for name in ("files.example.com", "FILES.example.com"):
        sent = real(name, highest=highest)
        assert HelloWatch(HOST).feed(sent) == sent


@pytest.mark.parametrize("highest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("name", ["evil.example.com", "example.com", "a.files.example.com", None])
def test_a_real_hello_for_another_does_not(highest: ssl.TLSVersion, name: str | None) -> None:
    with pytest.raises(HelloError):
        HelloWatch(HOST).feed(real(name, highest=highest))


def test_an_address_is_asked_for_without_a_name() -> None:
    host = parse_host("1.2.3.4")
    sent = real(None)
    assert HelloWatch(host).feed(sent) == sent
    with pytest.raises(HelloError, match="to an address"):
        HelloWatch(host).feed(real("files.example.com"))


@settings(deadline=None)
@given(st.lists(st.integers(1, 200), max_size=40), st.integers(1, 300))
def test_it_may_come_in_any_pieces_and_nothing_passes_before_it_was_checked(
    cuts: list[int], record: int
) -> None:
    first = records(hello(names(NAME), TLS_1_3), record)
    sent = first + CHANGE + records(hello(names(NAME), TLS_1_3), record) + SECRET * 3
    watch, passed, at = HelloWatch(HOST), b"", 0
    for cut in [*cuts, len(sent)]:
        passed += watch.feed(sent[at : at + cut])
        at += cut
        assert sent.startswith(passed)
        assert not passed or len(passed) >= len(first)
    assert passed == sent


@settings(deadline=None)
@given(st.lists(st.integers(1, 200), max_size=40), st.integers(1, 300), st.booleans(), st.booleans())
def test_a_second_hello_for_another_host_never_passes(
    cuts: list[int], record: int, change: bool, early: bool
) -> None:
    """As after a HelloRetryRequest, with what may stand in between."""
    before = GOOD + CHANGE * change + SECRET * early
    sent = before + records(hello(names(OTHER), TLS_1_3), record)
    watch, passed, at = HelloWatch(HOST), b"", 0
    try:
        for cut in [*cuts, len(sent)]:
            passed += watch.feed(sent[at : at + cut])
            at += cut
        pytest.fail("it passed")
    except HelloError as error:
        assert "evil" in str(error)  # noqa: PT017  what passed before is looked at too
    assert before.startswith(passed)


def test_what_follows_is_not_looked_into_once_no_hello_can_come() -> None:
    watch = HelloWatch(HOST)
    old = records(hello(names(NAME)))
    assert watch.feed(old + b"anything") == old + b"anything"
    watch = HelloWatch(HOST)
    keys = records(b"\x10\x00\x00\x01x")  # ClientKeyExchange: the server took TLS 1.2
    assert watch.feed(GOOD + keys + b"any") == GOOD + keys + b"any"
    assert watch.feed(b"thing") == b"thing"


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"SSH-2.0-OpenSSH\r\n",
        b"\x80\x2e\x01\x03\x01" + bytes(50),
        b"\x16\x02\x00\x00\x05hello",
        b"\x16\x03\x01\x00\x00",
        b"\x16\x03\x01\xff\xff",
        SECRET,
        CHANGE + GOOD,
        records(b"\x02\x00\x00\x04abcd"),
        records(b"\x01\x7f\xff\xff"),
        records(hello(names(NAME), TLS_1_3), 20)[:50] + SECRET,
        records(hello(names(NAME), TLS_1_3) + hello(names(OTHER), TLS_1_3)),
        GOOD * 3,
        records(hello()),
        records(hello(TLS_1_3)),
        records(hello(names())),
        records(hello(names(b""))),
        records(hello(names(NAME, OTHER))),
        records(hello(names(OTHER, NAME))),
        records(hello(names(NAME), names(OTHER))),
        records(hello(names(OTHER), names(NAME))),
        records(hello(names(NAME, kind=1))),
        records(hello(names(NAME + b"\0.evil.com"))),
        records(hello(names(b"files.example.com\xff"))),
        records(hello(names(b"1.2.3.4"))),
        records(hello(extension(0, b"\0\x05\0\0\x11" + NAME))),
        records(hello(extension(0, b"\xff\xff\0\0\x11" + NAME))),
        records(hello(names(NAME), tail=b"x")),
        records(hello(names(NAME), TLS_1_3, extension(0xFE0D, b"x"))),
        records(hello(names(NAME), extension(0xFFCE, b"x"))),
        records(b"\x01\x00\x00\x02\x03\x03"),
    ],
    ids=range(31),
)
def test_what_no_client_sends_is_refused(sent: bytes) -> None:
    watch = HelloWatch(HOST)
    with pytest.raises(HelloError):
        watch.feed(sent)


@settings(deadline=None)
@given(st.data())
def test_a_damaged_hello_is_refused_or_still_for_the_host(data: st.DataObject) -> None:
    sent = bytearray(GOOD)
    for _ in range(data.draw(st.integers(1, 4))):
        sent[data.draw(st.integers(0, len(sent) - 1))] = data.draw(st.integers(0, 255))
    try:
        passed = HelloWatch(HOST).feed(bytes(sent))
    except HelloError:
        return
    assert not passed or NAME in passed.lower()


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_anything_at_all_is_refused_or_held(sent: bytes) -> None:
    try:
        assert HelloWatch(HOST).feed(sent) == b""
    except HelloError:
        return
