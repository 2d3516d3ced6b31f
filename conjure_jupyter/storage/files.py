"""Keys as files of one folder: whole or not at all, for their owner only, and never by way of a link.

A folder that is mounted for tools is full of what they like. Each part of a key is opened relative to the
folder before it and none may be a link, so that no key leads outside, whatever is swapped meanwhile.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import StorageError, StorageNotFoundError
from .keys import check_key, is_hidden

_CHUNK = 1 << 20
_OPEN = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # a FIFO in a file's place is not waited for
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

#: What differs once a file was written: inode, size, time of change.
Signature = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Written:
    """A file as it was just written or looked at."""

    size: int
    sha256: str
    signature: Signature
    changed: float


def signature(status: os.stat_result) -> Signature:
    """Of a file; equal ones mean equal bytes, as far as a file system can tell."""
    return (status.st_ino, status.st_size, status.st_mtime_ns)


class Folder:
    """A folder of files by key. Its methods block; call them in a thread."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._digests: dict[str, tuple[Signature, str]] = {}

    def remember(self, key: str, written: Written) -> None:
        """Its digest need not be computed again while the file stays as it is."""
        self._digests[key] = written.signature, written.sha256

    def path(self, key: str) -> Path:
        """Where a key lies; for telling, not for opening."""
        return self.root / check_key(key)

    def write(self, key: str, content: bytes | Path) -> Written:
        """Put bytes, or those of a file, under a key.

        Raises:
            StorageError: they cannot be kept; what was there is as it was.
        """
        with self.staged(key, content) as staged:
            return staged.commit()

    @contextlib.contextmanager
    def staged(self, key: str, content: bytes | Path | None) -> Iterator[Staged]:
        """A new file beside a key's place, on disk in full; ``commit`` puts it there, the end removes it.

        Args:
            key: whose place it is.
            content: its bytes; None makes an empty one, for the caller to fill by its ``fd`` and ``filled``.

        Raises:
            StorageError: the bytes cannot be kept, or something other than a file is in the place.
        """
        with self._holding(key, create=True) as (dir_fd, name):
            _check_place(dir_fd, name)
            temporary = f".conjure-{secrets.token_hex(8)}.tmp"
            fd = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | _OPEN, 0o600, dir_fd=dir_fd)
            staged = Staged(self, key, dir_fd, temporary, fd)
            try:
                os.fchmod(fd, 0o600)
                staged.fill(content)
                yield staged
            finally:
                os.close(fd)
                if not staged.committed:
                    with contextlib.suppress(OSError):
                        os.unlink(temporary, dir_fd=dir_fd)

    def read(self, key: str) -> bytes:
        """The bytes under a key.

        Raises:
            StorageNotFoundError: there are none.
            StorageError: they cannot be read.
        """
        with self.opened(key) as fd, open(fd, "rb", closefd=False) as file:
            return file.read()

    @contextlib.contextmanager
    def opened(self, key: str) -> Iterator[int]:
        """A key's file, open for reading.

        Raises:
            StorageNotFoundError: there is none.
            StorageError: it cannot be opened, or not be read in the block.
        """
        with self._holding(key) as (dir_fd, name):
            fd = os.open(name, os.O_RDONLY | _OPEN, dir_fd=dir_fd)
            try:
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    raise OSError(errno.EISDIR, "not a file")
                yield fd
            finally:
                os.close(fd)

    def look(self, key: str, *, digest: bool = True) -> Written | None:
        """What lies under a key, None when nothing does; its digest is computed once a version.

        Raises:
            StorageError: it cannot be read, or its folder is a link.
        """
        with contextlib.suppress(StorageNotFoundError), self.opened(key) as fd:
            status = os.fstat(fd)
            known = self._digests.get(key)
            if known is None or known[0] != signature(status):
                if not digest:
                    return Written(status.st_size, "", signature(status), status.st_mtime)
                with open(fd, "rb", closefd=False) as file:
                    known = signature(status), hashlib.file_digest(file, "sha256").hexdigest()
                self._digests[key] = known
            return Written(status.st_size, known[1], signature(status), status.st_mtime)
        return None

    def delete(self, key: str) -> bool:
        """Delete a key's file, and the folders that it leaves empty; says whether there was one.

        Raises:
            StorageError: it cannot be deleted.
        """
        self._digests.pop(key, None)
        try:
            with self._holding(key) as (dir_fd, name):
                if stat.S_ISDIR(os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode):
                    return False
                os.unlink(name, dir_fd=dir_fd)
        except StorageNotFoundError:
            return False
        parent = key.rpartition("/")[0]
        while parent:
            try:
                with self._holding(parent) as (dir_fd, name):
                    os.rmdir(name, dir_fd=dir_fd)
            except StorageError:
                break  # others are in it
            parent = parent.rpartition("/")[0]
        return True

    def keys(self, prefix: str = "") -> list[str]:
        """The keys of all files that begin with ``prefix``, sorted; links and what is no file are none.

        Raises:
            StorageError: the folder cannot be read.
        """
        found: list[str] = []
        pending = [""]
        while pending:
            below = pending.pop()
            try:
                with os.scandir(self.root / below) as scan:
                    entries = list(scan)
            except OSError as error:
                if below:
                    continue  # a folder that went meanwhile, or that a tool has locked
                raise StorageError(str(self.root), error.strerror or str(error)) from error
            for entry in entries:
                key = below + entry.name
                if entry.is_symlink():
                    continue
                if entry.is_dir():
                    if key.startswith(prefix[: len(key)]) and not is_hidden(key):
                        pending.append(key + "/")
                elif entry.is_file() and key.startswith(prefix) and _possible(key):
                    found.append(key)
        return sorted(found)

    @contextlib.contextmanager
    def _holding(self, key: str, *, create: bool = False) -> Iterator[tuple[int, str]]:
        """The open folder that holds a key's file, and the file's name in it; ours are the errors."""
        *folders, name = check_key(key).split("/")
        try:
            fd = os.open(self.root, _FOLDER)
            try:
                for part in folders:
                    fd = _step(fd, part, create=create)
                yield fd, name
            finally:
                os.close(fd)
        except StorageError:
            raise
        except (FileNotFoundError, NotADirectoryError) as error:
            if create:
                raise StorageError(key, f"cannot be kept: {error.strerror}") from error
            raise StorageNotFoundError(key, "there is nothing under that key") from error
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EMLINK):
                raise StorageError(key, "a link lies in its place, and links are not followed") from error
            raise StorageError(key, error.strerror or str(error)) from error


