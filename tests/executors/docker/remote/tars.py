"""Archives as an engine would never make them."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from typing import Any


def archive(*members: tuple[str, bytes | None] | tuple[str, bytes | None, dict[str, Any]]) -> bytes:
    """An archive; each member is a name, its bytes (None for what has none) and attributes of ``TarInfo``."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for member in members:
            info = tarfile.TarInfo(member[0])
            data = member[1]
            info.size = len(data or b"")
            info.mtime = 1_600_000_000
            for name, value in (member[2] if len(member) > 2 else {}).items():
                setattr(info, name, value)
            tar.addfile(info, None if data is None else io.BytesIO(data))
    return made.getvalue()


def pieces(data: bytes, size: int = 777) -> Iterator[bytes]:
    """As they arrive."""
    for start in range(0, len(data), size):
        yield data[start : start + size]
