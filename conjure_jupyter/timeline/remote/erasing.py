"""Deleting a session from a remote storage."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from pathlib import Path

from ...errors import StorageConflictError, ToolError
from ...storage.bucket import Bucket
from .contents import Mirrored
from .holder import introduce, own_token
from .keys import BLOBS, LEASE, LOG
from .lease import Lease

#: Keys that are deleted with one request.
_AT_ONCE = 1000


async def erase(storage: Mirrored, folder: Path | None = None, *, force: bool = False) -> list[str]:
    """Delete a session's log, blobs and lease there; the lease last, so that nobody writes meanwhile.

    After a failure, doing it again deletes the rest. A log that is damaged is deleted all the same.

    Args:
        storage: the session's.
        folder: the session's on this machine, when it has one: a lease that a crash left is then known.
        force: also from under a writer that still lives, who is told and stops.

    Returns:
        The keys that were deleted, below the session's prefix; nothing when there was nothing.

    Raises:
        StorageConflictError: somebody uses the session; nothing was deleted.
        StorageUnavailableError: the service did not answer; the rest is still there.
        StorageError: any other failure.
    """
    bucket = storage.bucket
    if not await _keys(bucket, LOG, BLOBS, LEASE):
        return []
    token = secrets.token_hex(16)
    if folder is not None:
        with contextlib.suppress(ToolError):  # it is gone, or cannot be written
            token = await asyncio.to_thread(own_token, folder)
    lease = Lease(bucket, introduce(token))
    await lease.take(force=force)
    try:
        erased = []
        for prefix in (LOG, BLOBS):
            keys = await _keys(bucket, prefix)
            # From the end: what is left of a log after a failure has no gap.
            for start in range(0, len(keys), _AT_ONCE):
                await lease.hold()
                some = keys[::-1][start : start + _AT_ONCE]
                await bucket.delete_many(some)
                erased += some
        await lease.remove()
    except BaseException:
        await lease.release()
        raise
    left = await _keys(bucket, LOG, BLOBS)
    if left:
        raise StorageConflictError(bucket.url, f"somebody wrote {left[0]} meanwhile; erase the session again")
    return [*erased, LEASE]


async def _keys(bucket: Bucket, *prefixes: str) -> list[str]:
    found = await asyncio.gather(*(bucket.list(prefix) for prefix in prefixes))
    return [item.key for items in found for item in items]
