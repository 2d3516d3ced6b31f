"""What is known of the service's side: which version of a key it had when we last looked.

It saves downloads of what is here already, and tells our own last version from somebody else's. It is kept
beside the queue as lines of JSON, the last of a key counting. Losing it is no harm: more is asked then.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

from ..errors import ToolError
from ..paths import write_atomic
from .files import Signature


@dataclass(frozen=True, slots=True)
class Known:
    """A version that the service had.

    Attributes:
        etag: the service's name for it.
        sha256: of its bytes.
        signature: of the file here that holds the same bytes; None when none does.
    """

    etag: str
    sha256: str
    signature: Signature | None = None


class Index:
    """What is known, by key."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, Known] = {}
        self._fd: int | None = None

    def get(self, key: str) -> Known | None:
        """What is known of a key."""
        return self._known.get(key)

    def record(self, key: str, known: Known | None) -> None:
        """Know this of a key from now on; None when nothing is there any more.

        It outlives the process at once, and the machine's crash once the system has written it.
        """
        if known is None:
            self._known.pop(key, None)
        else:
            self._known[key] = known
        if self._fd is not None:
            with contextlib.suppress(OSError):
                os.write(self._fd, _line(key, known))

    def load(self) -> None:
        """Read it, and leave one line a key; lines that cannot be read are left out. Blocks."""
        with contextlib.suppress(OSError):
            for line in self._path.read_bytes().splitlines():
                with contextlib.suppress(ValueError, TypeError, KeyError, IndexError):
                    self._take(*json.loads(line))
        with contextlib.suppress(OSError, ToolError):
            write_atomic(self._path, b"".join(_line(key, known) for key, known in self._known.items()))
            self._fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)

    def _take(self, key: str, etag: str | None, sha256: str, signature: list[int] | None) -> None:
        if etag is None:
            self._known.pop(key, None)
        else:
            held = (signature[0], signature[1], signature[2]) if signature else None
            self._known[key] = Known(str(etag), str(sha256), held)

    def close(self) -> None:
        """Let go of the file."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def _line(key: str, known: Known | None) -> bytes:
    values = [key, known.etag, known.sha256, known.signature] if known else [key, None, "", None]
    return json.dumps(values).encode() + b"\n"
