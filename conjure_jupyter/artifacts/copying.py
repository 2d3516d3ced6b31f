"""Copies of files as cheap as the file system makes them.

A clone shares the source's blocks until one of the two is written to (``FICLONE``: Btrfs, XFS, bcachefs and
others); nothing is read or written for it. Elsewhere the kernel copies, without the bytes passing through
this process. Holes stay holes. A hard link is never made: whoever may write to one name could write to both.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

#: The ioctl that clones a whole file (linux/fs.h: _IOW(0x94, 9, int)).
_FICLONE = 0x40049409

#: Bytes that are copied and hashed at a time.
_STEP = 16 << 20
_CHUNK = 1 << 20

#: Files above this are hashed while they are copied; below, a second thread costs more than it gains.
_OVERLAPPED = 8 << 20

_ZEROS = bytes(_CHUNK)

#: What the system says when it cannot do a copy in that way, but may in another.
_NOT_HERE = frozenset(
    {errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EPERM, errno.ETXTBSY}
)

#: Hears up to where the copy is done, in bytes from the start.
Progress = Callable[[int], object]


def clone(source: int, target: int) -> bool:
    """Make an open empty file share the blocks of another; False where the file system cannot.

    Raises:
        OSError: it could, but failed.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError as error:
        if error.errno in _NOT_HERE:
            return False
        raise
    return True


def copy(source: int, target: int, size: int, progress: Progress | None = None) -> int:
    """Copy the first ``size`` bytes of an open file into an empty one; the position of neither counts.

    Returns:
        How many there were; fewer when the source has become shorter.

    Raises:
        OSError: it cannot be read or written.
    """
    # Which parts are holes is not asked of the file system: some forget what was written a moment ago.
    sparse = os.fstat(source).st_blocks * 512 < size
    if sparse:
        os.ftruncate(target, size)
    some = _copy_what_is_not_zero if sparse else _copy_some
    at = 0
    while at < size and (count := some(source, target, at, min(_STEP, size - at))):
        at += count
        if progress is not None:
            progress(at)
    if sparse and at < size:
        os.ftruncate(target, at)
    return at


def stored(source: int, target: int, size: int) -> tuple[str, int]:
    """Clone or copy a file and put it on disk; what is hashed is the copy, not the source.

    Args:
        size: most bytes to take.

    Returns:
        SHA-256 of the copy, and its size in bytes.

    Raises:
        OSError: it cannot be read or written.
    """
    if clone(source, target):
        cloned = os.fstat(target).st_size
        if cloned > size:
            os.ftruncate(target, size)
        os.fsync(target)
        return sha256_of(target), min(cloned, size)
    if size <= _OVERLAPPED:
        count = copy(source, target, size)
        os.fsync(target)
        return sha256_of(target), count
    done: SimpleQueue[int | None] = SimpleQueue()

    def work() -> int:
        try:
            count = copy(source, target, size, done.put)
        finally:
            done.put(None)
        os.fsync(target)
        return count

    found = hashlib.sha256()
    with ThreadPoolExecutor(1, "conjure-copy") as pool:
        copied = pool.submit(work)
        at = 0
        while (end := done.get()) is not None:
            for piece in _pieces(target, at, end):
                found.update(piece)
            at = end
        return found.hexdigest(), copied.result()


def sha256_of(fd: int) -> str:
    """SHA-256 of an open regular file, from its start to its end; its position stays.

    Raises:
        OSError: it cannot be read.
    """
    found = hashlib.sha256()
    for piece in _pieces(fd, 0, os.fstat(fd).st_size):
        found.update(piece)
    return found.hexdigest()


def _pieces(fd: int, start: int, end: int) -> Iterator[memoryview]:
    """The bytes of a file between two positions; each piece is good until the next."""
    buffer = memoryview(bytearray(_CHUNK))
    at = start
    while at < end and (count := os.preadv(fd, [buffer[: min(_CHUNK, end - at)]], at)):
        yield buffer[:count]
        at += count


def _copy_some(source: int, target: int, at: int, count: int) -> int:
    if hasattr(os, "copy_file_range"):
        with contextlib.suppress(OSError):
            # Whatever the kernel has against it, a plain copy has it too, and says it. Some file systems
            # answer 0 before the end.
            if copied := os.copy_file_range(source, target, count, at, at):
                return copied
    data = os.pread(source, min(count, _CHUNK), at)
    _write(target, data, at)
    return len(data)


def _copy_what_is_not_zero(source: int, target: int, at: int, count: int) -> int:
    data = os.pread(source, min(count, _CHUNK), at)
    if data != _ZEROS[: len(data)]:
        _write(target, data, at)
    return len(data)


def _write(fd: int, data: bytes, at: int) -> None:
    view = memoryview(data)
    while view:
        done = os.pwrite(fd, view, at)
        view, at = view[done:], at + done
