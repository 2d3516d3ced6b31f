"""Reading a SKILL.md: its head for the catalogue, all of it for the instructions."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import NamedTuple

from .fence import MAX_BYTES, FenceError, Split, split
from .models import Diagnostic

#: Bytes read at first; more only when the frontmatter does not end in them.
HEAD = 4096
#: Most bytes of a whole file.
MAX_FILE = 16 * 1024 * 1024
#: Names of the file, the preferred one first.
ENTRIES = ("SKILL.md", "skill.md")

#: What tells whether a file was changed: inode, device, size, times of change of content and of status.
Signature = tuple[int, int, int, int, int]


def signature(status: os.stat_result) -> Signature:
    """The signature of a file or folder."""
    return (status.st_ino, status.st_dev, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


class Head(NamedTuple):
    """The frontmatter of a file as bytes, and the state of the file it was read from."""

    cut: Split
    signature: Signature


class UnreadableError(Exception):
    """A file cannot be used; ``diagnostic`` says why."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(str(diagnostic))
        self.diagnostic = diagnostic


def read_head(path: str) -> Head:
    """Read just enough of a SKILL.md to have its frontmatter.

    Raises:
        UnreadableError: it cannot be read, or has no closed frontmatter of at most 64 KiB.
    """
    descriptor = _open(path)
    try:
        status = _regular(descriptor, path)
        data = os.read(descriptor, HEAD)
        complete = len(data) >= status.st_size or not data
        while (cut := _split(data, path, complete=complete)) is None:
            if len(data) > MAX_BYTES + HEAD:
                raise _unreadable(
                    path, "too-large", f"the frontmatter is larger than {MAX_BYTES // 1024} KiB", line=1
                )
            more = os.read(descriptor, MAX_BYTES)
            data += more
            complete = not more
        return Head(cut, signature(status))
    except OSError as error:
        raise _unreadable(path, "unreadable", error.strerror or str(error)) from error
    finally:
        os.close(descriptor)


def read_all(path: str) -> tuple[bytes, Split]:
    """Read a whole SKILL.md.

    Raises:
        UnreadableError: it cannot be read, is larger than 16 MiB, or has no closed frontmatter.
    """
    data = read_bytes(path)
    cut = _split(data, path, complete=True)
    assert cut is not None  # noqa: S101  split() gives None for the beginning of a file only
    return data, cut


def read_bytes(path: str) -> bytes:
    """The bytes of a regular file.

    Raises:
        UnreadableError: it cannot be read, or is larger than 16 MiB.
    """
    descriptor = _open(path)
    with os.fdopen(descriptor, "rb") as file:
        _regular(descriptor, path)
        try:
            data = file.read(MAX_FILE + 1)
        except OSError as error:
            raise _unreadable(path, "unreadable", error.strerror or str(error)) from error
    if len(data) > MAX_FILE:
        raise _unreadable(path, "too-large", f"the file is larger than {MAX_FILE // 1024 // 1024} MiB")
    return data


def _open(path: str) -> int:
    """Open for reading; without waiting for a writer, should it be a pipe."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise _unreadable(path, "unreadable", error.strerror or str(error)) from error


def _regular(descriptor: int, path: str) -> os.stat_result:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise _unreadable(path, "unreadable", "it is no regular file")
    return status


def _split(data: bytes, path: str, *, complete: bool) -> Split | None:
    try:
        return split(data, complete=complete)
    except FenceError as error:
        raise _unreadable(path, error.code, str(error), error.advice, line=1) from error


def _unreadable(
    path: str, code: str, message: str, advice: str = "", *, line: int | None = None
) -> UnreadableError:
    return UnreadableError(Diagnostic(Path(path), line, "error", code, message, advice))
