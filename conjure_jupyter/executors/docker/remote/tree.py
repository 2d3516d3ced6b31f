"""A folder of this machine, read and written without ever following a link in it.

Every step of a path is opened relative to the one before. Files are written under another name and renamed,
so that a path holds the old bytes or the new ones.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ....paths.walk import NOFOLLOW, SAFE_FLAGS, STEP
from .entries import MOST_DEPTH, UNFINISHED, Below, Entry, described, is_plain, leads_inside

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | SAFE_FLAGS | NOFOLLOW
_ZEROS = bytes(1 << 16)
#: Fewer zeros than this leave no hole.
_PAGE = 4096


@dataclass(slots=True)
class Scan:
    """What a folder holds.

    Attributes:
        entries: by relative path, holders before what they hold.
        unknown: folders whose inside could not be looked at; "" when the folder itself could not.
        left_out: what is not taken over, by reason.
    """

    entries: dict[str, Entry] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    left_out: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class _Look:
    skip: Below
    most: int
    found: Scan = field(default_factory=Scan)


class Tree:
    """A folder.

    Args:
        root: its path, which is trusted.
        dots: whether ``scan`` sees what has a name that begins with a dot.
    """

    def __init__(self, root: Path, *, dots: bool = True) -> None:
        self.root = root
        self.dots = dots

    def scan(self, skip: Below, most: int) -> Scan:
        """Look at everything in it, ``skip`` left aside, at most ``most`` entries. Blocks."""
        look = _Look(skip, most)
        try:
            fd = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | SAFE_FLAGS)
        except OSError:
            look.found.unknown.add("")
        else:
            self._look_into(fd, "", look)
        return look.found

    def _look_into(self, fd: int, prefix: str, look: _Look) -> None:
        try:
            with os.scandir(fd) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
            for entry in entries:
                path = prefix + entry.name
                if entry.name.startswith(UNFINISHED if self.dots else ".") or path in look.skip:
                    continue
                if len(look.found.entries) >= look.most:
                    look.found.unknown.add(prefix.rstrip("/"))
                    look.found.left_out[f"more than {look.most:,} files"] += 1
                    break
                with contextlib.suppress(FileNotFoundError):  # gone meanwhile
                    self._look_at(fd, path, entry, look)
        except OSError:
            look.found.unknown.add(prefix.rstrip("/"))
            look.found.left_out["folders that cannot be read"] += 1
        finally:
            os.close(fd)

    def _look_at(self, fd: int, path: str, entry: os.DirEntry[str], look: _Look) -> None:
        info = entry.stat(follow_symlinks=False)
        target = os.readlink(entry.name, dir_fd=fd) if stat.S_ISLNK(info.st_mode) else ""
        shown = described(info, target)
        if shown is None:
            look.found.left_out["what is neither file nor folder"] += 1
        elif shown.kind == "link" and not leads_inside(path, target):
            look.found.left_out["links that lead outside"] += 1
        elif not is_plain(path):
            look.found.unknown.add(path)
            look.found.left_out[f"more than {MOST_DEPTH} folders in one another"] += 1
        else:
            look.found.entries[path] = shown
            if shown.kind == "dir":
                self._look_into_folder(fd, path, entry.name, look)

    def _look_into_folder(self, fd: int, path: str, name: str, look: _Look) -> None:
        try:
            inner = os.open(name, _FOLDER, dir_fd=fd)
        except OSError:
            look.found.unknown.add(path)
            look.found.left_out["folders that cannot be read"] += 1
        else:
            self._look_into(inner, path + "/", look)

    @contextlib.contextmanager
    def holder(self, path: str, *, create: bool = False) -> Iterator[tuple[int, str]]:
        """The open folder that holds a path, and the name there.

        Args:
            create: make folders on the way that are missing.

        Raises:
            OSError: a folder is missing, or is none.
        """
        *folders, name = path.split("/")
        fd = os.open(self.root, STEP)
        try:
            for folder in folders:
                if create:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(folder, 0o755, dir_fd=fd)
                deeper = os.open(folder, STEP | NOFOLLOW, dir_fd=fd)
                os.close(fd)
                fd = deeper
            yield fd, name
        finally:
            os.close(fd)

    def open(self, path: str) -> int:
        """Open a file for reading.

        Raises:
            OSError: it is gone, a link, or cannot be read.
        """
        with self.holder(path) as (fd, name):
            return os.open(name, os.O_RDONLY | SAFE_FLAGS | NOFOLLOW, dir_fd=fd)

    def look(self, path: str) -> Entry | None:
        """What lies at a path; None for nothing. What is neither file, folder nor link is a dead link."""
        try:
            with self.holder(path) as (fd, name):
                return looked(fd, name)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EMLINK):
                return None
            raise

    def make_folder(self, path: str, mode: int) -> None:
        """Make a folder, or give one another mode; its owner can always use it.

        Raises:
            OSError: something else lies there, or the system refuses.
        """
        with self.holder(path, create=True) as (fd, name):
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=fd)
            inner = os.open(name, _FOLDER, dir_fd=fd)
            try:
                os.fchmod(inner, mode | 0o700)
            finally:
                os.close(inner)

    def make_link(self, path: str, target: str) -> None:
        """Put a link at a path, in place of a file or link that is there.

        Raises:
            OSError: a folder lies there, or the system refuses.
        """
        with self.holder(path, create=True) as (fd, name):
            temporary = unfinished()
            os.symlink(target, temporary, dir_fd=fd)
            with removed_on_failure(fd, temporary):
                os.rename(temporary, name, src_dir_fd=fd, dst_dir_fd=fd)

    def remove(self, path: str) -> None:
        """Remove a file, a link, or a folder that is empty.

        Raises:
            OSError: it is gone, not empty, or the system refuses.
        """
        with self.holder(path) as (fd, name):
            info = os.stat(name, dir_fd=fd, follow_symlinks=False)
            (os.rmdir if stat.S_ISDIR(info.st_mode) else os.unlink)(name, dir_fd=fd)


def looked(fd: int, name: str) -> Entry | None:
    """What lies in an open folder under a name."""
    try:
        info = os.stat(name, dir_fd=fd, follow_symlinks=False)
        target = os.readlink(name, dir_fd=fd) if stat.S_ISLNK(info.st_mode) else ""
    except FileNotFoundError:
        return None
    return described(info, target) or Entry("link")


def unfinished() -> str:
    """A name for what is not whole yet."""
    return f"{UNFINISHED}{secrets.token_hex(8)}.tmp"


@contextlib.contextmanager
def removed_on_failure(fd: int, name: str) -> Iterator[None]:
    """Remove what was made under a name when the block fails."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=fd)
        raise


def write_new(fd: int, name: str, pieces: Iterable[bytes | memoryview], shown: Entry) -> None:
    """Make a file with the bytes, mode and time of an entry; runs of zeros take no room on disk.

    Raises:
        OSError: it cannot be written whole.
    """
    new = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | SAFE_FLAGS | NOFOLLOW, 0o600, dir_fd=fd)
    with os.fdopen(new, "wb", buffering=0) as file, removed_on_failure(fd, name):
        size = 0
        for piece in pieces:
            view = memoryview(piece)
            size += len(view)
            while view:
                part = view[: len(_ZEROS)]
                if len(part) >= _PAGE and not part[0] and part.tobytes() == _ZEROS[: len(part)]:
                    file.seek(len(part), os.SEEK_CUR)
                    view = view[len(part) :]
                else:
                    view = view[file.write(part) :]
        file.truncate(size)
        os.fchmod(new, shown.mode & 0o777 | 0o600)
        os.utime(new, ns=(shown.mtime_ns, shown.mtime_ns))
