"""Blobs on their way to the remote storage, several at a time."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from ...storage.bucket import Bucket
from .keys import blob_key
from .together import each

_PIECE = 1024 * 1024


class BlobUploads:
    """Sends the blobs of a session, each once.

    Args:
        bucket: the session's keys.
        folder: of the blobs, by digest.
        tell: hears what cannot be sent at all, a sentence each.
    """

    def __init__(self, bucket: Bucket, folder: Path, tell: Callable[[str], None]) -> None:
        self._bucket = bucket
        self._folder = folder
        self._tell = tell
        self._there: dict[str, int] = {}
        self._given_up: set[str] = set()

    def know(self, there: Mapping[str, int]) -> None:
        """These are remote already; with their sizes in bytes, lest a half one counts."""
        self._there.update(there)

    async def send(self, digests: Iterable[str]) -> None:
        """Send the blobs that are not remote yet, and wait until they are.

        One that is not here, or whose bytes are not those of its name, is told once and passed over: the
        log, which is worth more, must not wait for it for ever.

        Raises:
            StorageUnavailableError: the service did not answer; those that arrived are not sent again.
            StorageError: any other failure.
        """
        await each(sorted(set(digests) - self._given_up), self._send)

    async def _send(self, digest: str) -> None:
        path = self._folder / digest
        size, whole = await asyncio.to_thread(_look, path, self._there.get(digest))
        if digest in self._there and size in (None, self._there[digest]):
            return
        if size is None or not whole:
            self._given_up.add(digest)
            self._tell(f"the file {path} is missing or damaged; it is not sent to {self._bucket.url}")
            return
        await self._bucket.put(blob_key(digest), path)
        self._there[digest] = size


def _look(path: Path, there: int | None) -> tuple[int | None, bool]:
    """A blob's size here, and whether its bytes are those of its name, unless its size there says enough."""
    size = file_size(path)
    return size, size is not None and size != there and file_digest(path) == path.name


def file_size(path: Path) -> int | None:
    """Bytes of a file; None when there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return None


def file_digest(path: Path) -> str | None:
    """The sha256 of a file in hex; None when it cannot be read."""
    digest = hashlib.sha256()
    try:
        with path.open("rb", buffering=0) as file:
            while piece := file.read(_PIECE):
                digest.update(piece)
    except OSError:
        return None
    return digest.hexdigest()
