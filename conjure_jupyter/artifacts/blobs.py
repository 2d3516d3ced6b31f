"""Bytes by their digest: a file of its own for each content, whole or not there at all."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from ..errors import ArtifactError, ArtifactNotFoundError, ArtifactTooLargeError, InvalidArtifactError
from ..paths import make_private_dir, read_fd, translated
from . import copying
from .placing import Folder, folder_below

_DIGEST = re.compile(r"[0-9a-f]{64}")
_TEMPORARY = ".tmp-"
_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

#: What tells that a file is the one that was looked at, and was not written to since.
_Signature = tuple[int, int, int, int, int]


class BlobStore:
    """A folder of contents, each under its SHA-256; no content is ever changed.

    A write goes to a file without a digest for a name, is put on disk, and then renamed: a crash, a full disk
    or a second process leaves the content or nothing. Files that dead writers left are removed when the store
    is first written to.

    Args:
        folder: made when something is kept, for its owner alone.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ready = False
        self._checked: dict[str, _Signature] = {}

    # Keeping ----------------------------------------------------------------------------------------

    def put(self, data: bytes) -> str:
        """Keep bytes; on disk when this returns.

        Returns:
            Their digest.

        Raises:
            ToolError: they cannot be written: the disk is full, and the like.
        """
        digest = hashlib.sha256(data).hexdigest()
        if self._is_sound(digest):
            return digest
        with self._writing("an artifact") as (fd, temporary):
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
            os.fsync(fd)
            self._settle(fd, temporary, digest)
        return digest

    def put_file(
        self, source: int | Path, *, limit: int | None = None, subject: str | None = None
    ) -> tuple[str, int]:
        """Keep the bytes of a regular file; on disk when this returns.

        A file that changes meanwhile gives some mixture of its states, and the digest is of what was kept.

        Args:
            source: its path, whose links are followed, or a descriptor to read from, which stays open.
            limit: most bytes to keep; None for no limit.
            subject: what to call it in errors.

        Returns:
            Digest and size in bytes.

        Raises:
            ArtifactTooLargeError: it is larger than ``limit``.
            PathNotFoundError: there is no such file.
            ToolError: it is no regular file, cannot be read, or the copy not be written.
        """
        subject = subject or (source.name if isinstance(source, Path) else "the file")
        with contextlib.ExitStack() as stack:
            if isinstance(source, Path):
                with translated(subject):
                    regular(source.stat(), subject)  # opening a device may already do something
                    source = os.open(source, _READ)
                stack.callback(os.close, source)
            with translated(subject):
                size = regular(os.fstat(source), subject).st_size
            if limit is not None and size > limit:
                raise ArtifactTooLargeError(subject, size, limit, "artifact_limit")
            fd, temporary = stack.enter_context(self._writing(subject))
            digest, size = copying.stored(source, fd, size)
            self._settle(fd, temporary, digest)
        return digest, size

    # Finding ----------------------------------------------------------------------------------------

    def path(self, digest: str) -> Path:
        """Where a content lies, or would; not to be written to.

        Raises:
            InvalidArtifactError: it is no digest.
        """
        if not _DIGEST.fullmatch(digest):
            raise InvalidArtifactError(digest, "not a SHA-256 digest")
        return self._folder / digest

    def has(self, digest: str) -> bool:
        """Whether a content is kept.

        Raises:
            InvalidArtifactError: it is no digest.
        """
        return self._size(digest) is not None

    def read(self, digest: str) -> bytes:
        """A content.

        Raises:
            ArtifactNotFoundError: it is not kept here.
            ArtifactError: its file is damaged.
            InvalidArtifactError: it is no digest.
        """
        data = read_fd(self._open(digest), digest)
        if hashlib.sha256(data).hexdigest() != digest:
            raise _damaged(digest)
        return data

    def matches(self, digest: str, fd: int) -> bool:
        """Whether an open regular file has a content; nothing is copied.

        Raises:
            ToolError: it cannot be read.
        """
        with translated("the file"):
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode) or self._size(digest) not in (None, status.st_size):
                return False
            return copying.sha256_of(fd) == digest

    def list(self) -> list[str]:
        """The digests of all contents, sorted."""
        with contextlib.suppress(FileNotFoundError), os.scandir(self._folder) as scan:
            return sorted(entry.name for entry in scan if _DIGEST.fullmatch(entry.name))
        return []

    def size(self) -> int:
        """Bytes of all contents together."""
        return sum(self._size(digest) or 0 for digest in self.list())

    # Putting in a working directory -----------------------------------------------------------------

    def checkout(
        self, digest: str, root: Path, relative: str, mode: int = 0o444, *, replace: bool = False
    ) -> Path:
        """Put a content under a name below a folder, whole or not at all.

        Folders on the way are made. No link on the way is followed, and one in the file's place is never
        written through. A file that has the content already is left, apart from its mode.

        Args:
            digest: of the content.
            root: the folder to stay in; may itself be reached by links.
            relative: the name, with ``/``, without ``.`` and ``..``.
            mode: permission bits, whatever the umask.
            replace: replace another content or a link that has the name; a folder never is.

        Returns:
            The file's path.

        Raises:
            ArtifactNotFoundError: the content is not kept here.
            ArtifactError: it is damaged, or something else has the name.
            InvalidArtifactError: the name leads elsewhere, or the digest is none.
            PermissionDeniedError: a link or file lies where a folder should, or the system refuses.
            ToolError: it cannot be written.
        """
        blob = self._open(digest)
        try:
            with translated(relative), folder_below(root, relative) as folder:
                if not folder.is_same(digest, os.fstat(blob).st_size, mode):
                    if not replace and folder.taken():
                        raise _taken(relative)
                    self._place(blob, digest, folder, mode, replace)
        finally:
            os.close(blob)
        return root / relative

    def _place(self, blob: int, digest: str, folder: Folder, mode: int, replace: bool) -> None:
        with self._writing(folder.name) as (fd, temporary):
            # Made in this folder, where a file left by a crash is found and no tool sees it.
            self._fill(blob, fd, digest)
            os.fchmod(fd, mode)
            try:
                placed = folder.take(temporary, replace=replace)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                placed = None
        if placed is None:
            with folder.writing() as (fd, name):
                self._fill(blob, fd, digest)
                os.fchmod(fd, mode)
                placed = folder.take(name, folder.fd, replace=replace)
        if not placed:
            raise _taken(folder.name)

    def _fill(self, blob: int, fd: int, digest: str) -> None:
        """Copy a blob into an empty file and make sure of what is in it."""
        before = _signature(blob)
        if self._checked.get(digest) == before:
            if not copying.clone(blob, fd):
                copying.copy(blob, fd, before[2])
            return
        found, _ = copying.stored(blob, fd, before[2])
        if found != digest:
            raise _damaged(digest)
        self._checked[digest] = before

    # The files --------------------------------------------------------------------------------------

    def _open(self, digest: str) -> int:
        path = self.path(digest)
        try:
            fd = os.open(path, _READ | os.O_NOFOLLOW)
        except FileNotFoundError:
            raise ArtifactNotFoundError(
                digest[:12],
                reason="its bytes are not on this machine; they were not kept, or not fetched yet",
            ) from None
        except OSError as error:
            raise ArtifactError(f"artifact {digest[:12]} cannot be read: {error.strerror}") from error
        return fd

    def _size(self, digest: str) -> int | None:
        try:
            status = self.path(digest).lstat()
        except OSError:
            return None
        return status.st_size if stat.S_ISREG(status.st_mode) else None

    def _is_sound(self, digest: str) -> bool:
        """Whether a content is kept and its file is not damaged."""
        try:
            fd = os.open(self.path(digest), _READ | os.O_NOFOLLOW)
        except OSError:
            return False
        try:
            before = _signature(fd)
            if self._checked.get(digest) != before:
                if copying.sha256_of(fd) != digest:
                    return False
                self._sync()  # whoever wrote it may not have come to that
                self._checked[digest] = before
        except OSError:
            return False
        finally:
            os.close(fd)
        return True

    @contextlib.contextmanager
    def _writing(self, subject: str) -> Iterator[tuple[int, Path]]:
        """A new file of this folder, gone afterwards unless it was renamed."""
        with translated(subject):
            self._prepare()
            fd, temporary = self._new()
            try:
                yield fd, temporary
            finally:
                with contextlib.suppress(OSError):
                    temporary.unlink()
                os.close(fd)

    def _new(self) -> tuple[int, Path]:
        while True:
            temporary = self._folder / f"{_TEMPORARY}{secrets.token_hex(8)}"
            fd = os.open(temporary, _CREATE, 0o600)
            os.fchmod(fd, 0o600)
            # The lock says that the writer lives; the system lets go of it however the writer ends.
            if _locked(fd) and os.fstat(fd).st_nlink:
                return fd, temporary
            os.close(fd)  # somebody who cleans up was faster

    def _settle(self, fd: int, temporary: Path, digest: str) -> None:
        """Give a written file its digest for a name."""
        temporary.rename(self._folder / digest)
        self._checked[digest] = _signature(fd)
        self._sync()

    def _prepare(self) -> None:
        if self._ready and self._folder.is_dir():
            return
        make_private_dir(self._folder)
        with os.scandir(self._folder) as scan:
            left = [entry.name for entry in scan if entry.name.startswith(_TEMPORARY)]
        for name in left:
            _remove_abandoned(self._folder / name)
        self._ready = True

    def _sync(self) -> None:
        with contextlib.suppress(OSError):  # some file systems cannot
            fd = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)


def regular(status: os.stat_result, subject: str) -> os.stat_result:
    """The status of a file, when it is a regular one.

    Raises:
        ArtifactError: it is a folder, FIFO, socket or device.
    """
    if stat.S_ISDIR(status.st_mode):
        raise ArtifactError(f"{subject}: a folder; name a file")
    if not stat.S_ISREG(status.st_mode):
        raise ArtifactError(f"{subject}: not a regular file")
    return status


def _signature(fd: int) -> _Signature:
    status = os.fstat(fd)
    # The change time cannot be set by a program, so an equal signature means equal bytes.
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _locked(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks: nothing of it is removed either
    return True


def _remove_abandoned(path: Path) -> None:
    with contextlib.suppress(OSError):
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
        finally:
            os.close(fd)


def _damaged(digest: str) -> ArtifactError:
    return ArtifactError(f"artifact {digest[:12]} is damaged on disk: its bytes are not those that were kept")


def _taken(relative: str) -> ArtifactError:
    return ArtifactError(f"{relative} exists already and has another content; nothing was overwritten")
