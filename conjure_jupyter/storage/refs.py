"""Making the values that storages return."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

from ..fileref import FileRef
from .keys import content_type_of


def file_ref(
    key: str,
    size: int,
    sha256: str,
    *,
    url: str | None = None,
    kind: str | None = None,
    created: float | None = None,
    local_path: Path | None = None,
) -> FileRef:
    """A ``FileRef`` of a key.

    Args:
        key: its path.
        size: bytes.
        sha256: hex digest, empty when it is not known.
        url: where else it is kept.
        kind: MIME type; by the key's ending when not given.
        created: seconds since 1970; now when not given.
        local_path: where it lies on this machine.
    """
    when = dt.datetime.now(dt.UTC) if created is None else dt.datetime.fromtimestamp(created, dt.UTC)
    content_type = kind or content_type_of(key)
    return FileRef(key, size, content_type, sha256, storage_url=url, created=when, local_path=local_path)
