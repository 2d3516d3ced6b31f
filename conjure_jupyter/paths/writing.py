"""Writing whole or not at all, and folders that only their owner can enter."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from pathlib import Path

from ..errors import PermissionDeniedError
from .translation import translated
from .walk import DIRECTORY, NOFOLLOW, SAFE_FLAGS, STEP


def replace_file(dir_fd: int, name: str, data: bytes, *, mode: int | None = None) -> None:
    """Put ``data`` under ``name`` whole or not at all; on any failure the old file is as it was.

    A replaced file keeps its mode and, where the system lets us, its owner. A file without any right to
    write is refused, for root as well: that is how read-only copies are marked.

    Args:
        mode: permission bits; None keeps those of the old file, or takes the umask's for a new one.

    Raises:
        OSError: it could not be written.
    """
    old: os.stat_result | None = None
    with contextlib.suppress(FileNotFoundError):
        old = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    if old is not None:
        _check_replaceable(dir_fd, name, old)
    temporary = f".conjure-{secrets.token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | SAFE_FLAGS | NOFOLLOW
    fd = os.open(temporary, flags, 0o600 if old or mode is not None else 0o666, dir_fd=dir_fd)
    try:
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
            if old is not None and (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
                with contextlib.suppress(PermissionError):
                    os.fchown(fd, old.st_uid, old.st_gid)
            wanted = mode if mode is not None else stat.S_IMODE(old.st_mode) & 0o777 if old else None
            if wanted is not None:
                os.fchmod(fd, wanted)
            os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(temporary, name, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=dir_fd)
        raise
    _sync_folder(dir_fd)


def _check_replaceable(dir_fd: int, name: str, old: os.stat_result) -> None:
    if stat.S_ISDIR(old.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(old.st_mode):
        raise OSError(errno.ENXIO, os.strerror(errno.ENXIO))
    effective = os.access in os.supports_effective_ids
    if not old.st_mode & 0o222 or not os.access(name, os.W_OK, dir_fd=dir_fd, effective_ids=effective):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def _sync_folder(dir_fd: int) -> None:
    """Make a rename last; some file systems have no such thing."""
    with contextlib.suppress(OSError):
        fd = os.open(".", os.O_RDONLY | DIRECTORY, dir_fd=dir_fd)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def write_atomic(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Replace or make a file of our own, whole or not at all, on disk when this returns.

    The folder must exist and is trusted; the mode does not depend on the umask.

    Raises:
        PathNotFoundError: the folder does not exist.
        PermissionDeniedError: it may not be written.
        ToolError: the disk is full, the path is a folder, and the like.
    """
    with translated(str(path)):
        dir_fd = os.open(path.parent, STEP)
        try:
            replace_file(dir_fd, path.name, data, mode=mode)
        finally:
            os.close(dir_fd)


def make_private_dir(path: Path) -> None:
    """Make a folder that only its owner can enter (0700 whatever the umask), or make an own one so.

    Folders above it that do not exist get the usual mode.

    Raises:
        PermissionDeniedError: it cannot be made, is a link, or belongs to someone else.
        ToolError: a file is in the way, the disk is full, and the like.
    """
    with translated(str(path)):
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
        info = path.lstat()
        if stat.S_ISLNK(info.st_mode) or info.st_uid != os.geteuid():
            raise PermissionDeniedError(str(path), "a private folder may not be a link or someone else's")
        if not stat.S_ISDIR(info.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        path.chmod(0o700)
