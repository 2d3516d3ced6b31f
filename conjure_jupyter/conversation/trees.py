"""Folders that commands and strangers have filled: walked, removed and copied without leaving them.

A tree may be deeper than Python's stack or the system's longest path, hold links to anywhere, FIFOs, names
that are no text, and folders without any right. Nothing here follows a link, waits at a FIFO or recurses.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import secrets
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import ToolError
from ..paths import open_beneath

#: Folders that tools leave behind in a skill, and that are no part of it.
LEFT_OUT = frozenset({".git", ".conjure", "__pycache__", "node_modules", ".DS_Store", "__MACOSX"})

#: Most entries of a tree that are looked at; the rest is as if it were not there.
MOST_ENTRIES = 20_000

#: Most files, and bytes, of a tree that are copied.
MOST_FILES, MOST_BYTES = 10_000, 1 << 30

_CHUNK = 1 << 20

Signature = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Copied:
    """A copied file: its bytes' digest, its mode, and what the file system said when it was made."""

    digest: str
    mode: int
    signature: Signature


def walk(
    folder: Path, *, without: Collection[str] = (), avoid: os.stat_result | None = None
) -> Iterator[tuple[str, os.stat_result]]:
    """What lies below a folder and is no folder, sorted, as relative path and status.

    Args:
        folder: nothing is found when it is a link.
        without: names of folders not to enter.
        avoid: a folder not to enter, wherever it lies.
    """
    pending = [""]
    looked = 0
    if folder.is_symlink():
        return
    while pending and looked < MOST_ENTRIES:
        prefix = pending.pop()
        try:
            with os.scandir(folder / prefix) as scan:
                found = sorted(itertools.islice(scan, MOST_ENTRIES - looked), key=lambda entry: entry.name)
        except OSError:
            continue  # not readable, or too deep to be named
        looked += len(found)
        deeper = []
        for entry in found:
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            if not stat.S_ISDIR(status.st_mode):
                yield prefix + entry.name, status
            elif entry.name not in without and not (avoid and os.path.samestat(status, avoid)):
                deeper.append(f"{prefix}{entry.name}/")
        pending += reversed(deeper)


def clear(path: Path) -> None:
    """Remove whatever lies at a path; a link is removed, not followed.

    Raises:
        OSError: it cannot be removed.
    """
    if not os.path.lexists(path):
        return
    if path.is_symlink() or not path.is_dir():
        path.unlink()
        return
    # Each folder is moved up before it is emptied: no path gets longer than the system takes.
    pending = [path]
    while pending:
        folder = pending.pop()
        folder.chmod(0o700)
        with os.scandir(folder) as scan:
            found = list(scan)
        for entry in found:
            if not entry.is_dir(follow_symlinks=False):
                Path(entry).unlink()
            elif folder == path:
                pending.append(Path(entry))
            else:
                Path(entry).chmod(0o700)  # a folder that may not be written may not be moved
                up = path / f".removed-{secrets.token_hex(8)}"
                Path(entry).rename(up)
                pending.append(up)
        if folder != path:
            folder.rmdir()
    path.rmdir()


def copy_tree(
    source: Path, target: Path, *, avoid: os.stat_result | None = None
) -> tuple[dict[str, Copied], list[str]]:
    """Copy a folder's files, made read-only; what leads out of it and what is no file is left out.

    Args:
        source: the folder.
        target: where to; must not exist.
        avoid: a folder not to copy: the one that the copies lie in.

    Returns:
        What was copied, by relative path, and what the user should know of the rest.

    Raises:
        OSError: the folder cannot be read, or a copy not be written.
    """
    inside = source.resolve()
    os.close(os.open(inside, os.O_RDONLY | os.O_DIRECTORY))  # else a folder that is gone looks empty
    target.mkdir(mode=0o700)
    copies: dict[str, Copied] = {}
    problems: list[str] = []
    size = 0
    for relative, status in walk(inside, without=LEFT_OUT, avoid=avoid):
        if relative.rpartition("/")[2] in LEFT_OUT:
            continue
        if len(copies) >= MOST_FILES or size > MOST_BYTES:
            problems.append(f"only its first {len(copies)} files were copied")
            break
        try:
            fd = open_beneath(inside, relative, os.O_RDONLY)
        except ToolError as error:
            if not stat.S_ISLNK(status.st_mode):
                problems.append(f"{relative!r} was left out: {error}")
            continue
        try:
            opened = os.fstat(fd)
            if stat.S_ISREG(opened.st_mode):
                copy = target / relative
                copy.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                mode = 0o555 if opened.st_mode & 0o100 else 0o444
                copies[relative] = Copied(write_new(copy, fd, mode), mode, signature(copy.lstat()))
                size += opened.st_size
        finally:
            os.close(fd)
    return copies, problems


def write_new(path: Path, source: int, mode: int) -> str:
    """Make a file with the bytes of an open one; whole or not at all.

    Returns:
        The SHA-256 of the bytes.

    Raises:
        FileExistsError: something lies there, be it a link that leads nowhere.
        OSError: it cannot be written.
    """
    found = hashlib.sha256()
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        try:
            while chunk := os.read(source, _CHUNK):
                found.update(chunk)
                view = memoryview(chunk)
                while view:
                    view = view[os.write(fd, view) :]
            os.fchmod(fd, mode)
        finally:
            os.close(fd)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return found.hexdigest()


def intact(folder: Path, copies: dict[str, Copied], *, without: Collection[str] = ()) -> bool:
    """Whether a folder holds the copies, as they were made, and nothing else but folders."""
    seen = 0
    for relative, status in walk(folder, without=without):
        copied = copies.get(relative)
        if copied is None or not stat.S_ISREG(status.st_mode):
            return False
        # The change time cannot be set by a program, so an equal signature means equal bytes.
        if signature(status) != copied.signature and (
            stat.S_IMODE(status.st_mode) != copied.mode or _digest_or_none(folder / relative) != copied.digest
        ):
            return False
        seen += 1
    return seen == len(copies)


def signature(status: os.stat_result) -> Signature:
    """What differs once a file was written."""
    return (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def digest(path: Path) -> str:
    """The SHA-256 of a regular file's bytes.

    Raises:
        OSError: it cannot be read, or is something else.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as stream:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise FileNotFoundError(f"{path}: not a file")
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _digest_or_none(path: Path) -> str | None:
    try:
        return digest(path)
    except OSError:
        return None
