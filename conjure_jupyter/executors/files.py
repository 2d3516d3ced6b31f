"""The file primitives on this machine's file system, blocking and inside the context's folders."""

from __future__ import annotations

import heapq
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from ..errors import PermissionDeniedError, ToolError
from ..paths import located, open_within, read_fd, replace_file
from .contract import ExecutionContext, Stat

Kind = Literal["file", "dir", "link", "other"]
_NOT_WRITABLE = "outside the folders that may be written"


class Files:
    """Reads and writes within the folders of a context.

    A folder that may not be written is known by what it is, not by its name: another spelling of it, as a
    file system without upper and lower case allows, is refused too.
    """

    def __init__(self, context: ExecutionContext) -> None:
        skills = () if context.skills_root is None else (context.skills_root,)
        self._writable = (context.working_directory, *context.writable_paths)
        self._readable = (*self._writable, *context.allowed_paths, *skills)
        self._read_only = context.read_only_paths

    def read(self, path: str, offset: int, limit: int | None) -> bytes:
        """Bytes of a regular file."""
        return read_fd(self.open(path), path, offset=offset, limit=limit)

    def open(self, path: str) -> int:
        """A descriptor of whatever lies there, for ``read_fd``; the caller closes it."""
        return open_within(path, self._readable, os.O_RDONLY)

    def write(self, path: str, data: bytes, mode: int | None) -> None:
        """Replace or make a file, with its parent folders."""
        if path.endswith("/"):
            with located(path.rstrip("/") or "/", self._writable, follow=False, outside=_NOT_WRITABLE):
                raise ToolError(f"{path}: names a folder, not a file")
        refuse = _ReadOnly(path, self._read_only)
        with located(path, self._writable, create=True, visit=refuse.folder, outside=_NOT_WRITABLE) as spot:
            refuse.target(spot.dir_fd, spot.name, spot.real)
            replace_file(spot.dir_fd, spot.name, data, mode=mode)

    def delete(self, path: str) -> None:
        """Remove a file, a link (not what it leads to), or an empty folder."""
        refuse = _ReadOnly(path, self._read_only)
        plain = path.rstrip("/") or path
        with located(plain, self._writable, follow=False, visit=refuse.folder, outside=_NOT_WRITABLE) as spot:
            if spot.name == ".":
                raise PermissionDeniedError(path, "the folder is in use")
            refuse.target(spot.dir_fd, spot.name, spot.real)
            info = os.stat(spot.name, dir_fd=spot.dir_fd, follow_symlinks=False)
            remove = os.rmdir if stat.S_ISDIR(info.st_mode) else os.unlink
            remove(spot.name, dir_fd=spot.dir_fd)

    def stat(self, path: str) -> Stat:
        """What lies at a path."""
        with located(path, self._readable, follow=False) as spot:
            info = os.stat(spot.name, dir_fd=spot.dir_fd, follow_symlinks=False)
            return self._described(path, spot.real, info)

    def list(self, path: str, depth: int, limit: int) -> list[Stat]:
        """What a folder holds; a link to a folder is named, not entered."""
        found: list[Stat] = []
        with located(path, self._readable) as spot:
            fd = os.open(
                spot.name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=spot.dir_fd
            )
            try:
                if not stat.S_ISDIR(os.fstat(fd).st_mode):
                    raise ToolError(f"{path}: not a folder")
                level = [""]
                for _ in range(depth):
                    deeper = []
                    for folder in level:
                        for entry in self._entries(fd, spot.real, folder, limit - len(found)):
                            found.append(entry[0])
                            if entry[1]:
                                deeper.append(entry[0].path)
                    level = deeper
            finally:
                os.close(fd)
        return sorted(found, key=lambda entry: entry.path)

    def _entries(self, top: int, real: str, folder: str, limit: int) -> Iterator[tuple[Stat, bool]]:
        """Each entry of a folder below ``top``, and whether it is a folder of its own."""
        if limit <= 0:
            return
        try:
            fd = _descend(top, folder)
        except OSError:
            return  # removed meanwhile, or not readable: it was listed, its inside is not
        try:
            with os.scandir(fd) as scan:
                names = heapq.nsmallest(limit, (entry.name for entry in scan))
            for name in names:
                try:
                    info = os.stat(name, dir_fd=fd, follow_symlinks=False)
                except FileNotFoundError:
                    continue
                relative = f"{folder}/{name}" if folder else name
                yield self._described(relative, f"{real}/{relative}", info), stat.S_ISDIR(info.st_mode)
        finally:
            os.close(fd)

    def _described(self, shown: str, real: str, info: os.stat_result) -> Stat:
        if stat.S_ISLNK(info.st_mode):
            info = self._through_link(real) or info
        kind = _kind(info.st_mode)
        size = 0 if kind == "dir" else info.st_size
        return Stat(shown, kind, size, info.st_mtime_ns, stat.S_IMODE(info.st_mode))

    def _through_link(self, real: str) -> os.stat_result | None:
        """What a link leads to; None when that is nothing, or outside."""
        try:
            with located(real, self._readable) as spot:
                return os.stat(spot.name, dir_fd=spot.dir_fd, follow_symlinks=False)
        except ToolError:
            return None


class _ReadOnly:
    """Refuses folders and files that may not be written, wherever the path to them comes from."""

    def __init__(self, asked: str, paths: tuple[Path, ...]) -> None:
        self._asked = asked
        self._texts = [os.path.realpath(path) for path in paths]
        self._identities = set()
        for path in paths:
            try:
                info = path.stat()
            except OSError:
                continue  # it does not exist yet: its name still counts
            self._identities.add((info.st_dev, info.st_ino))

    def folder(self, fd: int) -> None:
        """Look at an open folder on the way."""
        self._check(os.fstat(fd))

    def target(self, dir_fd: int, name: str, real: str) -> None:
        """Look at what is about to be changed."""
        if any(real == text or real.startswith(text.rstrip("/") + "/") for text in self._texts):
            self._refuse()
        try:
            info = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
        except FileNotFoundError:
            return
        self._check(info)

    def _check(self, info: os.stat_result) -> None:
        if (info.st_dev, info.st_ino) in self._identities:
            self._refuse()

    def _refuse(self) -> None:
        raise PermissionDeniedError(self._asked, "read-only")


def _descend(top: int, relative: str) -> int:
    """Open a folder found below ``top`` a moment ago, without following what replaced it since."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(".", flags, dir_fd=top)
    for name in relative.split("/") if relative else ():
        try:
            deeper = os.open(name, flags, dir_fd=fd)
        finally:
            os.close(fd)
        fd = deeper
    return fd


def _kind(mode: int) -> Kind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "dir"
    return "link" if stat.S_ISLNK(mode) else "other"
