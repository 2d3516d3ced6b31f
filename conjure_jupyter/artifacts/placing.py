"""Putting a file under a name in a folder that tools can write to."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import InvalidArtifactError, PermissionDeniedError
from .copying import sha256_of

_STEP = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

#: Answers of file systems that have no hard links.
_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


@dataclass(frozen=True, slots=True)
class Folder:
    """An open folder and a name in it.

    Attributes:
        fd: the folder.
        name: of a file that may or may not be there.
    """

    fd: int
    name: str

    def taken(self) -> bool:
        """Whether something has the name, be it a link that leads nowhere."""
        try:
            os.stat(self.name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def is_same(self, digest: str, size: int, mode: int) -> bool:
        """Whether a regular file of that content has the name; its mode is then made the one asked for.

        Raises:
            OSError: it cannot be looked at.
        """
        try:
            fd = os.open(self.name, _READ, dir_fd=self.fd)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ELOOP, errno.EMLINK, errno.ENXIO, errno.EACCES):
                return False  # nothing, a link, a socket, or a file that was locked away
            raise
        try:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode) or status.st_size != size or sha256_of(fd) != digest:
                return False
            if stat.S_IMODE(status.st_mode) != mode:
                with contextlib.suppress(PermissionError):
                    os.fchmod(fd, mode)
            return True
        finally:
            os.close(fd)

    def take(self, source: str | Path, source_fd: int | None = None, *, replace: bool) -> bool:
        """Move a file here under the name; False when it is taken and may not be replaced.

        Args:
            source: the file, on the same file system.
            source_fd: the folder it is in, when ``source`` is only its name.
            replace: put it in the place of what has the name; never of a folder.

        Raises:
            OSError: it cannot be moved.
        """
        if replace:
            os.rename(source, self.name, src_dir_fd=source_fd, dst_dir_fd=self.fd)
            return True
        try:
            # The only move that fails when the name is taken; the old name goes right after.
            os.link(source, self.name, src_dir_fd=source_fd, dst_dir_fd=self.fd, follow_symlinks=False)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            if self.taken():
                return False
            os.rename(source, self.name, src_dir_fd=source_fd, dst_dir_fd=self.fd)
        else:
            os.unlink(source, dir_fd=source_fd)
        return True

    @contextlib.contextmanager
    def writing(self) -> Iterator[tuple[int, str]]:
        """A new file in this folder, gone afterwards unless it was moved.

        Raises:
            OSError: it cannot be made.
        """
        name = f".conjure-{secrets.token_hex(8)}.tmp"
        fd = os.open(name, _CREATE, 0o600, dir_fd=self.fd)
        try:
            yield fd, name
        finally:
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=self.fd)
            os.close(fd)


@contextlib.contextmanager
def folder_below(root: Path, relative: str) -> Iterator[Folder]:
    """The folder that a name below ``root`` lies in, made when it is missing; no link is followed.

    Raises:
        InvalidArtifactError: the name is empty, absolute, or has an empty part, ``.`` or ``..``.
        PermissionDeniedError: a link or a file lies where a folder should.
        OSError: any other failure.
    """
    parts = relative.split("/")
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise InvalidArtifactError(relative, "not the name of a file below a folder")
    fd = os.open(root, _STEP & ~os.O_NOFOLLOW)
    try:
        for part in parts[:-1]:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, 0o700, dir_fd=fd)
            try:
                inner = os.open(part, _STEP, dir_fd=fd)
            except OSError as error:
                if error.errno in (errno.ELOOP, errno.EMLINK, errno.ENOTDIR):
                    raise PermissionDeniedError(
                        relative, f"{part!r} is a link or a file where a folder should be"
                    ) from None
                raise
            os.close(fd)
            fd = inner
        yield Folder(fd, parts[-1])
    finally:
        os.close(fd)
