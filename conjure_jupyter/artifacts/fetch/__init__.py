"""Fetching of URLs that someone else wrote, without reaching what is not theirs to reach.

A name is looked up once for each connection, every answer is checked by class, and the connection is made
to a checked address itself, with the name kept for ``Host``, SNI and the certificate. Every redirect goes
through the same. Proxies, cookies and credentials are never used; size and time are bounded as content comes.
"""

from __future__ import annotations

from .addresses import check_address
from .fetcher import Fetched, Fetcher
from .policy import FetchPolicy
from .urls import URL, check_url

__all__ = ["URL", "FetchPolicy", "Fetched", "Fetcher", "check_address", "check_url"]
