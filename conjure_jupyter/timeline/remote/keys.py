"""What a session's keys are on a remote storage, and what may stand there.

::

    lease.json                 who may write
    log/00000001.jsonl …       the log, in pieces that follow on each other and are never replaced
    blobs/<sha256>             bytes by digest

A listing comes from outside: names and sizes are checked before anything is made of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from ...errors import StorageError
from ..line import MAX_LINE

LEASE = "lease.json"
LOG = "log/"
BLOBS = "blobs/"

#: Bytes that a piece of the log is filled up to; one longer line is a piece of its own.
SEGMENT_SIZE = 8 * 1024 * 1024

_SEGMENT = re.compile(r"log/([0-9]{8})\.jsonl")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of the log on the remote storage.

    Attributes:
        number: from 1.
        size: bytes.
        etag: the storage's mark of its content, empty when it gives none.
    """

    number: int
    size: int
    etag: str = ""

    @property
    def key(self) -> str:
        """Its key below the session's prefix."""
        return segment_key(self.number)


@dataclass(frozen=True, slots=True)
class Listing:
    """What a session has on the remote storage.

    Attributes:
        segments: in order, without a gap.
        blobs: size by digest.
        lease: whether there is a lease.
        other: keys that are none of these, such as the session's files.
    """

    segments: list[Segment] = field(default_factory=list)
    blobs: dict[str, int] = field(default_factory=dict)
    lease: bool = False
    other: list[str] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Bytes of the log."""
        return sum(segment.size for segment in self.segments)


def segment_key(number: int) -> str:
    """The key of a piece of the log, counted from 1."""
    return f"{LOG}{number:08d}.jsonl"


def blob_key(digest: str) -> str:
    """The key of a blob."""
    return BLOBS + digest


def is_digest(text: object) -> bool:
    """Whether this is a sha256 in hex: the only name that a blob can have."""
    return isinstance(text, str) and _DIGEST.fullmatch(text) is not None


def is_session_id(text: str) -> bool:
    """Whether this can be a session's name, which is also a folder's."""
    return _ID.fullmatch(text) is not None and not text.endswith(".")


def read_listing(where: str, entries: Iterable[tuple[str, int, str]]) -> Listing:
    """Make sense of a session's keys.

    Args:
        where: the session's URL, for messages.
        entries: key below the session's prefix, size in bytes, etag.

    Raises:
        StorageError: a name or size that this package never writes, or a piece of the log is missing.
    """
    listing = Listing()
    found: dict[int, Segment] = {}
    lease = False
    for key, size, etag in entries:
        if key.startswith(LOG) and key != LOG:
            segment = _segment(where, key, size, etag)
            found[segment.number] = segment
        elif key.startswith(BLOBS) and key != BLOBS:
            digest = key.removeprefix(BLOBS)
            if not is_digest(digest):
                raise StorageError(where, f"{_short(key)} is no name of a blob; nothing was taken from there")
            listing.blobs[digest] = size
        elif key == LEASE:
            lease = True
        else:
            listing.other.append(key)
    for number in range(1, len(found) + 1):
        if number not in found:
            raise StorageError(
                where,
                f"the log there has a gap: {segment_key(number)} is not there, {segment_key(max(found))} is. "
                "Bring the piece back (a bucket with versions still has it), or start a new session",
            )
        listing.segments.append(found[number])
    return Listing(listing.segments, listing.blobs, lease, listing.other)


def _segment(where: str, key: str, size: int, etag: str) -> Segment:
    match = _SEGMENT.fullmatch(key)
    if match is None or not int(match[1]):
        raise StorageError(
            where, f"{_short(key)} is no name of a piece of a log; nothing was taken from there"
        )
    if not 0 < size <= max(MAX_LINE, SEGMENT_SIZE):
        raise StorageError(
            where, f"{key} has {size:,} bytes, which no piece of a log has; nothing was taken from there"
        )
    return Segment(int(match[1]), size, etag)


def _short(text: str) -> str:
    return repr(text if len(text) <= 100 else text[:100] + "…")
