"""Which texts can be keys, and what a key's name says of its content."""

from __future__ import annotations

import functools
import mimetypes
import re
from collections.abc import Callable

from ..errors import StorageError

#: Most bytes of a key, and between two slashes. S3 takes 1,024 with the prefix; file systems take 255 a part,
#: less what some stores put behind a name while they write.
MAX_KEY, MAX_PART = 900, 240

#: The folder in a local copy that holds what waits to be sent; no key begins with it.
QUEUE_FOLDER = ".conjure-queue"

_TEMPORARY = re.compile(r"\.conjure-[0-9a-f]+\.tmp")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\\]")


@functools.lru_cache(maxsize=4096)
def check_key(key: str) -> str:
    """``key``, when it can be one: a relative path with ``/`` that means the same on every store.

    Raises:
        StorageError: it cannot; the message says why.
    """
    for wrong, reason in _RULES:
        if wrong(key):
            raise StorageError(repr(key if len(key) <= 200 else key[:200] + "…"), reason)
    return key


def _is_no_text(key: str) -> bool:
    try:
        key.encode()
    except UnicodeEncodeError:
        return True
    return False


def _is_long(key: str) -> bool:
    return len(key.encode()) > MAX_KEY or any(len(part.encode()) > MAX_PART for part in key.split("/"))


def is_hidden(key: str) -> bool:
    """Whether a path in a storage's folder is the storage's own and no key."""
    parts = key.split("/")
    return parts[0].casefold() == QUEUE_FOLDER or any(_TEMPORARY.fullmatch(part) for part in parts)


@functools.lru_cache(maxsize=4096)
def content_type_of(key: str) -> str:
    """The MIME type that a key's ending stands for."""
    return mimetypes.guess_type("x/" + key.rpartition("/")[2])[0] or "application/octet-stream"


_RULES: tuple[tuple[Callable[[str], object], str], ...] = (
    (lambda key: not key, "a key cannot be empty"),
    (_is_no_text, "a key must be valid text"),
    (_is_long, f"a key has at most {MAX_KEY} bytes, and {MAX_PART} between two slashes"),
    (_CONTROL.search, "a key cannot hold control characters or backslashes"),
    (lambda key: key.startswith("/"), "a key is a relative path"),
    (lambda key: {"", ".", ".."} & {*key.split("/")}, "a key has no empty part, no '.' and no '..'"),
    (is_hidden, "that name is kept for the storage itself"),
)
