"""Which addresses are refused, each by the class it belongs to.

The standard library's ``is_global`` is not asked: on Python 3.11 it lets NAT64, 6to4, site-local, multicast
and two later assignments pass. The table is made from IANA's special-purpose registries for IPv4 and IPv6
and the RFCs beside each row. Of IPv6 only what IANA gives out as global unicast (2000::/3) can pass at all.

An IPv6 address that carries an IPv4 one is refused whatever it carries: where the packet ends is for a
translator on the way to decide. A network that reaches IPv4 only by NAT64 therefore cannot fetch.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class RefusedNetwork:
    """A network that nothing is fetched from.

    Attributes:
        network: the addresses.
        name: the class, as users are told it.
        source: where the rule comes from.
    """

    network: Network
    name: str
    source: str


_METADATA = "cloud metadata"
_EMBEDDED = "IPv6 that embeds IPv4"

# The first row that has the address names its class, so the narrower one stands before the wider.
_ROWS_4 = (
    ("0.0.0.0/8", "this network (unspecified)", "RFC 791, RFC 1122"),
    ("10.0.0.0/8", "private", "RFC 1918"),
    ("100.100.100.200/32", _METADATA, "Alibaba Cloud"),
    ("100.64.0.0/10", "shared by a carrier (CGNAT)", "RFC 6598"),
    ("127.0.0.0/8", "loopback", "RFC 1122"),
    ("168.63.129.16/32", "cloud platform service", "Microsoft Azure; a public address by its number"),
    ("169.254.169.254/32", _METADATA, "AWS, Google Cloud, Azure and others"),
    ("169.254.170.2/32", _METADATA, "AWS ECS"),
    ("169.254.0.0/16", "link-local", "RFC 3927"),
    ("172.16.0.0/12", "private", "RFC 1918"),
    ("192.0.0.192/32", _METADATA, "Oracle Cloud"),
    ("192.0.0.0/24", "IETF protocol assignment", "RFC 6890"),
    ("192.0.2.0/24", "documentation (TEST-NET-1)", "RFC 5737"),
    ("192.31.196.0/24", "AS112 anycast", "RFC 7535"),
    ("192.52.193.0/24", "AMT relay anycast", "RFC 7450"),
    ("192.88.99.0/24", "6to4 relay anycast", "RFC 7526"),
    ("192.168.0.0/16", "private", "RFC 1918"),
    ("192.175.48.0/24", "AS112 anycast", "RFC 7534"),
    ("198.18.0.0/15", "benchmarking", "RFC 2544"),
    ("198.51.100.0/24", "documentation (TEST-NET-2)", "RFC 5737"),
    ("203.0.113.0/24", "documentation (TEST-NET-3)", "RFC 5737"),
    ("224.0.0.0/4", "multicast", "RFC 1112"),
    ("255.255.255.255/32", "broadcast", "RFC 8190"),
    ("240.0.0.0/4", "reserved", "RFC 1112"),
)
_ROWS_6 = (
    ("::/128", "unspecified", "RFC 4291"),
    ("::1/128", "loopback", "RFC 4291"),
    ("::ffff:0:0/96", f"{_EMBEDDED} (mapped)", "RFC 4291"),
    ("::ffff:0:0:0/96", f"{_EMBEDDED} (translated)", "RFC 2765"),
    ("::/96", f"{_EMBEDDED} (compatible)", "RFC 4291"),
    ("64:ff9b::/96", f"{_EMBEDDED} (NAT64)", "RFC 6052"),
    ("64:ff9b:1::/48", f"{_EMBEDDED} (NAT64, local use)", "RFC 8215"),
    ("100::/64", "discard", "RFC 6666"),
    ("100:0:0:1::/64", "dummy prefix", "RFC 9780"),
    ("2001::/32", f"{_EMBEDDED} (Teredo)", "RFC 4380"),
    ("2001:2::/48", "benchmarking", "RFC 5180"),
    ("2001:3::/32", "AMT relay anycast", "RFC 7450"),
    ("2001:4:112::/48", "AS112 anycast", "RFC 7535"),
    ("2001:10::/28", "identifier, not an address (ORCHID)", "RFC 4843"),
    ("2001:20::/28", "identifier, not an address (ORCHIDv2)", "RFC 7343"),
    ("2001:30::/28", "identifier, not an address (DRIP)", "RFC 9374"),
    ("2001::/23", "IETF protocol assignment", "RFC 2928"),
    ("2001:db8::/32", "documentation", "RFC 3849"),
    ("2002::/16", f"{_EMBEDDED} (6to4)", "RFC 3056"),
    ("2620:4f:8000::/48", "AS112 anycast", "RFC 7534"),
    ("3ffe::/16", "returned by the 6bone", "RFC 3701"),
    ("3fff::/20", "documentation", "RFC 9637"),
    ("5f00::/16", "segment routing identifier", "RFC 9602"),
    ("fd00:ec2::254/128", _METADATA, "AWS"),
    ("fd20:ce::254/128", _METADATA, "Google Cloud"),
    ("fc00::/7", "unique local", "RFC 4193"),
    ("fe80::/10", "link-local", "RFC 4291"),
    ("fec0::/10", "site-local", "RFC 3879"),
    ("ff00::/8", "multicast", "RFC 4291"),
)

REFUSED_4 = tuple(RefusedNetwork(ipaddress.IPv4Network(net), name, src) for net, name, src in _ROWS_4)
REFUSED_6 = tuple(RefusedNetwork(ipaddress.IPv6Network(net), name, src) for net, name, src in _ROWS_6)

_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")

#: The upper half of an ISATAP interface identifier, with and without the "universal" bit (RFC 5214).
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)


def check_address(address: str | Address) -> str | None:
    """The class by which an address is refused, None when it is public.

    Args:
        address: an address or its text; what is no address is refused as such.
    """
    if isinstance(address, str):
        try:
            address = ipaddress.ip_address(address)
        except ValueError:
            return "not an address"
    if isinstance(address, ipaddress.IPv4Address):
        return next((row.name for row in REFUSED_4 if address in row.network), None)
    return _check_6(address)


def _check_6(address: ipaddress.IPv6Address) -> str | None:
    if address.scope_id is not None:
        return "link-local (with a zone)"
    for row in REFUSED_6:
        if address in row.network:
            return row.name
    if address not in _GLOBAL_UNICAST:
        return "reserved (outside of global unicast)"
    if (int(address) >> 32) & 0xFFFF_FFFF in _ISATAP:
        return f"{_EMBEDDED} (ISATAP)"
    return None
