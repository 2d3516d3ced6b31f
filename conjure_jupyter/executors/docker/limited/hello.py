"""Which host a TLS client asks for, read along from what it sends and never changed.

A tunnel is allowed for one host, but the server at its other end may answer for many: a client that names
another in its ClientHello (domain fronting) would reach that one. So the name must be there and be the host
of the tunnel. A hello without a name is refused too: which site it reaches is for the server to say. Refused
as well is one that hides its name (Encrypted ClientHello).

After a HelloRetryRequest a client says hello again, and servers may heed the name of the second one; RFC 8446
lets it send early data in between. Hence a connection that may become TLS 1.3 is read along to its end, the
headers of its records alone (RFC 8446, sections 4.1.2, 4.2.10 and 5.1).

What cannot be seen is the ``Host`` inside of the encryption; a server that serves whatever is named there,
for clients that asked for another name, lets a client reach all that it serves.
"""

from __future__ import annotations

from dataclasses import dataclass

from ....artifacts.fetch.hosts import Host, parse_host

_CHANGE_CIPHER_SPEC, _ALERT, _HANDSHAKE, _APPLICATION_DATA = 20, 21, 22, 23
_CLIENT_HELLO = 1
_SERVER_NAME, _SUPPORTED_VERSIONS = 0, 43
#: encrypted_client_hello (RFC 9849) and its forerunner, encrypted_server_name.
_HIDDEN = frozenset({0xFE0D, 0xFFCE})
_TLS_1_3 = b"\x03\x04"

#: Most bytes of a record: of plain text, and with what encryption may add (RFC 5246, section 6.2.3).
_MOST_PLAIN = 2**14
_MOST_RECORD = 2**14 + 2048
#: Most bytes of a hello; those with keys for a quantum computer's time have about two thousand.
_MOST_HELLO = 2**16
#: A retry is asked for once.
_MOST_HELLOS = 2

#: A fatal "unrecognized_name" alert, which clients show.
ALERT = bytes((_ALERT, 3, 3, 0, 2, 2, 112))


class HelloError(Exception):
    """What a client sends through a tunnel is not TLS, or for another host."""


@dataclass(frozen=True, slots=True)
class Hello:
    """What a ClientHello says.

    Attributes:
        name: the host it asks for, None when it does not say.
        retries: whether it offers TLS 1.3, so that it may have to say hello again.
    """

    name: str | None
    retries: bool


