"""The list of hosts that a container may reach."""

from __future__ import annotations

from collections.abc import Sequence

from ....artifacts.fetch.addresses import Address
from ....artifacts.fetch.hosts import Host, parse_host
from ....errors import SettingsError


class AllowedHosts:
    """Names, domains and addresses, in the one spelling that hosts of URLs have too.

    Args:
        entries: ``example.com`` for that name alone, ``*.example.com`` for all below it, or an address.

    Raises:
        SettingsError: one of them is nothing of these.
    """

    def __init__(self, entries: Sequence[str]) -> None:
        self._names: set[str] = set()
        self._domains: set[str] = set()
        self._addresses: set[Address] = set()
        for entry in entries:
            self._add(entry.strip())

    def _add(self, entry: str) -> None:
        domain = entry.startswith("*.")
        name = entry.removeprefix("*.").removesuffix(".")
        if ":" in name and not name.startswith("["):
            name = f"[{name}]"  # an IPv6 address, or nothing that may stand here
        try:
            host = parse_host(name)
        except ValueError as error:
            reason = f"{entry!r}: {error}; give a name such as pypi.org or *.example.com, and no port"
            raise SettingsError("network_hosts", reason) from None
        if host.address is not None and domain:
            raise SettingsError("network_hosts", f"{entry!r}: nothing is below an address")
        if host.address is not None:
            self._addresses.add(host.address)
        elif domain:
            self._domains.add(host.name)
        else:
            self._names.add(host.name)

    def __contains__(self, host: Host) -> bool:
        """Whether a host is on the list; the name of a domain itself is not below it."""
        if host.address is not None:
            return host.address in self._addresses
        labels = host.name.split(".")
        parents = (".".join(labels[start:]) for start in range(1, len(labels)))
        return host.name in self._names or any(parent in self._domains for parent in parents)
