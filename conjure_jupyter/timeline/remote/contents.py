"""What a session has on a remote storage."""

from __future__ import annotations

import asyncio
from typing import Protocol

from ...storage.bucket import Bucket
from .keys import BLOBS, LOG, Listing, read_listing


class Mirrored(Protocol):
    """A storage that has a bucket for one session's keys."""

    @property
    def bucket(self) -> Bucket:
        """The session's keys."""


async def contents(bucket: Bucket) -> Listing:
    """The pieces of the log and the blobs that are there.

    Raises:
        StorageError: a name or size that this package never writes, or a piece of the log is missing.
        StorageUnavailableError: the service did not answer.
    """
    log, blobs = await asyncio.gather(bucket.list(LOG), bucket.list(BLOBS))
    return read_listing(bucket.url, [(item.key, item.size, item.etag) for item in log + blobs])
