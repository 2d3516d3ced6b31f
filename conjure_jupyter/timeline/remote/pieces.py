"""The local log in pieces: cutting it at line ends, and comparing it with what is remote."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from ...errors import StorageError, TimelineError
from ..line import HEAD, MAX_LINE, BadLineError, decode
from .keys import SEGMENT_SIZE, Segment

_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


@dataclass(frozen=True, slots=True)
class LocalLog:
    """What a log on this machine holds, by its bytes.

    Attributes:
        path: the log.
        size: bytes of its whole lines; a last line that was not written to its end is not counted.
        torn: bytes after those.
    """

    path: Path
    size: int
    torn: int


def open_log(path: Path) -> int:
    """Open a log for reading; the caller closes it.

    Raises:
        OSError: it cannot be opened, or is a link.
    """
    return os.open(path, _FLAGS)


def measure(path: Path) -> LocalLog:
    """How many bytes of whole lines a log has; none when there is no log.

    A last line that is good but for its line end counts, since opening the log would give it one.

    Raises:
        TimelineError: it cannot be read.
    """
    try:
        fd = open_log(path)
    except FileNotFoundError:
        return LocalLog(path, 0, 0)
    except OSError as error:
        raise TimelineError(path, f"cannot be read ({error.strerror})") from error
    try:
        size = os.fstat(fd).st_size
        start = end = size
        while start:
            start = max(0, start - SEGMENT_SIZE)
            cut = os.pread(fd, end - start, start).rfind(b"\n") + 1
            if cut or not start:
                whole = start + cut
                break
            end = start
        else:
            whole = 0
        tail = os.pread(fd, min(size - whole, MAX_LINE + 1), whole)
    finally:
        os.close(fd)
    if tail and _is_block(tail):
        return LocalLog(path, size, 0)
    return LocalLog(path, whole, size - whole)


def _is_block(line: bytes) -> bool:
    try:
        decode(line)
    except BadLineError:
        return False
    return True


def cut(path: Path, start: int, end: int) -> bytes:
    """The next piece of a log: whole lines from ``start``, at most ``SEGMENT_SIZE`` bytes or one line.

    Args:
        path: the log.
        start: a line's beginning, in bytes.
        end: do not read past this.

    Returns:
        Nothing when no whole line lies there.

    Raises:
        TimelineError: the log cannot be read, or is shorter than that.
    """
    try:
        fd = open_log(path)
        try:
            if os.fstat(fd).st_size < end:
                raise TimelineError(path, "the log was cut by something else; what is remote is whole")
            data = bytearray(os.pread(fd, min(SEGMENT_SIZE, end - start), start))
            at = data.rfind(b"\n") + 1
            while not at and start + len(data) < end:
                seen = len(data)
                more = os.pread(fd, min(SEGMENT_SIZE, end - start - seen), start + seen)
                data += more
                at = data.find(b"\n", seen) + 1
        finally:
            os.close(fd)
    except OSError as error:
        raise TimelineError(path, f"cannot be read ({error.strerror})") from error
    return bytes(data[:at])


def same_by_etag(data: bytes, etag: str) -> bool:
    """Whether an etag proves that the storage has these bytes: many give the MD5 of what they hold.

    False says nothing: other storages, and encrypted ones, give other marks.
    """
    return etag.strip('"') == hashlib.md5(data, usedforsecurity=False).hexdigest()


def check_piece(where: str, segment: Segment, data: bytes) -> int:
    """Look at a piece that came from outside, before it becomes part of a log.

    Returns:
        How many lines it has.

    Raises:
        StorageError: it is not as listed, has no line end at its end, or a line longer than any of ours.
    """
    if len(data) != segment.size:
        raise StorageError(
            where, f"{segment.key} has {segment.size:,} bytes by the listing, and {len(data):,} came"
        )
    if not data.endswith(b"\n"):
        raise StorageError(where, f"{segment.key} ends within a line; it was not written by Conjure")
    start = lines = 0
    while start < len(data):
        end = data.index(b"\n", start) + 1
        if end - start > MAX_LINE:
            raise StorageError(
                where, f"{segment.key} has a line of {end - start:,} bytes; a log's have at most {MAX_LINE:,}"
            )
        start, lines = end, lines + 1
    if segment.number == 1 and not any(HEAD.match(line) for line in data.splitlines()):
        raise StorageError(where, f"{segment.key} has no block of a session; it was not written by Conjure")
    return lines
