"""One operation that waits to be sent."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from .files import Signature
from .keys import check_key

#: How a put treats what is there: replaces it, whatever it is; expects nothing; or just what is known.
Mode = Literal["any", "new", "known"]

#: What is kept of an entry in this process alone.
_TRANSIENT = {"signature", "content", "durable", "flying"}


@dataclass(slots=True)
class Entry:
    """One operation that waits.

    Attributes:
        seq: its number; later ones are larger.
        op: what to do.
        key: with what.
        ordered: it waits for all before it.
        mode: how a put treats what is there.
        sha256: of the bytes to put.
        size: their number.
        content_type: their MIME type.
        held: where they are: with the entry, in a file of the queue's, or in the key's own file.
        etag: of what is expected there, when it is known.
        replaces: SHA-256 of what is expected there, when it is known.
        signature: of the key's file when the entry was made.
        content: the bytes, when they are few and the entry was made by this process.
        durable: it is on disk.
        flying: it is on its way.
    """

    seq: int
    op: Literal["put", "delete"]
    key: str
    ordered: bool = False
    mode: Mode = "any"
    sha256: str = ""
    size: int = 0
    content_type: str | None = None
    held: Literal["", "inline", "spool", "file"] = ""
    etag: str = ""
    replaces: str = ""
    signature: Signature | None = field(default=None, compare=False)
    content: bytes | None = field(default=None, compare=False, repr=False)
    durable: bool = field(default=False, compare=False)
    flying: bool = field(default=False, compare=False)

    def to_json(self) -> dict[str, Any]:
        """What lasts of it."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name not in _TRANSIENT}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Entry:
        """The entry again, as one that is on disk.

        Raises:
            StorageError: its key can be none.
            TypeError: a value is missing or unknown.
        """
        entry = cls(**values, durable=True)
        check_key(entry.key)
        return entry


def dumps(values: dict[str, Any]) -> bytes:
    """One line of JSON, without its end."""
    return json.dumps(values, separators=(",", ":")).encode()
