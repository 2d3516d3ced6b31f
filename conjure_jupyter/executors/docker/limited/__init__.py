"""The network ``limited``: a container without any, and a guarded proxy for what uses proxies.

The container has the network ``none``. A relay in it listens on its loopback and hands every connection, as
frames over its own input and output, to a proxy here that lets through what the list of hosts names, by a
look-up and an address check of its own. A program that ignores ``HTTPS_PROXY`` reaches nothing at all.
"""

from __future__ import annotations

from .connecting import through
from .network import LimitedNetwork

__all__ = ["LimitedNetwork", "through"]
