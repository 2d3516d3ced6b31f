"""Which sessions a storage has, and which one an address names."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from ...errors import StorageError
from ...storage import Bucket, RemoteStorage, StorageSpec, create_storage, split_url
from ...storage.translation import library, translated
from .keys import LOG, is_session_id, read_listing
from .together import each


@dataclass(frozen=True, slots=True)
class RemoteSession:
    """A session in a list of those that a storage has.

    Attributes:
        id: its name.
        url: its address, which ``Session.resume`` takes.
        size: bytes of its log.
        modified: when its log last grew there.
        damaged: what is wrong with its log, None when nothing is.
    """

    id: str
    url: str
    size: int
    modified: dt.datetime
    damaged: str | None = None


def parse_session_url(url: str) -> tuple[str, str]:
    """The storage and the session's id that an address names, such as ``s3://bucket/prefix/id``.

    Raises:
        StorageError: it names no session.
    """
    spec, session_id = split_url(url)
    if not is_session_id(session_id):
        raise StorageError(repr(url[:200]), f"{session_id[:100]!r} cannot be a session's name")
    return spec, session_id


async def list_remote(spec: StorageSpec) -> list[RemoteSession]:
    """The sessions that have a log in a storage, by name. Nothing of them is brought.

    Args:
        spec: as ``create_storage`` takes it: a storage that holds sessions, not one session.

    Raises:
        StorageUnavailableError: the service did not answer.
        StorageError: any other failure.
    """
    storage = create_storage(spec)
    if not isinstance(storage, RemoteStorage):
        return []
    above = storage._make_bucket("")  # noqa: SLF001  above the sessions it has no other name
    with translated(above.url):
        listed = await library().list_with_delimiter_async(above.store, above.prefix or None)
    names = [path.rstrip("/").rpartition("/")[2] for path in listed["common_prefixes"]]
    found: list[RemoteSession] = []

    async def look(name: str) -> None:
        session = await _look(above.below(name), name)
        if session is not None:
            found.append(session)

    await each([name for name in names if is_session_id(name)], look)
    return sorted(found, key=lambda session: session.id)


async def _look(bucket: Bucket, name: str) -> RemoteSession | None:
    items = await bucket.list(LOG)
    if not items:
        return None
    damaged = None
    try:
        read_listing(bucket.url, [(item.key, item.size, item.etag) for item in items])
    except StorageError as error:
        damaged = error.reason
    size = sum(item.size for item in items)
    modified = max(item.modified for item in items)
    return RemoteSession(name, bucket.url.rstrip("/"), size, modified, damaged)
