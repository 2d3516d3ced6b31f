"""The host of a URL, strictly read: one spelling for each address, and names that DNS could have.

Resolvers and clients understand many spellings of an address (``0x7f.1``, ``2130706433``, full-width digits)
and not all the same ones. Here an IPv4 address is four decimal numbers, an IPv6 address stands in brackets,
and all else is a name whose last label is no number. What passes is plain ASCII, in one form.
"""

from __future__ import annotations

import ipaddress
import re
import string
from dataclasses import dataclass

from .addresses import Address

_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
# What WHATWG's URL standard calls "ends in a number": such a host is an IPv4 address or nothing.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)

#: Names that mean something on this machine or network only, with all below them.
LOCAL_NAMES = {
    "localhost": "loopback (RFC 6761)",
    "localdomain": "the local network",
    "local": "the local network (RFC 6762)",
    "internal": "a private network (ICANN 2024)",
    "intranet": "a private network (RFC 6762)",
    "private": "a private network (RFC 6762)",
    "corp": "a private network (RFC 6762)",
    "home": "a private network (RFC 6762)",
    "lan": "a private network (RFC 6762)",
    "home.arpa": "a home network (RFC 8375)",
    "svc": "a cluster",
    "consul": "a cluster",
    "onion": "Tor (RFC 7686)",
    "alt": "another name system than DNS (RFC 9476)",
    "test": "tests (RFC 6761)",
    "example": "documentation (RFC 6761)",
    "invalid": "nothing (RFC 6761)",
}


@dataclass(frozen=True, slots=True)
class Host:
    """A host as it is looked up, connected to, sent as ``Host`` and verified in a certificate.

    Attributes:
        name: lower-case ASCII, without brackets.
        address: set when the URL has an address in place of a name.
    """

    name: str
    address: Address | None = None

    def __str__(self) -> str:
        return f"[{self.name}]" if isinstance(self.address, ipaddress.IPv6Address) else self.name


def parse_host(text: str) -> Host:
    """Read the host of a URL.

    Raises:
        ValueError: it is none, or written in a way that others read differently; says which.
    """
    if not text:
        raise ValueError("there is no host")
    if text.startswith("["):
        return _parse_bracketed(text)
    if "%" in text:
        raise ValueError("the host has percent-encoded characters")
    name = text.translate(_LOWER)
    if not name.isascii():
        name = _encode(name)
    if name.endswith("."):
        raise ValueError("the host ends in a dot")
    labels = name.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        try:
            address = ipaddress.IPv4Address(name)
        except ValueError:
            raise ValueError("the host is an unusual spelling of an IPv4 address") from None
        return Host(str(address), address)
    if len(name) > 253 or not all(map(_LABEL.fullmatch, labels)):
        raise ValueError("the host is no valid name")
    return Host(name)


def _parse_bracketed(text: str) -> Host:
    if not text.endswith("]"):
        raise ValueError("the host has an open bracket")
    if "%" in text:
        raise ValueError("the IPv6 address has a zone")
    try:
        address = ipaddress.IPv6Address(text[1:-1])
    except ValueError:
        raise ValueError("the brackets hold no IPv6 address") from None
    return Host(str(address), address)


def _encode(name: str) -> str:
    """IDNA 2008 without any mapping: full-width or circled digits and odd full stops are refused by it."""
    import idna

    try:
        return idna.encode(name, strict=True, std3_rules=True).decode("ascii")
    except (idna.IDNAError, UnicodeError):
        raise ValueError("the host has characters that no internationalised name can have") from None


def local_meaning(host: Host) -> str | None:
    """What a name stands for that is not for the public DNS to say, None for an ordinary name."""
    if host.address is not None:
        return None
    if "." not in host.name:
        return LOCAL_NAMES.get(host.name, "the local network (a name without a domain)")
    return next((meaning for name, meaning in LOCAL_NAMES.items() if below(host.name, name)), None)


def below(name: str, parent: str) -> bool:
    """Whether ``name`` is ``parent`` or one of its subdomains."""
    return name == parent or name.endswith("." + parent)
