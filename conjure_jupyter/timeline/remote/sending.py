"""The lines of a local log on their way to the remote one, piece by piece, each after the blobs it names."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ...errors import StorageConflictError, StorageNotFoundError, TimelineError
from ...storage.bucket import Bucket
from ..log import Timeline
from .comparing import compare, diverged, must_continue, read
from .contents import contents
from .keys import segment_key
from .lease import Lease
from .naming import BlobsOf, listed_in, named_in
from .pieces import cut
from .uploads import BlobUploads


class LogSender:
    """Knows how much of a log is remote, and sends more of it.

    Args:
        timeline: the session's log, open for writing.
        bucket: the session's keys.
        lease: the right to write there.
        ask: says which blobs a block names.
        tell: hears of blobs that cannot be sent.

    Attributes:
        sent: bytes of the log that are remote.
        connected: whether the lease was taken and the remote log was looked at.
    """

    def __init__(
        self, timeline: Timeline, bucket: Bucket, lease: Lease, ask: BlobsOf, tell: Callable[[str], None]
    ) -> None:
        self.sent = 0
        self.connected = False
        self._timeline = timeline
        self._bucket = bucket
        self._lease = lease
        self._ask = ask
        self._folder = timeline.folder / "blobs"
        self._blobs = BlobUploads(bucket, self._folder, tell)
        self._next = 1  # the number of the next piece
        self._piece = b""  # being sent; the same bytes are tried until they are there

    async def connect(self, size: int, *, force: bool = False) -> None:
        """Take the lease and find out what is there.

        Args:
            size: bytes of the local log.
            force: take the lease from a holder that still lives.

        Raises:
            StorageConflictError: the lease is somebody else's, or the logs differ.
            StorageUnavailableError: the service did not answer.
            StorageError: what is there is damaged, or the service refuses.
            TimelineError: the local log cannot be read.
        """
        await self._lease.take(force=force)
        listing = await contents(self._bucket)
        standing = await compare(self._bucket, self._timeline.path, size, listing)
        must_continue(standing, self._bucket.url, self._timeline.folder)
        self.sent, self._next = listing.size, len(listing.segments) + 1
        self._blobs.know(listing.blobs)
        self.connected = True

    async def send(self, end: int, progress: Callable[[], None]) -> None:
        """Send the log up to ``end`` bytes, a line's end.

        Args:
            end: bytes of the local log, all written.
            progress: called when ``sent`` has grown.

        Raises:
            StorageConflictError: somebody else has the lease, or wrote there.
            StorageError: it was not all sent.
            TimelineError: the local log cannot be read, or is not on disk.
            SessionClosedError: it was closed.
        """
        if self.sent < end:
            await self._timeline.synced()
        while self.sent < end:
            if not self._piece:
                self._piece = await asyncio.to_thread(cut, self._timeline.path, self.sent, end)
            if not self._piece:
                raise TimelineError(self._timeline.path, "its end is no line; it is not sent")
            await self._send_blobs(self._piece)
            self.sent += await self._put(self._piece)
            self._next += 1
            self._piece = b""
            progress()

    async def _send_blobs(self, lines: bytes) -> None:
        named, lists = await asyncio.to_thread(named_in, lines, self._ask)
        for digest in lists:
            named |= await asyncio.to_thread(listed_in, self._folder, digest)
        await self._blobs.send(named)

    async def _put(self, piece: bytes) -> int:
        """Make the next piece there.

        Returns:
            How many bytes of the log it has: others than given when an earlier try arrived after all.

        Raises:
            StorageConflictError: somebody else made one with other bytes.
            StorageError: any other failure.
        """
        key = segment_key(self._next)
        await self._lease.hold()
        if not self._lease.enforced and (there := await self._there(key)) is not None:
            return await self._accept(there)
        try:
            await self._lease.during(self._bucket.put_new(key, piece))
        except StorageConflictError:
            there = await self._there(key)
            if there is None:
                raise
            return await self._accept(there)
        if not self._lease.enforced and await self._there(key) != piece:
            raise self._diverged()
        return len(piece)

    async def _there(self, key: str) -> bytes | None:
        try:
            return await self._bucket.get(key)
        except StorageNotFoundError:
            return None

    async def _accept(self, there: bytes) -> int:
        """Count a piece that is there already as sent, when it is just what the local log has."""
        ours = await asyncio.to_thread(read, self._timeline.path, self.sent, len(there))
        if not there.endswith(b"\n") or ours != there:
            raise self._diverged()
        return len(there)

    def _diverged(self) -> StorageConflictError:
        return diverged(self._bucket.url, self._timeline.folder, self.sent)
