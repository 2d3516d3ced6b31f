"""Opening and reading beneath a folder: by the kernel's own call where it can decide, else by the walk."""

from __future__ import annotations

import errno
import functools
import os
import stat
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

from ..errors import ToolError
from .translation import translated
from .walk import MAX_RETRIES, NOFOLLOW, SAFE_FLAGS, STEP, check_text, located, split_root

_OPENAT2 = 437  # the same number on every Linux architecture
_RESOLVE_NO_MAGICLINKS, _RESOLVE_BENEATH = 0x02, 0x08


def open_beneath(root: Path, relative: str, flags: int, mode: int = 0o600) -> int:
    """Open what ``relative`` names under ``root``, never anything outside; the caller closes it.

    Never waits: a FIFO without a peer opens at once, so look at ``os.fstat`` before reading.

    Args:
        flags: as for ``os.open``.
        mode: permission bits when ``O_CREAT`` makes the file.

    Raises:
        PathNotFoundError: nothing lies there.
        PermissionDeniedError: it leads outside, or the system refuses.
        ToolError: any other failure.
    """
    return open_within(relative, (root,), flags, mode)


def open_within(path: str, roots: Sequence[Path], flags: int, mode: int = 0o600) -> int:
    """``open_beneath`` for several folders; a relative path starts from the first.

    Raises:
        PathNotFoundError: nothing lies there.
        PermissionDeniedError: it leads outside all of them, or the system refuses.
        ToolError: any other failure.
    """
    check_text(path)
    flags |= SAFE_FLAGS
    with translated(path):
        fd = _open_plain(path, roots, flags, mode)
        if fd is not None:
            return fd
        for _ in range(MAX_RETRIES):
            with located(path, roots) as spot:
                try:
                    return os.open(spot.name, flags | NOFOLLOW, mode, dir_fd=spot.dir_fd)
                except OSError as error:
                    if error.errno not in (errno.ELOOP, errno.EMLINK):
                        raise  # else a link took the name's place after the walk looked
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


@functools.cache
def _syscall() -> Callable[[int, bytes, bytes], tuple[int, int]] | None:
    """``openat2`` as a function that returns a descriptor and an error number.

    None where the kernel has none (older than 5.6, or not Linux).
    """
    if os.uname().sysname != "Linux":
        return None
    import ctypes

    call = ctypes.CDLL(None, use_errno=True).syscall

    def openat2(dir_fd: int, path: bytes, how: bytes) -> tuple[int, int]:
        return call(_OPENAT2, dir_fd, path, how, len(how)), ctypes.get_errno()

    return None if openat2(-1, b"", b"")[1] == errno.ENOSYS else openat2


def _open_plain(path: str, roots: Sequence[Path], flags: int, mode: int) -> int | None:
    """Open by ``openat2``; None when the walk has to decide.

    That is so at absolute links (the kernel refuses them all), links between roots, cycles, and races.
    """
    call = _syscall()
    if call is None:
        return None
    root, rest = split_root(path, roots, path)
    resolve = _RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS
    how = struct.pack("=QQQ", flags, mode if flags & os.O_CREAT else 0, resolve)
    root_fd = os.open(root, STEP)
    try:
        fd, number = call(root_fd, os.fsencode(rest), how)
    finally:
        os.close(root_fd)
    if fd >= 0:
        return fd
    if number in (errno.EXDEV, errno.ELOOP, errno.EAGAIN, errno.EPERM, errno.EINVAL, errno.ENOSYS):
        return None
    raise OSError(number, os.strerror(number))


def read_beneath(root: Path, relative: str, *, limit: int | None = None) -> bytes:
    """The bytes of a regular file under ``root``, at most ``limit`` of them.

    Raises:
        PathNotFoundError: there is no such file.
        PermissionDeniedError: it leads outside, or is not readable.
        ToolError: it is no regular file, or cannot be read.
    """
    return read_fd(open_beneath(root, relative, os.O_RDONLY), relative, limit=limit)


def read_fd(fd: int, subject: str, *, offset: int = 0, limit: int | None = None) -> bytes:
    """The bytes of an open regular file; closes it.

    Args:
        subject: the path to name in errors.
        offset: bytes to skip.
        limit: most bytes to return; None reads to the end.

    Raises:
        ToolError: it is no regular file, or cannot be read.
    """
    with translated(subject), open(fd, "rb", buffering=0) as file:
        info = os.fstat(fd)
        if stat.S_ISDIR(info.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(info.st_mode):
            raise ToolError(f"{subject}: not a regular file")
        if offset:
            file.seek(offset)
        if limit is None:
            return file.read()
        pieces = []
        while limit > 0 and (piece := file.read(min(limit, 1 << 20))):
            pieces.append(piece)
            limit -= len(piece)
        return b"".join(pieces)