def _step(fd: int, part: str, *, create: bool) -> int:
    """Go from one open folder to one in it; closes the first, unless it raises."""
    made = False
    if create:
        with contextlib.suppress(FileExistsError):
            os.mkdir(part, 0o700, dir_fd=fd)
            made = True
    if made:
        os.chmod(part, 0o700, dir_fd=fd)  # the umask may have taken the owner's rights
    status = os.stat(part, dir_fd=fd, follow_symlinks=False)
    if stat.S_ISLNK(status.st_mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    deeper = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=fd)
    os.close(fd)
    return deeper


def _check_place(dir_fd: int, name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        mode = os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


class Staged:
    """A file that is about to take a key's place."""

    def __init__(self, folder: Folder, key: str, dir_fd: int, temporary: str, fd: int) -> None:
        self.fd = fd
        self.committed = False
        self._folder, self._key = folder, key
        self._dir_fd, self._temporary = dir_fd, temporary
        self._digest = ""

    def fill(self, content: bytes | Path | None) -> None:
        """Write the content and make it last."""
        if content is None:
            return
        if isinstance(content, bytes):
            self._digest = hashlib.sha256(content).hexdigest()
            write_all(self.fd, content)
        else:
            source = os.open(content, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                if not stat.S_ISREG(os.fstat(source).st_mode):
                    raise OSError(errno.EISDIR, "not a file")
                self._digest = copy_bytes(source, self.fd)
            finally:
                os.close(source)
        os.fsync(self.fd)

    def filled(self, digest: str) -> None:
        """Say that others have filled it, with bytes of this digest when they know it; makes them last."""
        self._digest = digest
        os.fsync(self.fd)

    @property
    def written(self) -> Written:
        """What the file is."""
        status = os.fstat(self.fd)
        return Written(status.st_size, self._digest, signature(status), status.st_mtime)

    def commit(self) -> Written:
        """Put it in its place, whatever file lies there; returns what it is."""
        written = self.written
        name = self._key.rpartition("/")[2]
        os.rename(self._temporary, name, src_dir_fd=self._dir_fd, dst_dir_fd=self._dir_fd)
        self.committed = True
        os.fsync(self._dir_fd)
        if written.sha256:
            self._folder.remember(self._key, written)
        return written


def copy_bytes(source: int, target: int) -> str:
    """Copy an open file from its start; returns the digest of just the bytes that were copied."""
    digest, offset = hashlib.sha256(), 0
    while chunk := os.pread(source, _CHUNK, offset):
        digest.update(chunk)
        write_all(target, chunk)
        offset += len(chunk)
    return digest.hexdigest()


def write_all(fd: int, data: bytes) -> None:
    """Write all of it: the system may take less at a time."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _possible(key: str) -> bool:
    try:
        check_key(key)
    except StorageError:
        return False
    return True
