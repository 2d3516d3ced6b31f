"""Brings files out of the engine's archives into a folder of this machine."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ....errors import ContainerError, ExecutorError
from .entries import MOST_ENTRIES, Entry, StoppedError, is_plain
from .listing import Listing
from .reading import Archive, BadArchiveError, Member
from .taking import Taking

#: What an archive may hold besides what was asked for: headers, and what grew meanwhile.
_SLACK = 64 << 20


class TornError(Exception):
    """The engine broke off; ``__cause__`` says how."""


@dataclass(slots=True)
class Fetching:
    """One pull of one folder.

    Attributes:
        taking: where to.
        wanted: the files to take, as they were listed; all there is when None.
        fresh: those of them that may change without it showing.
        room: bytes that may still be taken.
        stop: set when it is to end.
        seen: what the archive showed, when everything was fetched.
        again: hard links whose bytes did not come with them.
        too_large: files for which there was no room.
    """

    taking: Taking
    wanted: Mapping[str, Entry] | None
    room: int
    fresh: frozenset[str] = frozenset()
    stop: threading.Event = field(default_factory=threading.Event)
    seen: Listing = field(default_factory=Listing)
    again: list[str] = field(default_factory=list)
    too_large: list[str] = field(default_factory=list)
    _done: set[str] = field(default_factory=set)

    def archive(self, get: Callable[[], Iterable[bytes]], *, top: str, inner: str, expected: int) -> None:
        """Take what is wanted of one archive. Blocks.

        Args:
            get: asks for it.
            top: the path it is of; "" for the folder itself.
            inner: what the engine calls the folder.
            expected: bytes of its files, as listed.

        Raises:
            ContainerError: it is no archive that can be used; what came before stays.
            ExecutorError: this machine is at fault.
            Exception: whatever ``get`` raises.
        """
        archive = Archive(
            self._pieces(get),
            most_bytes=2 * min(expected, self.room) + _SLACK,
            most_entries=MOST_ENTRIES,
        )
        root = _Root(top, inner)
        try:
            for member in archive:
                path = root.path(member.name)
                if path is None:
                    self.taking.left_out["names that lead outside"] += 1
                elif path:
                    self._member(path, member, root, archive)
            archive.finish()
        except BadArchiveError as error:
            raise ContainerError(
                f"the engine's archive of {top or 'the folder'!r} cannot be used: {error}"
            ) from error
        except TornError as error:
            raise error.__cause__ or error from None
        except OSError as error:
            raise ExecutorError(f"{self.taking.tree.root}: {error.strerror or error}") from error

    def _pieces(self, get: Callable[[], Iterable[bytes]]) -> Iterator[bytes]:
        # The engine's errors are OSErrors like this machine's own: wrapped they cannot be mistaken.
        try:
            with _closing(get()) as pieces:
                for piece in pieces:
                    if self.stop.is_set():
                        break
                    yield piece
                else:
                    return
        except Exception as error:
            raise TornError from error
        raise StoppedError

    def _member(self, path: str, member: Member, root: _Root, archive: Archive) -> None:
        shown = self._asked_for(path, member)
        if shown is None or path in self._done:
            return
        if shown.kind != "file":
            self.taking.plain(path, shown)
        elif member.kind == "hard":
            self._hard_link(path, shown, root.path(member.target))
        elif self._fits(path, member.size) and self._take(path, shown, archive.content(), size=member.size):
            self._done.add(path)

    def _asked_for(self, path: str, member: Member) -> Entry | None:
        """What to take a member as; None when it is not to be taken."""
        agreement = self.taking.agreement
        if self.wanted is not None:
            return self.wanted.get(path) if member.kind in ("file", "hard") else None
        if path in agreement.skip:
            return None
        shown = _shown(member)
        if shown is None:
            self.taking.left_out["neither files nor folders"] += 1
            return None
        self.seen.entries[path] = shown
        same = shown.kind != "file" and agreement.knows(path, shown)
        return None if same or path in agreement.doubtful else shown

    def _fits(self, path: str, size: int) -> bool:
        if size > self.room:
            self.too_large.append(path)
            return False
        self.room -= size
        return True

    def _take(self, path: str, shown: Entry, pieces: Iterable[bytes | memoryview], *, size: int) -> bool:
        sure = self.wanted is not None and path not in self.fresh and size == shown.size
        return self.taking.file(path, shown, pieces, sure=sure)

    def _hard_link(self, path: str, shown: Entry, other: str | None) -> None:
        """Take the bytes from the file that came earlier, if it is here as the container has it."""
        agreed = self.taking.agreement.paths.get(other or "")
        if other not in self._done or agreed is None or agreed.here != self.taking.tree.look(other):
            self.again.append(path)
        elif self._fits(path, agreed.here.size):
            with os.fdopen(self.taking.tree.open(other), "rb", buffering=0) as file:
                pieces = iter(lambda: file.read(1 << 20), b"")
                if self._take(path, shown, pieces, size=agreed.here.size):
                    self._done.add(path)


@contextlib.contextmanager
def _closing(pieces: Iterable[bytes]) -> Iterator[Iterable[bytes]]:
    """Closes a generator, and with it the connection that it reads from."""
    try:
        yield pieces
    finally:
        if isinstance(pieces, Generator):
            pieces.close()


@dataclass(frozen=True, slots=True)
class _Root:
    """An archive calls what it is of by its last name; that stands for the whole path.

    Attributes:
        top: the path it is of; "" for the folder itself.
        inner: what the engine calls the folder.
    """

    top: str
    inner: str

    def path(self, name: bytes) -> str | None:
        """A name as a path in the folder: "" for the folder itself, None for what leads elsewhere."""
        first, slash, rest = os.fsdecode(name).partition("/")
        if first != (self.top.rpartition("/")[2] or self.inner):
            return None
        path = self.top + ("/" if slash and self.top else "") + rest
        return path if not path or is_plain(path) else None


def _shown(member: Member) -> Entry | None:
    """What a member says of itself, when there is no listing."""
    if member.kind in ("file", "hard"):
        return Entry("file", member.size, member.mtime_ns, member.mode)
    if member.kind == "dir":
        return Entry("dir", mode=member.mode)
    return Entry("link", target=os.fsdecode(member.target)) if member.kind == "link" else None
