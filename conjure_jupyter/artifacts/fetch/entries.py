"""What is remembered of a fetched URL besides its bytes, as one small JSON file."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any

#: Format of the file; another one is as good as none.
FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One answer.

    Attributes:
        url: what was asked for, as the parser spells it.
        hops: the URLs on the way, the first and the last included; the last is where the bytes came from.
        sha256: digest of the content.
        size: bytes of the content.
        content_type: media type without parameters.
        name: a safe file name.
        etag: the server's, to ask whether it has changed; or nothing.
        last_modified: the server's, for the same; or nothing.
        fetched: when the server last said that this is its content, in seconds since 1970.
        ask: ask again at every use (``no-cache``).
    """

    url: str
    hops: tuple[str, ...]
    sha256: str
    size: int
    content_type: str
    name: str
    etag: str = ""
    last_modified: str = ""
    fetched: float = 0.0
    ask: bool = False

    def fresh(self, now: float, ttl: float) -> bool:
        """Whether the bytes may be used without asking; never for a time that lies ahead."""
        return not self.ask and 0 <= now - self.fetched < ttl

    def validators(self) -> dict[str, str]:
        """The headers that ask for the content only if it has changed."""
        asked = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {name: value for name, value in asked.items() if value}

    def dump(self) -> bytes:
        """The file's content."""
        return json.dumps({"format": FORMAT, **dataclasses.asdict(self)}).encode()


_TYPES: dict[str, type | tuple[type, ...]] = {
    "url": str,
    "hops": list,
    "sha256": str,
    "size": int,
    "content_type": str,
    "name": str,
    "etag": str,
    "last_modified": str,
    "fetched": (int, float),
    "ask": bool,
}


def load_entry(data: bytes) -> Entry | None:
    """The entry of a file, None when the file is damaged or of another format."""
    try:
        found: Any = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.pop("format", None) != FORMAT or found.keys() != _TYPES.keys():
        return None
    if not all(isinstance(found[name], kind) for name, kind in _TYPES.items()):
        return None
    if not found["hops"] or not all(isinstance(hop, str) for hop in found["hops"]):
        return None
    return Entry(**{**found, "hops": tuple(found["hops"])})
