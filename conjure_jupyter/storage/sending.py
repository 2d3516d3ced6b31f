"""One operation of the queue, done at the service so that doing it twice is doing it once.

A crash may come between the service's yes and our note of it, and an answer may be lost on the way. So what
looks like somebody else's write is compared first: our own bytes there are a success, the bytes we meant to
replace are replaced, and only all else is a conflict.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from ..errors import StorageConflictError, StorageNotFoundError
from .bucket import Bucket
from .entry import Entry

#: Bytes above which a known version is looked at and then replaced: one request cannot do both, because
#: services take large files in parts only, and those without a condition.
LARGE = 32 * 1024 * 1024


async def send(
    bucket: Bucket, entry: Entry, content: bytes | Path | None, etag: str, later: Collection[str] = ()
) -> str:
    """Do what an entry says; returns the etag of what is there then, empty for nothing.

    Args:
        bucket: where.
        entry: what.
        content: the bytes of a put.
        etag: of what is expected there, empty when nothing is or it is not known.
        later: SHA-256 of what later entries put under the key: one of them there means that this one was
            done before a crash that lost the note of it.

    Raises:
        StorageConflictError: somebody else wrote there; nothing was changed.
        StorageUnavailableError: the service did not answer; it may or may not be done.
        StorageError: it refused.
    """
    if content is None:
        return await _delete(bucket, entry, etag, later)
    if entry.mode == "any":
        return await bucket.put(entry.key, content, content_type=entry.content_type)
    if entry.mode == "known" and entry.size > LARGE:
        return await _put_large(bucket, entry, content, etag, later)
    try:
        return await _put(bucket, entry, content, etag)
    except StorageConflictError:
        there, digest = await _there(bucket, entry)
        if digest == entry.sha256 or digest in later:
            return there
        if entry.mode == "new" or (digest and digest != entry.replaces):
            raise
        return await _put(bucket, entry, content, there)


async def _put(bucket: Bucket, entry: Entry, content: bytes | Path, etag: str) -> str:
    if etag and entry.mode == "known":
        return await bucket.put_if(entry.key, content, etag, content_type=entry.content_type)
    return await bucket.put_new(entry.key, content, content_type=entry.content_type)


async def _put_large(
    bucket: Bucket, entry: Entry, content: bytes | Path, etag: str, later: Collection[str]
) -> str:
    try:
        there = (await bucket.head(entry.key)).etag
    except StorageNotFoundError:
        there = ""
    if there and there != etag:
        _, digest = await _there(bucket, entry)
        if digest == entry.sha256 or digest in later:
            return there
        if digest and digest != entry.replaces:
            raise StorageConflictError(bucket.url_of(entry.key), "somebody else changed it")
    return await bucket.put(entry.key, content, content_type=entry.content_type)


async def _delete(bucket: Bucket, entry: Entry, etag: str, later: Collection[str]) -> str:
    try:
        there = (await bucket.head(entry.key)).etag
    except StorageNotFoundError:
        return ""
    if (etag and there != etag) or later:
        _, digest = await _there(bucket, entry)
        if digest in later:
            return there
        if etag and there != etag and digest and digest != entry.replaces:
            raise StorageConflictError(bucket.url_of(entry.key), "somebody else changed it")
    await bucket.delete(entry.key)
    return ""


async def _there(bucket: Bucket, entry: Entry) -> tuple[str, str]:
    """Etag and SHA-256 of what is there, both empty for nothing."""
    try:
        return await bucket.digest(entry.key)
    except StorageNotFoundError:
        return "", ""
