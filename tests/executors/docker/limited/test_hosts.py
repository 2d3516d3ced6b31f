"""Which hosts a list means."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conjure_jupyter.artifacts.fetch.hosts import parse_host
from conjure_jupyter.errors import SettingsError
from conjure_jupyter.executors.docker.limited.hosts import AllowedHosts

label = st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True)


@pytest.mark.parametrize(
    ("entry", "host"),
    [
        ("pypi.org", "pypi.org"),
        (" PyPI.org. ", "pypi.org"),
        ("*.pythonhosted.org", "files.pythonhosted.org"),
        ("*.PythonHosted.org.", "a.b.pythonhosted.org"),
        ("bücher.de", "xn--bcher-kva.de"),
        ("*.bücher.de", "www.xn--bcher-kva.de"),
        ("xn--bcher-kva.de", "bücher.de"),
        ("1.2.3.4", "1.2.3.4"),
        ("2a00:1450::1", "[2a00:1450:0::1]"),
        ("[2a00:1450::1]", "[2a00:1450::1]"),
    ],
)
def test_an_entry_means_a_host(entry: str, host: str) -> None:
    assert parse_host(host) in AllowedHosts([entry])


@pytest.mark.parametrize(
    ("entry", "host"),
    [
        ("pypi.org", "www.pypi.org"),
        ("pypi.org", "xpypi.org"),
        ("pypi.org", "pypi.org.evil.com"),
        ("*.pypi.org", "pypi.org"),
        ("*.pypi.org", "xpypi.org"),
        ("*.pypi.org", "pypi.org.evil.com"),
        ("*.2.3.com", "1.2.3.4"),
        ("1.2.3.4", "1.2.3.5"),
    ],
)
def test_it_means_no_other(entry: str, host: str) -> None:
    assert parse_host(host) not in AllowedHosts([entry])


def test_no_entries_mean_no_host() -> None:
    assert parse_host("pypi.org") not in AllowedHosts([])


@pytest.mark.parametrize(
    "entry",
    [
        *("", "*", "*.", "*.*", "a.*.com", "**.com", "https://pypi.org", "pypi.org:443", "pypi.org/simple"),
        *("0x7f.1", "2130706433", "127.1", "*.1.2.3.4", "a..b", "-a.com", "a b.com", "user@pypi.org", "[::1"),
        "1.2.3.4/8",
    ],
)
def test_what_can_mean_no_host_is_said_at_once(entry: str) -> None:
    with pytest.raises(SettingsError, match="network_hosts"):
        AllowedHosts([entry])


@settings(deadline=None)
@given(st.lists(label, min_size=2, max_size=4), st.lists(label, min_size=1, max_size=4))
def test_a_domain_means_exactly_what_ends_in_its_labels(domain: list[str], name: list[str]) -> None:
    allowed = AllowedHosts(["*." + ".".join(domain)])
    assert (parse_host(".".join(name)) in allowed) is (
        len(name) > len(domain) and name[-len(domain) :] == domain
    )
    assert parse_host(".".join([*name, *domain])) in allowed
