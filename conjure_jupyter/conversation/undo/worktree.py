"""The regular files of a session's ``work`` folder: what is there, and changing it without following a link.

A command may have filled the folder with anything: links, FIFOs, paths longer than the system takes. What
cannot be looked into is named, so that nobody takes it for empty.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from ..trees import MOST_ENTRIES

#: Folders at the top that are no work of anybody's: copies of skills, and earlier versions put there to read.
_NOT_WORK = re.compile(r"skills|turn_\d{4,}")

#: What is always there, even when it is empty.
_STANDING = frozenset({"outputs", "uploads"})

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


#: Nanoseconds. File systems stamp a change with a clock that may tick this slowly.
_TICK = 50_000_000


class Found(NamedTuple):
    """What lies in a tree.

    Attributes:
        files: the status of each regular file, by its path relative to the tree.
        unseen: folders that could not be looked into, or not to their end; each ends with ``/``, and the
            tree itself is an empty text.
    """

    files: dict[str, os.stat_result]
    unseen: tuple[str, ...]


def settled(status: os.stat_result) -> bool:
    """Whether a further change of a file would show in its times: the last one is more than a tick ago."""
    return max(status.st_mtime_ns, status.st_ctime_ns) + _TICK < time.time_ns()


def is_work(path: str) -> bool:
    """Whether a relative path is one that snapshots cover."""
    return not _NOT_WORK.fullmatch(path.partition("/")[0])


def look(root: Path) -> Found:
    """The regular files below ``root`` and what could not be seen; follows no link, reads no file."""
    if root.is_symlink():
        return Found({}, ("",))
    looking = _Looking(os.fspath(root))
    while looking.pending:
        looking.enter(looking.pending.pop())
    return Found(looking.files, tuple(sorted(looking.unseen)))


class _Looking:
    """A walk through a tree, folder by folder."""

    def __init__(self, top: str) -> None:
        self.files: dict[str, os.stat_result] = {}
        self.unseen: list[str] = []
        self.pending = [""]
        self._top = top
        self._room = MOST_ENTRIES

    def enter(self, prefix: str) -> None:
        """Look at what one folder holds; those in it are looked at later."""
        try:
            with os.scandir(f"{self._top}/{prefix}") as scan:
                entries = list(itertools.islice(scan, self._room + 1))
        except FileNotFoundError:
            return
        except OSError:
            self.unseen.append(prefix)
            return
        if len(entries) > self._room:
            self.unseen.append(prefix)
            entries.pop()
        self._room -= len(entries)
        deeper = [entry.name for entry in entries if self._is_folder(prefix, entry)]
        # The user's own files come first, in case there are more than are looked at.
        deeper.sort(key=lambda name: (bool(prefix) or name not in _STANDING, name), reverse=True)
        self.pending += [f"{prefix}{name}/" for name in deeper]

    def _is_folder(self, prefix: str, entry: os.DirEntry[str]) -> bool:
        """Take a file; whether it is a folder to enter instead."""
        if not prefix and not is_work(entry.name):
            return False
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return False
        except OSError:
            self.unseen.append(f"{prefix}{entry.name}/")  # too long a path to ask for, whatever it is
            return False
        if stat.S_ISREG(status.st_mode):
            self.files[prefix + entry.name] = status
        return stat.S_ISDIR(status.st_mode)


@contextlib.contextmanager
def parent(root: Path, relative: str, *, create: bool = False) -> Iterator[tuple[int, str]]:
    """The open folder that holds a file, and the file's name in it; no link on the way is followed.

    Args:
        root: the tree.
        relative: the file's path in it.
        create: make the folders on the way that do not exist.

    Raises:
        OSError: a part of the path is missing, a link, or no folder.
    """
    *folders, name = relative.split("/")
    fd = os.open(root, _FOLDER)
    try:
        for folder in folders:
            if create:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(folder, dir_fd=fd)
            deeper = os.open(folder, _FOLDER, dir_fd=fd)
            os.close(fd)
            fd = deeper
        yield fd, name
    finally:
        os.close(fd)


def make_folders(root: Path, relative: str) -> None:
    """Make the folders that a file is to lie in, with the mode that a command would give them.

    Raises:
        OSError: one cannot be made, or a link or file is in its place.
    """
    with parent(root, relative, create=True):
        pass


def status_of(root: Path, relative: str) -> os.stat_result | None:
    """What lies at a path, links not followed; None when nothing does.

    Raises:
        OSError: it cannot be looked at: a part of the path is a link, for one.
    """
    try:
        with parent(root, relative) as (fd, name):
            return os.stat(name, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        # A file where a folder was is no hindrance in looking; a link is, and Linux says the same of both.
        if _is_link_on_the_way(root, relative):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
        return None


def _is_link_on_the_way(root: Path, relative: str) -> bool:
    parts = relative.split("/")[:-1]
    return any((root / "/".join(parts[: n + 1])).is_symlink() for n in range(len(parts)))


def remove(root: Path, relative: str, check: Callable[[os.stat_result], None]) -> None:
    """Remove a regular file once ``check`` has seen its status and raised nothing.

    Raises:
        OSError: it cannot be removed.
    """
    with parent(root, relative) as (fd, name):
        check(os.stat(name, dir_fd=fd, follow_symlinks=False))
        os.unlink(name, dir_fd=fd)


def drop_empty_folders(root: Path, relative: str) -> None:
    """Remove the folders that held a file, from the inside out, as far as they are empty now."""
    folder = relative.rpartition("/")[0]
    while folder and folder not in _STANDING:
        try:
            with parent(root, folder) as (fd, name):
                os.rmdir(name, dir_fd=fd)
        except FileNotFoundError:
            pass
        except OSError:
            return  # something lies in it, or it may not be removed: it stays
        folder = folder.rpartition("/")[0]


def drop_empty_tree(root: Path, relative: str) -> None:
    """Remove a folder that holds nothing but folders, so that a file can take its name.

    Raises:
        OSError: something else lies in it, or it cannot be removed.
    """
    with parent(root, relative) as (fd, name):
        pending, folders = [name], []
        while pending:
            folders.append(folder := pending.pop())
            inside = os.open(folder, _FOLDER, dir_fd=fd)
            try:
                with os.scandir(inside) as scan:
                    for entry in scan:
                        if not entry.is_dir(follow_symlinks=False):
                            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY))
                        pending.append(f"{folder}/{entry.name}")
            finally:
                os.close(inside)
        for folder in reversed(folders):
            os.rmdir(folder, dir_fd=fd)
