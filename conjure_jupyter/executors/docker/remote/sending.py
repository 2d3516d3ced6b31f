"""Makes the archives that are sent to an engine, while they are sent."""

from __future__ import annotations

import os
import stat
import tarfile
import threading
from collections.abc import Iterable, Iterator

from .entries import Entry, StoppedError, described
from .tree import Tree

_BLOCK = 512
_CHUNK = 1 << 20
_END = bytes(2 * _BLOCK)
_TYPES = {"file": tarfile.REGTYPE, "dir": tarfile.DIRTYPE, "link": tarfile.SYMTYPE}


class Sending:
    """An archive of some entries of a folder.

    Args:
        tree: the folder.
        entries: what to send, by relative path; holders before what they hold.
        prefix: the name of the folder in the archive.
        owner: uid and gid of everything in it.
        stop: set when it is to break off.

    Attributes:
        sent: what was sent whole, as it was when it was opened.
    """

    def __init__(
        self,
        tree: Tree,
        entries: Iterable[tuple[str, Entry]],
        *,
        prefix: str,
        owner: tuple[int, int],
        stop: threading.Event,
    ) -> None:
        self._tree = tree
        self._entries = entries
        self._prefix = prefix
        self._owner = owner
        self._stop = stop
        self.sent: dict[str, Entry] = {}

    def __iter__(self) -> Iterator[bytes]:
        """Its bytes. A file that cannot be opened any more is left out.

        Raises:
            StoppedError: nobody waits for it any more.
        """
        waiting = bytearray()
        for path, entry in self._entries:
            for piece in self._one(path, entry):
                if self._stop.is_set():
                    raise StoppedError
                waiting += piece
                if len(waiting) >= _CHUNK:
                    yield bytes(waiting)
                    waiting.clear()
        yield bytes(waiting + _END)

    def _one(self, path: str, entry: Entry) -> Iterator[bytes]:
        if entry.kind != "file":
            self.sent[path] = entry
            yield header("/".join(filter(None, (self._prefix, path))), entry, self._owner)
            return
        try:
            fd = self._tree.open(path)
        except OSError:
            return
        with os.fdopen(fd, "rb", buffering=0) as file:
            found = described(os.fstat(fd))
            if found is None or found.kind != "file":
                return
            yield header(f"{self._prefix}/{path}", found, self._owner)
            left = found.size
            while left and (piece := file.read(min(left, _CHUNK))):
                left -= len(piece)
                yield piece
            while left:  # it got shorter: what was announced must follow
                yield bytes(min(left, _CHUNK))
                left -= min(left, _CHUNK)
            yield bytes(-found.size % _BLOCK)
            if described(os.fstat(fd)) == found:
                self.sent[path] = found


def header(name: str, entry: Entry, owner: tuple[int, int]) -> bytes:
    """The header of an entry; times in nanoseconds, names of any bytes."""
    info = tarfile.TarInfo(name)
    info.type = _TYPES[entry.kind]
    info.size = entry.size
    info.mode = stat.S_IMODE(entry.mode)
    info.linkname = entry.target
    info.uid, info.gid = owner
    if entry.kind == "file":
        seconds, part = divmod(max(entry.mtime_ns, 0), 10**9)
        info.pax_headers = {"mtime": f"{seconds}.{part:09d}"}
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


def archive_of(name: str, data: bytes, owner: tuple[int, int]) -> bytes:
    """An archive of one small file."""
    entry = Entry("file", len(data), mode=0o644)
    return header(name, entry, owner) + data + bytes(-len(data) % _BLOCK) + _END
