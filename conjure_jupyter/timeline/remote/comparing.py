"""How the log on this machine and the remote one stand to each other, byte for byte."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path

from ...errors import StorageConflictError, TimelineError
from ...storage.bucket import Bucket
from .keys import Listing, Segment
from .pieces import check_piece, open_log, same_by_etag


@dataclass(frozen=True, slots=True)
class Standing:
    """What two logs have in common.

    Attributes:
        common: bytes from the start that are the same.
        local: bytes of whole lines here.
        remote: bytes there.
    """

    common: int
    local: int
    remote: int

    @property
    def diverged(self) -> bool:
        """Whether each has what the other has not."""
        return self.common < min(self.local, self.remote)


async def compare(bucket: Bucket, path: Path, size: int, listing: Listing) -> Standing:
    """Compare the first ``size`` bytes of a local log with the pieces that are remote.

    A piece is brought here only when its etag does not tell that it is the same.

    Raises:
        TimelineError: the local log cannot be read.
        StorageError: a piece cannot be brought, or is none.
    """
    at = 0
    for segment in listing.segments:
        ours, same = await asyncio.to_thread(_ours, path, at, min(segment.size, size - at), segment)
        if not ours:
            break
        if not same:
            theirs = await bucket.get(segment.key)
            check_piece(bucket.url, segment, theirs)
            if not theirs.startswith(ours):
                return Standing(at + _common(ours, theirs), size, listing.size)
        at += len(ours)
        if len(ours) < segment.size:
            break
    return Standing(at, size, listing.size)


def must_continue(standing: Standing, url: str, folder: Path) -> None:
    """Make sure that what is here continues what is there.

    Raises:
        StorageConflictError: the remote log has lines that the local one has not; says what to do.
    """
    if standing.diverged:
        raise diverged(url, folder, standing.common)
    if standing.remote > standing.local:
        raise StorageConflictError(
            url,
            f"the log there goes on where the one in {folder} ends: the session was continued on another "
            f"machine. Nothing was overwritten. Resume {url.rstrip('/')} to bring what is new",
        )


def diverged(url: str, folder: Path, common: int) -> StorageConflictError:
    """The error of two logs that each have what the other has not."""
    return StorageConflictError(
        url,
        f"the log there and the one in {folder} differ after {common:,} bytes: the session was continued in "
        f"two places. Nothing was overwritten. To go on with the remote one, move {folder} away and resume "
        f"{url.rstrip('/')}; to go on with the local one, give that folder another name and resume it",
    )


def _ours(path: Path, start: int, length: int, segment: Segment) -> tuple[bytes, bool]:
    data = read(path, start, length)
    return data, len(data) == segment.size and same_by_etag(data, segment.etag)


def read(path: Path, start: int, length: int) -> bytes:
    """Bytes of the local log; fewer when it ends before.

    Raises:
        TimelineError: it cannot be read.
    """
    if length <= 0:
        return b""
    try:
        fd = open_log(path)
        try:
            return os.pread(fd, length, start)
        finally:
            os.close(fd)
    except OSError as error:
        raise TimelineError(path, f"cannot be read ({error.strerror})") from error


def _common(one: bytes, other: bytes) -> int:
    shorter = min(len(one), len(other))
    return next((at for at in range(shorter) if one[at] != other[at]), shorter)
