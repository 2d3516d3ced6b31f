"""Which addresses are refused, and that each row of the table is needed."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conjure_jupyter.artifacts.fetch import check_address
from conjure_jupyter.artifacts.fetch.addresses import REFUSED_4, REFUSED_6, RefusedNetwork

from .payloads import EMBEDDED, IPV4, IPV6

PUBLIC = (
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "168.63.129.15",
    "169.253.255.255",
    "172.15.255.255",
    "172.32.0.0",
    "192.0.1.0",
    "192.167.255.255",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "2606:4700:4700::1111",
    "2001:4860:4860::8888",
    "2001:200::1",
    "2003::1",
    "2a00:1450:4001::5eff:7f00:1",
    "3ffd::1",
)


@pytest.mark.parametrize(("address", "name"), [*IPV4, *IPV6, *EMBEDDED])
def test_an_address_that_is_not_public_is_refused_by_its_class(address: str, name: str) -> None:
    refused = check_address(address)
    assert refused is not None
    assert name in refused
    assert check_address(ipaddress.ip_address(address)) == refused


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_passes(address: str) -> None:
    assert check_address(address) is None


@pytest.mark.parametrize("text", ["", "localhost", "127.1", "0x7f.0.0.1", "010.0.0.1", "[::1]", "1.2.3.4/32"])
def test_what_is_no_address_is_refused(text: str) -> None:
    assert check_address(text) == "not an address"


@pytest.mark.parametrize("row", [*REFUSED_4, *REFUSED_6], ids=lambda row: str(row.network))
def test_a_network_is_refused_to_its_edges_and_no_row_hides_another(row: RefusedNetwork) -> None:
    count = row.network.num_addresses
    found = {check_address(row.network[at]) for at in (0, count // 2, count - 1)}
    assert None not in found
    assert row.name in found
    assert row.source


@given(st.ip_addresses())
def test_nothing_passes_that_the_standard_library_calls_private(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    if not address.is_global or address.is_multicast or address.is_reserved:
        assert check_address(address) is not None


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_in_an_ipv6_one_is_refused_whatever_it_is(address: ipaddress.IPv4Address) -> None:
    number = int(address)
    for prefix, shift in (
        ("::", 0),
        ("::ffff:0:0", 0),
        ("::ffff:0:0:0", 0),
        ("64:ff9b::", 0),
        ("64:ff9b:1::", 0),
        ("2002::", 80),
        ("2001::", 64),
        ("2a00:1450::5efe:0:0", 0),
        ("2a00:1450::200:5efe:0:0", 0),
    ):
        assert (
            check_address(ipaddress.IPv6Address(int(ipaddress.IPv6Address(prefix)) | number << shift))
            is not None
        )