class HelloWatch:
    """Lets through what a client sends as long as every hello in it is for the host.

    Args:
        host: the tunnel's. One that is an address is asked for without a name (RFC 6066, section 3).
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._held = bytearray()  # nothing of it was let through
        self._message = bytearray()  # the hello so far, from records that are held
        self._records = 0  # bytes of the records that the message is from
        self._passing = 0  # bytes of an encrypted record that are still to come
        self._hellos = 0
        self._over = False

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes; what of all that was taken may go on now.

        Raises:
            HelloError: the connection must end here.
        """
        if self._over:
            return data
        self._held += data
        at = self._records  # before it lie the records of a hello that is not whole
        done = 0
        while not self._over:
            if self._passing:
                step = min(self._passing, len(self._held) - at)
                self._passing -= step
                at = done = at + step
            if self._passing or len(self._held) - at < 5:
                break
            kind, size = self._held[at], int.from_bytes(self._held[at + 3 : at + 5], "big")
            self._check_record(kind, self._held[at + 1], size)
            if kind == _HANDSHAKE:
                if len(self._held) - at < 5 + size:
                    break
                self._message += self._held[at + 5 : at + 5 + size]
                at += 5 + size
                if self._whole():
                    self._message.clear()
                    done = at
            else:
                self._passing = 5 + size
        if self._over:
            done = len(self._held)
        passed = bytes(self._held[:done])
        del self._held[:done]
        self._records = at - done if not self._over else 0
        return passed

    def _check_record(self, kind: int, version: int, size: int) -> None:
        if version != 3 or kind not in (_CHANGE_CIPHER_SPEC, _ALERT, _HANDSHAKE, _APPLICATION_DATA):
            raise HelloError("it is not TLS, and nothing else goes through a tunnel")
        if not self._hellos and kind != _HANDSHAKE:
            raise HelloError("it does not begin with a TLS hello")
        if self._message and kind != _HANDSHAKE:
            raise HelloError("something stands in the middle of its TLS hello")
        if size > (_MOST_PLAIN if kind == _HANDSHAKE else _MOST_RECORD) or (kind == _HANDSHAKE and not size):
            raise HelloError("a TLS record has a size that none can have")

    def _whole(self) -> bool:
        """Look at the handshake message so far; whether it needs no more records."""
        if self._hellos and self._message[0] != _CLIENT_HELLO:
            self._over = True  # TLS 1.2 goes on with its keys: no hello is in the clear any more
            return True
        if self._message[0] != _CLIENT_HELLO:
            raise HelloError("it does not begin with a TLS hello")
        if len(self._message) < 4:
            return False
        size = int.from_bytes(self._message[1:4], "big")
        if self._hellos and size > 4 * _MOST_HELLO:
            # The first encrypted record of a resumed TLS 1.2 connection may begin with any byte; a hello of
            # such a size is accepted by no server.
            self._over = True
            return True
        if size > _MOST_HELLO:
            raise HelloError("its TLS hello is too long")
        if len(self._message) < 4 + size:
            return False
        if len(self._message) > 4 + size or self._hellos == _MOST_HELLOS:
            raise HelloError("more follows its TLS hello than can")
        self._check(parse_hello(bytes(self._message[4:])))
        return True

    def _check(self, hello: Hello) -> None:
        self._hellos += 1
        self._over = not hello.retries
        if self._host.address is not None:
            if hello.name is not None:
                raise HelloError("its TLS hello names a host, but the tunnel is to an address")
            return
        if hello.name is None:
            raise HelloError("its TLS hello names no host (SNI)")
        try:
            named = parse_host(hello.name.removesuffix("."))
        except ValueError:
            raise HelloError("its TLS hello names no valid host") from None
        if named != self._host:
            raise HelloError(f"its TLS hello asks for the host {named.name}")


class _Reader:
    """Reads fields; what is too short for one is refused."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def __bool__(self) -> bool:
        return self._at < len(self._data)

    def take(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._data):
            raise HelloError("its TLS hello breaks off")
        found, self._at = self._data[self._at : end], end
        return found

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def vector(self, size: int) -> bytes:
        """A field with its length, of ``size`` bytes, before it."""
        return self.take(self.number(size))


def parse_hello(body: bytes) -> Hello:
    """Read the body of a ClientHello (RFC 8446, section 4.1.2; RFC 6066, section 3).

    Raises:
        HelloError: it is none, can be read in two ways, or hides its name.
    """
    reader = _Reader(body)
    reader.take(2 + 32)
    reader.vector(1)
    reader.vector(2)
    reader.vector(1)
    extensions = _extensions(reader.vector(2)) if reader else {}
    if reader:
        raise HelloError("more follows in its TLS hello than can")
    if _HIDDEN & extensions.keys():
        raise HelloError("its TLS hello hides the host it asks for (ECH); turn that off")
    versions = _Reader(extensions.get(_SUPPORTED_VERSIONS, b"\0")).vector(1)
    offered = {versions[at : at + 2] for at in range(0, len(versions), 2)}
    return Hello(_server_name(extensions.get(_SERVER_NAME)), _TLS_1_3 in offered)


def _extensions(data: bytes) -> dict[int, bytes]:
    reader = _Reader(data)
    found: dict[int, bytes] = {}
    while reader:
        kind = reader.number(2)
        if kind in found:
            raise HelloError("its TLS hello has an extension twice")
        found[kind] = reader.vector(2)
    return found


def _server_name(data: bytes | None) -> str | None:
    if data is None:
        return None
    reader = _Reader(data)
    names = _Reader(reader.vector(2))
    kind, name = names.number(1), names.vector(2)
    if kind != 0 or reader or names or not name or not name.isascii():
        raise HelloError("its TLS hello names no valid host")
    return name.decode("ascii")
