"""The one parser of URLs: what it reads is what is checked, and what is checked is what is connected to.

RFC 3986, less whatever two readers could take differently. Refused are backslashes, control characters,
user names, ports with leading zeros or none, and the hosts that :mod:`.hosts` refuses.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from urllib.parse import quote

from ...errors import FetchBlockedError
from .hosts import Host, local_meaning, parse_host
from .policy import FetchPolicy

#: Most characters of a URL.
MAX_LENGTH = 8192

_DEFAULT_PORTS = {"http": 80, "https": 443}

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<target>[^#]*)(?:#.*)?")
_AUTHORITY = re.compile(r"(?P<host>\[[^\[\]]*+\]?+|[^\[\]:]*+)(?::(?P<port>.*))?")
_PORT = re.compile(r"[1-9][0-9]{0,4}")
_USERINFO = re.compile(r"(?<=//)[^/?#]*@")

# Sent as it is; all else is sent percent-encoded. "%" is among them: what is encoded already stays so.
_SAFE = "/?%:@!$&'()*+,;=~[]"


@dataclass(frozen=True, slots=True)
class URL:
    """A URL in its one spelling; its text has no fragment.

    Attributes:
        scheme: ``http`` or ``https``, for one that was checked.
        host: the name or address.
        port: also when it is the scheme's own.
        target: path and query as they are sent, in ASCII; begins with a slash.
    """

    scheme: str
    host: Host
    port: int
    target: str

    @property
    def authority(self) -> str:
        """Host, and the port where it is not the scheme's own: what ``Host`` says."""
        return str(self.host) if self.port == _DEFAULT_PORTS.get(self.scheme) else f"{self.host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


def check_url(text: str, policy: FetchPolicy) -> URL:
    """Read a URL and check all of it that can be checked before its name is looked up.

    Raises:
        FetchBlockedError: it may not be fetched; says which rule it breaks and what to do.
    """
    if not policy.enabled:
        raise FetchBlockedError(without_userinfo(text), "fetching is off; url_fetch_enabled turns it on")
    try:
        url = parse_url(text, policy)
    except ValueError as error:
        raise FetchBlockedError(without_userinfo(text), str(error)) from None
    reason = _refusal(url, policy)
    if reason is not None:
        raise FetchBlockedError(without_userinfo(text), reason)
    return url


def parse_url(text: str, policy: FetchPolicy) -> URL:
    """Read an absolute URL.

    Raises:
        ValueError: it is none, has another scheme than the policy's, or could be read in two ways.
    """
    if len(text) > MAX_LENGTH:
        raise ValueError(f"it is longer than {MAX_LENGTH:,} characters")
    if "\\" in text:
        raise ValueError("it has a backslash; URLs are written with /")
    if any(unicodedata.category(char) in {"Cc", "Cs", "Zl", "Zp"} for char in text):
        raise ValueError("it has control characters or line ends; remove them")
    if text != text.strip():
        raise ValueError("it has spaces around it; remove them")
    found = _SCHEME.match(text)
    if found is None:
        raise ValueError("it is no absolute URL; write https://host/path")
    scheme = found[1].lower()
    if scheme not in policy.schemes:
        raise ValueError(_scheme_reason(scheme))
    match = _URL.fullmatch(text)
    if match is None:
        raise ValueError("the scheme is not followed by //; write https://host/path")
    host, port = parse_authority(match["authority"])
    target = match["target"]
    if not target.startswith("/"):
        target = "/" + target
    return URL(scheme, host, port or _DEFAULT_PORTS[scheme], quote(target, safe=_SAFE))


def _scheme_reason(scheme: str) -> str:
    if scheme == "http":
        return "the scheme http is not allowed; use https, or add http to url_schemes"
    if scheme == "https":
        return "the scheme https is not in url_schemes"
    return f"the scheme {scheme} cannot be fetched, only https can; give the file itself by its path"


def parse_authority(text: str) -> tuple[Host, int | None]:
    """Read ``host`` or ``host:port``, as it stands in a URL.

    Raises:
        ValueError: it is neither, or could be read in two ways.
    """
    if "@" in text:
        raise ValueError("it has a user name or password, which are never sent; remove them")
    match = _AUTHORITY.fullmatch(text)
    if match is None:
        raise ValueError("the host is no valid name")
    port = match["port"]
    if port is not None and (not _PORT.fullmatch(port) or int(port) > 65535):
        raise ValueError("the port is not a number from 1 to 65535")
    return parse_host(match["host"]), int(port) if port else None


def _refusal(url: URL, policy: FetchPolicy) -> str | None:
    """Why the policy refuses a URL, None when it does not."""
    if url.port not in policy.ports:
        return f"port {url.port} is not allowed; add it to url_ports"
    if policy.blocks(url.host):
        return f"the host {url.host.name} is in url_blocked_hosts"
    meaning = local_meaning(url.host)
    if meaning is not None:
        return refused_place(f"the host {url.host.name}", meaning)
    refused = policy.refused_address(url.host.address) if url.host.address is not None else None
    return refused_place(f"the address {url.host.name}", refused) if refused is not None else None


def refused_place(subject: str, name: str) -> str:
    """Tell a class of places that nothing is fetched from, and what can be done about it."""
    return (
        f"{subject} is not public ({name}), and nothing else is fetched from; "
        "download the file yourself and give it by its path"
    )


def join(base: URL, reference: str) -> str:
    """The text of the URL that a ``Location`` means, seen from ``base`` (RFC 3986, section 5.2).

    The result is not checked.
    """
    reference = reference.partition("#")[0]
    if _SCHEME.match(reference):
        return reference
    if reference.startswith("//"):
        return f"{base.scheme}:{reference}"
    path, mark, query = reference.partition("?")
    base_path, base_mark, base_query = base.target.partition("?")
    if not path:
        path = base_path
        if not mark:
            mark, query = base_mark, base_query
    elif path.startswith("/"):
        path = _without_dots(path)
    else:
        path = _without_dots(base_path.rpartition("/")[0] + "/" + path)
    return f"{base.scheme}://{base.authority}{path}{mark}{query}"


def _without_dots(path: str) -> str:
    """Walk ``.`` and ``..`` (RFC 3986, section 5.2.4)."""
    kept: list[str] = []
    parts = path.split("/")[1:]
    for part in parts:
        if part == "..":
            del kept[-1:]
        elif part != ".":
            kept.append(part)
    if parts[-1] in {".", ".."}:
        kept.append("")
    return "/" + "/".join(kept)


def without_userinfo(text: str) -> str:
    """A URL as it may be shown."""
    return _USERINFO.sub("", text)
