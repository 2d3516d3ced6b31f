"""What lies at a path, on either side, and which names and links are taken over at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

Kind = Literal["file", "dir", "link"]

#: Entries of a folder that are looked at, on either side.
MOST_ENTRIES = 200_000
#: Folders in one another; what lies deeper stays where it is.
MOST_DEPTH = 64
#: Bytes of a path, the system's own limit.
MOST_PATH = 4096
#: What a file is called while it is written.
UNFINISHED = ".conjure-"


class StoppedError(Exception):
    """Nobody waits for it any more."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file, folder or link as one side shows it; it changed when it is not equal to what it was.

    Attributes:
        kind: what it is.
        size: bytes of a file.
        mtime_ns: a file's time of change, nanoseconds since the epoch.
        mode: permission bits, without setuid and its like.
        target: where a link leads.
        mark: a file's inode and the time its status changed, which no program can set; None when unknown.
    """

    kind: Kind
    size: int = 0
    mtime_ns: int = 0
    mode: int = 0
    target: str = ""
    mark: tuple[int, int] | None = None

    def is_still(self, before: Entry | None) -> bool:
        """Whether it is what it was before, as far as that is known."""
        if before is None:
            return False
        return self == before or (before.mark is None and replace(self, mark=None) == before)


def described(info: os.stat_result, target: str = "") -> Entry | None:
    """An entry for a status; None for sockets, devices and the like."""
    mode = stat.S_IMODE(info.st_mode) & 0o777
    if stat.S_ISREG(info.st_mode):
        return Entry("file", info.st_size, info.st_mtime_ns, mode, mark=(info.st_ino, info.st_ctime_ns))
    if stat.S_ISDIR(info.st_mode):
        return Entry("dir", mode=mode)
    if stat.S_ISLNK(info.st_mode):
        return Entry("link", target=target)
    return None


def is_plain(path: str) -> bool:
    """Whether a relative path is names and nothing else, and short enough."""
    parts = path.split("/")
    return (
        len(parts) <= MOST_DEPTH
        and "\0" not in path
        and not any(part in ("", ".", "..") for part in parts)
        and len(os.fsencode(path)) < MOST_PATH
    )


def leads_inside(path: str, target: str) -> bool:
    """Whether a link at ``path`` stays in the folder, whatever other such links lie on its way.

    It may go up only at its start, and no higher than the folder: where it lies no link is above it, so
    those steps are what they seem; past them every name leads down, or is such a link itself.
    """
    if not target or target.startswith("/") or "\0" in target or len(os.fsencode(target)) >= MOST_PATH:
        return False
    parts = [part for part in target.split("/") if part not in ("", ".")]
    ups = next((at for at, part in enumerate(parts) if part != ".."), len(parts))
    return ups <= path.count("/") and ".." not in parts[ups:]


def above(path: str) -> Iterator[str]:
    """The folders that hold a path, from the nearest up."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


class Below:
    """Tells whether a path is one of some, or lies below one.

    Args:
        tops: relative paths.
    """

    def __init__(self, tops: Iterable[str] = ()) -> None:
        self.tops = frozenset(tops)

    def __contains__(self, path: str) -> bool:
        return bool(self.tops) and (path in self.tops or any(up in self.tops for up in above(path)))
