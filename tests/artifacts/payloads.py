"""URLs that must not reach what is not public, by the class of trick.

``public`` is the address of a site that may be fetched and ``port`` where every site listens. A payload's
``refusal`` is a part of the reason; None says that it may be fetched, as long as only the public site is
connected to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

PUBLIC_NAME = "public.example.com"


@dataclass(frozen=True)
class Payload:
    group: str
    url: str
    refusal: str | None
    dns: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)


# Address, and the class that it belongs to.
IPV4 = (
    ("0.0.0.0", "this network"),
    ("0.1.2.3", "this network"),
    ("10.0.0.1", "private"),
    ("10.255.255.255", "private"),
    ("100.64.0.1", "shared by a carrier"),
    ("100.127.255.254", "shared by a carrier"),
    ("100.100.100.200", "cloud metadata"),
    ("127.0.0.1", "loopback"),
    ("127.255.255.254", "loopback"),
    ("168.63.129.16", "cloud platform service"),
    ("169.254.0.1", "link-local"),
    ("169.254.169.254", "cloud metadata"),
    ("169.254.170.2", "cloud metadata"),
    ("172.16.0.1", "private"),
    ("172.31.255.255", "private"),
    ("192.0.0.1", "IETF protocol assignment"),
    ("192.0.0.192", "cloud metadata"),
    ("192.0.2.1", "documentation"),
    ("192.31.196.1", "AS112"),
    ("192.52.193.1", "AMT"),
    ("192.88.99.1", "6to4 relay anycast"),
    ("192.168.0.1", "private"),
    ("192.168.255.255", "private"),
    ("192.175.48.1", "AS112"),
    ("198.18.0.1", "benchmarking"),
    ("198.19.255.255", "benchmarking"),
    ("198.51.100.1", "documentation"),
    ("203.0.113.1", "documentation"),
    ("224.0.0.1", "multicast"),
    ("239.255.255.255", "multicast"),
    ("240.0.0.1", "reserved"),
    ("255.255.255.255", "broadcast"),
)
IPV6 = (
    ("::", "unspecified"),
    ("::1", "loopback"),
    ("fe80::1", "link-local"),
    ("febf::1", "link-local"),
    ("fec0::1", "site-local"),
    ("fc00::1", "unique local"),
    ("fd00::1", "unique local"),
    ("fd00:ec2::254", "cloud metadata"),
    ("fd20:ce::254", "cloud metadata"),
    ("ff02::1", "multicast"),
    ("ff0e::1", "multicast"),
    ("100::1", "discard"),
    ("100:0:0:1::1", "dummy prefix"),
    ("2001:2::1", "benchmarking"),
    ("2001:3::1", "AMT"),
    ("2001:10::1", "ORCHID"),
    ("2001:20::1", "ORCHIDv2"),
    ("2001:1::1", "IETF protocol assignment"),
    ("2001:db8::1", "documentation"),
    ("2620:4f:8000::1", "AS112"),
    ("3ffe::1", "6bone"),
    ("3fff::1", "documentation"),
    ("5f00::1", "segment routing"),
    ("4000::1", "outside of global unicast"),
    ("1::1", "outside of global unicast"),
)
EMBEDDED = (
    ("::ffff:127.0.0.1", "mapped"),
    ("::ffff:7f00:1", "mapped"),
    ("::ffff:169.254.169.254", "mapped"),
    ("0:0:0:0:0:ffff:10.0.0.1", "mapped"),
    ("::127.0.0.1", "compatible"),
    ("::a9fe:a9fe", "compatible"),
    ("::ffff:0:127.0.0.1", "translated"),
    ("::ffff:0:a9fe:a9fe", "translated"),
    ("64:ff9b::127.0.0.1", "NAT64"),
    ("64:ff9b::a9fe:a9fe", "NAT64"),
    ("64:ff9b:1::7f00:1", "NAT64, local use"),
    ("64:ff9b:1:fffe::10.0.0.1", "NAT64, local use"),
    ("2002:7f00:1::", "6to4"),
    ("2002:a9fe:a9fe::1", "6to4"),
    ("2001:0:7f00:1::", "Teredo"),
    ("2001:0:4136:e378:8000:63bf:80ff:fffe", "Teredo"),
    ("2a00:1450:4001::5efe:127.0.0.1", "ISATAP"),
    ("2a00:1450:4001:0:200:5efe:a9fe:a9fe", "ISATAP"),
)
ENCODED = (
    "2130706433",
    "2852039166",
    "0x7f000001",
    "0X7F000001",
    "0xA9FEA9FE",
    "017700000001",
    "0x7f.0x0.0x0.0x1",
    "0177.0.0.1",
    "0177.0000.0000.0001",
    "127.0.0.01",
    "127.1",
    "127.0.1",
    "10.1",
    "0",
    "0x0",
    "127.0.0.0x1",
    "127.0.0.1.",
    "127.0.0.1..",
    "localhost.",
    "metadata.google.internal.",
    "\uff11\uff12\uff17.0.0.1",
    "\u2460\u2461\u2466.\u24ea.\u24ea.\u2460",
    "\u2460\u2467\u2468.254.169.254",
    "127\u30020\u30020\u30021",
    "127\uff0e0\uff0e0\uff0e1",
    "127\uff610\uff610\uff611",
    "\uff4c\uff4f\uff43\uff41\uff4c\uff48\uff4f\uff53\uff54",
    "\u2113ocalhost",
    "localho\u017ft",
    "127.0.0.%31",
    "%6c%6f%63%61%6c%68%6f%73%74",
    "127.0.0.1%00",
    "127.0.0.1%00.example.com",
    "127.0.0.1\u00ad",
    "256.256.256.256",
    "127.0.0.1.1",
)
LOCAL = (
    "localhost",
    "LOCALHOST",
    "foo.localhost",
    "localhost.localdomain",
    "ip6-localhost",
    "metadata",
    "metadata.google.internal",
    "instance-data",
    "instance-data.ec2.internal",
    "host.docker.internal",
    "gateway.docker.internal",
    "kubernetes",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "vault.service.consul",
    "printer.local",
    "router.lan",
    "nas.home",
    "hub.home.arpa",
    "wiki.corp",
    "git.intranet",
    "db.private",
    "hidden.onion",
    "name.test",
)
# What a public name may turn out to stand for.
ANSWERS = (
    ("127.0.0.1", "loopback"),
    ("169.254.169.254", "cloud metadata"),
    ("10.0.0.1", "private"),
    ("192.168.0.1", "private"),
    ("100.64.0.1", "shared by a carrier"),
    ("0.0.0.0", "this network"),
    ("168.63.129.16", "cloud platform service"),
    ("::1", "loopback"),
    ("fd00::1", "unique local"),
    ("fe80::1", "link-local"),
    ("::ffff:127.0.0.1", "mapped"),
    ("64:ff9b::7f00:1", "NAT64"),
    ("2002:7f00:1::", "6to4"),
)
CLUSTER = {"kubernetes.default": [["10.96.0.1"]]}
SCHEMES = (
    "file:///etc/passwd",
    "file://127.0.0.1/etc/passwd",
    "ftp://public.example.com/a",
    "gopher://127.0.0.1:6379/_INFO",
    "dict://127.0.0.1:11211/stat",
    "ldap://127.0.0.1/",
    "tftp://127.0.0.1/a",
    "sftp://127.0.0.1/a",
    "ws://127.0.0.1/",
    "data:text/plain,hello",
    "javascript:alert(1)",
    "jar:http://127.0.0.1!/",
    "view-source:http://127.0.0.1/",
    "netdoc:///etc/passwd",
    "unix:///var/run/docker.sock",
    "http+unix://%2Fvar%2Frun%2Fdocker.sock/info",
)
PORTS = (22, 25, 2375, 3306, 5432, 6379, 8080, 9200, 11211, 27017)


def payloads(public: str, port: int) -> Iterator[Payload]:
    """Every payload, for a public site at ``public``, with all sites at ``port``."""
    at = "" if port == 80 else f":{port}"
    for address, name in IPV4:
        yield Payload("IPv4 literals", f"http://{address}{at}/", name)
    for address, name in IPV6:
        yield Payload("IPv6 literals", f"http://[{address}]{at}/", name)
    for zone in ("fe80::1%eth0", "fe80::1%25lo", "::1%1"):
        yield Payload("IPv6 literals", f"http://[{zone}]{at}/", "zone")
    for address, name in EMBEDDED:
        yield Payload("IPv6 that embeds IPv4", f"http://[{address}]{at}/", name)
    for host in ENCODED:
        yield Payload("odd spellings", f"http://{host}{at}/", "the host ")
    for host in LOCAL:
        yield Payload("local names", f"http://{host}{at}/", "is not public")
    yield from _by_dns(public, at)
    yield from _redirects(public, at)
    yield from _parser_tricks(at)
    for url in SCHEMES:
        yield Payload("schemes", url, "cannot be fetched, only https can")
    for other in PORTS:
        yield Payload("ports", f"http://{PUBLIC_NAME}:{other}/", f"port {other} is not allowed")


def _by_dns(public: str, at: str) -> Iterator[Payload]:
    for number, (address, name) in enumerate(ANSWERS):
        host = f"{address.replace(':', '-').replace('.', '-').strip('-')}.n{number}.example.com"
        yield Payload("names with such an address", f"http://{host}{at}/", name, {host: [[address]]})
        host = f"both{number}.example.com"
        yield Payload("names with both", f"http://{host}{at}/", name, {host: [[public, address]]})
    yield Payload("names with such an address", f"http://kubernetes.default{at}/", "private", CLUSTER)
    for number, first in enumerate(("127.0.0.1", "169.254.169.254", "10.0.0.1", "::1")):
        host = f"flips{number}.example.com"
        turns = [[public], [first]] * 8
        yield Payload("rebinding", f"http://{host}{at}/", None, {host: turns})
        host = f"turns{number}.example.com"
        yield Payload("rebinding", f"http://{host}{at}/", None, {host: [[public], [first]]})


def _redirects(public: str, at: str) -> Iterator[Payload]:
    def through(target: str) -> str:
        return f"http://{PUBLIC_NAME}{at}/to?url={quote(target, safe='')}"

    targets = [
        *((f"http://{address}{at}/", name) for address, name in ANSWERS if ":" not in address),
        *((f"http://[{address}]{at}/", name) for address, name in ANSWERS if ":" in address),
        (f"http://localhost{at}/", "loopback"),
        (f"http://metadata.google.internal{at}/computeMetadata/v1/", "private network"),
        (f"http://2130706433{at}/", "unusual spelling"),
        (f"http://0x7f.1{at}/", "unusual spelling"),
        (f"//127.0.0.1{at}/", "loopback"),
        (f"//localhost{at}/", "loopback"),
        ("///127.0.0.1/", "no host"),
        (f"/\\127.0.0.1{at}/", "backslash"),
        (f"\\\\127.0.0.1{at}/", "backslash"),
        (f"http:\\\\127.0.0.1{at}/", "backslash"),
        (f"http://user@127.0.0.1{at}/", "user name"),
        ("file:///etc/passwd", "cannot be fetched"),
        ("gopher://127.0.0.1:6379/_INFO", "cannot be fetched"),
        ("ftp://127.0.0.1/", "cannot be fetched"),
        ("data:text/plain,hello", "cannot be fetched"),
        ("javascript:alert(1)", "cannot be fetched"),
        (f"http://{PUBLIC_NAME}:22/", "port 22 is not allowed"),
    ]
    for target, name in targets:
        yield Payload("redirects", through(target), name)
    for target, name in targets[:6]:
        yield Payload("redirects of two hops", through(through(target)), name)
    for number, (address, name) in enumerate(ANSWERS[:4]):
        host = f"later{number}.example.com"
        yield Payload("redirects to a name", through(f"http://{host}{at}/"), name, {host: [[address]]})
    # The same name again: good when it was asked for, another at the redirect back to it.
    host = "back.example.com"
    url = f"http://{host}{at}/to?url=" + quote(f"http://{host}{at}/", safe="")
    yield Payload("redirects to a name", url, "loopback", {host: [[public], ["127.0.0.1"]]})


def _parser_tricks(at: str) -> Iterator[Payload]:
    refused = (
        (f"http://{PUBLIC_NAME}@127.0.0.1{at}/", "user name"),
        (f"http://{PUBLIC_NAME}:80@127.0.0.1{at}/", "user name"),
        (f"http://127.0.0.1{at}\\@{PUBLIC_NAME}/", "backslash"),
        (f"http://{PUBLIC_NAME}\\@127.0.0.1{at}/", "backslash"),
        (f"http:\\\\127.0.0.1{at}/", "backslash"),
        (f"http://127.0.0.1{at}#@{PUBLIC_NAME}/", "loopback"),
        (f"http://127.0.0.1{at}?@{PUBLIC_NAME}/", "loopback"),
        (f"http://127.0.0.1\t{at}/", "control characters"),
        ("http://127.0.0\n.1/", "control characters"),
        (f"\thttp://127.0.0.1{at}/", "control characters"),
        (f" http://127.0.0.1{at}/", "spaces"),
        (f"http://127.0.0.1 {at}/", "the host "),
        (f"http:///127.0.0.1{at}/", "no host"),
        (f"http:////127.0.0.1{at}/", "no host"),
        (f"http:127.0.0.1{at}/", "not followed by //"),
        (f"http:/127.0.0.1{at}/", "not followed by //"),
        (f"//127.0.0.1{at}/", "no absolute URL"),
        (f"http://[127.0.0.1]{at}/", "no IPv6 address"),
        (f"http://[::1{at}/", "open bracket"),
        (f"http://[::1].{PUBLIC_NAME}/", "no valid name"),
        (f"http://[{PUBLIC_NAME}]{at}/", "no IPv6 address"),
        ("http://127.0.0.1:080/", "the port "),
        ("http://127.0.0.1:/", "the port "),
        ("http://127.0.0.1:80:80/", "the port "),
        ("http://127.0.0.1:\uff18\uff10/", "the port "),
        (f"http://{PUBLIC_NAME}:65616/", "the port "),
        (f"http://127.0.0.1,{PUBLIC_NAME}{at}/", "no valid name"),
        (f"http://127.0.0.1;{PUBLIC_NAME}{at}/", "no valid name"),
        (f"http://127.0.0.1&{PUBLIC_NAME}{at}/", "no valid name"),
        (f"http://..127.0.0.1{at}/", "the host "),
        (f"http://-{PUBLIC_NAME}{at}/", "no valid name"),
    )
    for url, reason in refused:
        yield Payload("parser tricks", url, reason)
    # The public name is the host by every reading of RFC 3986: these are fetched, and from there alone.
    for url in (
        f"http://{PUBLIC_NAME}{at}#@127.0.0.1/",
        f"http://{PUBLIC_NAME}{at}?@127.0.0.1/",
        f"http://{PUBLIC_NAME}{at}/@127.0.0.1/",
        f"http://{PUBLIC_NAME}{at}//127.0.0.1/",
        f"http://{PUBLIC_NAME}{at}/%0d%0aHost:%20127.0.0.1",
    ):
        yield Payload("parser tricks", url, None)
