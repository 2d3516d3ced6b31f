"""Files that run code later and cannot be locked: put back as they were when a command changed them.

They are recorded when no command runs, and looked at when one has ended: what was made or changed is set
aside under another name, which nothing runs, and what was there before comes back. A user's own change in
that very moment is set aside as well, and not lost.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

#: Bytes of a file, and entries of a folder, up to which one can be put back; larger ones are not watched.
MAX_BYTES, MAX_ENTRIES = 1 << 20, 1000

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class _TooLargeError(Exception):
    pass


@dataclass(frozen=True, slots=True)
class Record:
    """A file, link or folder as it was.

    Attributes:
        mark: changes with it; its content counts for a file, not the time.
        mode: with the kind.
        data: of a file, or where a link leads.
        entries: of a folder.
    """

    mark: tuple[int, ...] = ()
    mode: int = 0
    data: bytes = b""
    entries: dict[str, Record] = field(default_factory=dict)

    def same(self, other: Record | None) -> bool:
        """Whether kind, content and entries are the same."""
        return (
            other is not None
            and self.mode == other.mode
            and self.data == other.data
            and self.entries.keys() == other.entries.keys()
            and all(entry.same(other.entries[name]) for name, entry in self.entries.items())
        )


class Watch:
    """Watches names below folders that may be written.

    Args:
        roots: the folders.
        paths: the names in them to keep as they are, there or not.
    """

    def __init__(self, roots: Iterable[Path], paths: Iterable[Path]) -> None:
        self._names: dict[Path, tuple[Path, ...]] = {}
        for path in paths:
            root = next((root for root in roots if path != root and path.is_relative_to(root)), None)
            if root is not None:
                self._names[root] = (*self._names.get(root, ()), path.relative_to(root))
        self._truth: dict[Path, Record | None] = {}
        self._running = 0

    def begin(self) -> None:
        """A command is about to start."""
        if self._running == 0 and self._names:
            truth: dict[Path, Record | None] = {}
            for path, (at, name) in self._each():
                with contextlib.suppress(OSError, _TooLargeError):
                    truth[path] = _record(at, name, self._truth.get(path))
            self._truth = truth
        self._running += 1

    def end(self) -> list[str]:
        """A command has ended: put things back.

        Returns:
            A sentence for each that was not as before.
        """
        self._running -= 1
        notes = []
        for root, names in self._names.items():
            for name in names:
                note = self._put_back(root, name)
                if note:
                    notes.append(note)
        return notes

    def _each(self) -> Iterator[tuple[Path, tuple[int, str]]]:
        for root, names in self._names.items():
            for name in names:
                try:
                    at = _enter(root, name.parts[:-1])
                except OSError:
                    continue
                try:
                    yield root / name, (at, name.name)
                finally:
                    os.close(at)

    def _put_back(self, root: Path, relative: Path) -> str | None:
        path = root / relative
        if path not in self._truth:
            return None
        before = self._truth[path]
        try:
            at = self._way_back(root, relative.parts[:-1])
        except OSError:
            return None
        try:
            try:
                now = _record(at, relative.name, before)
            except _TooLargeError:
                now = Record()
            if before.same(now) if before is not None else now is None:
                return None
            aside = None
            if now is not None:
                aside = f"{relative.name.lstrip('.')}.blocked-{secrets.token_hex(4)}"
                os.rename(relative.name, aside, src_dir_fd=at, dst_dir_fd=at)
            if before is not None:
                _restore(at, relative.name, before)
        except OSError as error:
            return f"{relative} may not be changed here, and could not be put back: {error.strerror}"
        finally:
            os.close(at)
        moved = "" if aside is None else f"; what was made of it is in {relative.parent / aside}"
        return f"{relative} may not be changed here and is as it was before{moved}"

    def _way_back(self, root: Path, parts: tuple[str, ...]) -> int:
        """The folder that holds a name; what was put in the place of a folder on the way is set aside."""
        at = _enter(root, ())
        for part in parts:
            try:
                deeper = os.open(part, _FOLDER, dir_fd=at)
            except OSError:
                with contextlib.suppress(FileNotFoundError):
                    aside = f"{part.lstrip('.')}.blocked-{secrets.token_hex(4)}"
                    os.rename(part, aside, src_dir_fd=at, dst_dir_fd=at)
                os.mkdir(part, 0o755, dir_fd=at)
                deeper = os.open(part, _FOLDER, dir_fd=at)
            finally:
                os.close(at)
            at = deeper
        return at


def _enter(root: Path, parts: tuple[str, ...]) -> int:
    at = os.open(root, _FOLDER)
    for part in parts:
        try:
            deeper = os.open(part, _FOLDER, dir_fd=at)
        finally:
            os.close(at)
        at = deeper
    return at


def _record(at: int, name: str, known: Record | None, left: list[int] | None = None) -> Record | None:
    """What lies under a name now; a file that ``known`` describes is not read again.

    Raises:
        _TooLargeError: it is more than can be put back.
    """
    left = [MAX_ENTRIES] if left is None else left
    left[0] -= 1
    try:
        info = os.stat(name, dir_fd=at, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if left[0] < 0 or (stat.S_ISREG(info.st_mode) and info.st_size > MAX_BYTES):
        raise _TooLargeError
    # The time of the last change of an inode cannot be set by a program.
    mark = (info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
    if stat.S_ISDIR(info.st_mode):
        fd = os.open(name, _FOLDER, dir_fd=at)
        try:
            old = {} if known is None else known.entries
            found = {entry: _record(fd, entry, old.get(entry), left) for entry in os.listdir(fd)}  # noqa: PTH208  a descriptor
        finally:
            os.close(fd)
        return Record(mark, info.st_mode, entries={key: value for key, value in found.items() if value})
    if known is not None and known.mark == mark and known.mode == info.st_mode:
        return known
    if stat.S_ISLNK(info.st_mode):
        return Record(mark, info.st_mode, os.fsencode(os.readlink(name, dir_fd=at)))
    if not stat.S_ISREG(info.st_mode):
        return Record(mark, info.st_mode)
    fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=at)
    with os.fdopen(fd, "rb") as file:
        return Record(mark, info.st_mode, file.read(MAX_BYTES + 1))


def _restore(at: int, name: str, record: Record) -> None:
    if stat.S_ISLNK(record.mode):
        os.symlink(os.fsdecode(record.data), name, dir_fd=at)
    elif stat.S_ISDIR(record.mode):
        os.mkdir(name, 0o700, dir_fd=at)
        fd = os.open(name, _FOLDER, dir_fd=at)
        try:
            for entry, inner in record.entries.items():
                _restore(fd, entry, inner)
            os.fchmod(fd, stat.S_IMODE(record.mode))
        finally:
            os.close(fd)
    elif stat.S_ISREG(record.mode):
        fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=at)
        with os.fdopen(fd, "wb") as file:
            file.write(record.data)
            os.fchmod(fd, stat.S_IMODE(record.mode))
