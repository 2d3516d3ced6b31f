"""The timeline of a session on disk: ``timeline.jsonl``, the only record of what happened.

A block is one ``write`` of one line at the file's end. What was written before is never written again:
resuming passes over what is damaged and cuts nothing but a torn end. See ``recovery`` for what is found on
opening, ``durable`` for when it is on disk.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from ..errors import SessionClosedError, SessionNotFoundError, TimelineError, ToolError
from ..paths import make_private_dir
from ..types import Block
from .aside import keep_aside
from .base import BaseTimeline, session_data
from .durable import GroupCommit, flush_file, flush_folder
from .line import MAX_LINE, VERSION, encode
from .lock import WriterLock
from .recovery import Scan, scan

#: The log's name in a session's folder.
LOG = "timeline.jsonl"

_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_ADVICE = {
    errno.ENOSPC: "the disk is full; free some space and go on: nothing written before is lost",
    errno.EDQUOT: "your quota is used up; free some space and go on: nothing written before is lost",
    errno.EFBIG: "the file may not grow further (ulimit -f); go on in a new session",
    errno.EROFS: "the file system is read-only; open the session read-only, or mount it writable",
    errno.EACCES: "you may not write here; open the session read-only, or change its permissions",
    errno.EIO: "the disk failed; copy what matters elsewhere",
    errno.ELOOP: "this is a link, and a session's log must be a file of its own",
    errno.ESTALE: "the network folder is gone; mount it again and resume the session",
}


class Timeline(BaseTimeline):
    """A session's log on disk. Make one with ``create`` or ``open``.

    Attributes:
        folder: the session's folder.
        path: the log.
    """

    def __init__(self, folder: Path, lock: WriterLock | None) -> None:
        super().__init__(folder.name)
        self.folder = folder
        self.path = folder / LOG
        self._writer = lock
        self._fd = -1
        self._size = 0
        self._dirty = False  # the file may hold bytes after _size that belong to no block
        self._unsynced_folders: list[Path] = []
        self._commit = GroupCommit(self.path, self._flush, lambda: len(self._blocks))
        _alive.add(self)

    @classmethod
    def create(cls, folder: Path, meta: Mapping[str, Any] | None = None) -> Self:
        """Make a session's folder (0700) and its log (0600), whatever the umask, with its first block.

        Args:
            folder: its name is the session's identifier; folders above it are made when needed.
            meta: what the ``session`` block says besides ``id``, ``format`` and ``created``.

        Raises:
            SessionLockedError: another process makes it.
            TimelineError: there is one already, or it cannot be made.
        """
        folder = folder.absolute()  # the notebook may change its working directory
        new = [folder]
        while not new[-1].parent.exists():
            new.append(new[-1].parent)
        try:
            make_private_dir(folder)
        except (ToolError, OSError) as error:
            raise TimelineError(folder, f"cannot be made: {error}") from error
        timeline = cls(folder, WriterLock(folder))
        made = False
        try:
            timeline._fd = os.open(timeline.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | _FLAGS, 0o600)
            _must_be_file(timeline._fd, timeline.path)
            if os.fstat(timeline._fd).st_size:  # an empty one was left by a crash before its first block
                raise TimelineError(timeline.path, "there is a session already; resume it")  # noqa: TRY301  one place cleans up
            made = True
            os.fchmod(timeline._fd, 0o600)
            timeline._unsynced_folders = [*new, new[-1].parent]
            timeline._note_lock()
            timeline.append("session", session_data(timeline.id, meta or {}))
        except BaseException as error:
            if made:
                timeline.path.unlink(missing_ok=True)
            timeline.close()
            if isinstance(error, OSError):
                raise _error(timeline.path, error) from error
            raise
        return timeline

    @classmethod
    def open(cls, folder: Path, *, readonly: bool = False) -> Self:
        """Open a session's log and recover what can be read of it; ``problems`` says what could not.

        Args:
            folder: the session's folder.
            readonly: take no lock and change nothing; nothing can be appended.

        Raises:
            SessionNotFoundError: there is no log, or nothing in it yet.
            SessionLockedError: another process writes to it.
            TimelineError: it cannot be opened, or a later version of this package wrote to it.
        """
        folder = folder.absolute()
        path = folder / LOG
        try:
            fd = os.open(path, (os.O_RDONLY if readonly else os.O_RDWR | os.O_APPEND) | _FLAGS)
        except (FileNotFoundError, NotADirectoryError):
            raise SessionNotFoundError(folder.name, folder.parent) from None
        except OSError as error:
            raise _error(path, error) from error
        timeline = None
        try:
            _must_be_file(fd, path)
            timeline = cls(folder, None if readonly else WriterLock(folder))
            timeline._fd = fd
            timeline._recover(readonly=readonly)
        except BaseException as error:
            if timeline is not None:
                timeline.close()
            else:
                os.close(fd)
            if isinstance(error, OSError):
                raise _error(path, error) from error
            raise
        return timeline

    @property
    def readonly(self) -> bool:
        """Whether it was opened without the right to write."""
        return self._writer is None

    @property
    def _where(self) -> Path:
        return self.path

    def _recover(self, *, readonly: bool) -> None:
        with os.fdopen(os.dup(self._fd), "rb") as file:
            found = scan(file)
        if not found.size:
            raise SessionNotFoundError(self.id, self.folder.parent)
        self._blocks, self._next_seq, self._turn = found.blocks, found.next_seq, found.turn
        self._size = found.size
        self.problems = found.problems
        if found.newer is not None:
            self.problems.append(f"written by a later version of Conjure (format {found.newer})")
        if readonly:
            os.close(self._fd)
            self._fd = -1
            return
        if found.newer is not None:
            raise TimelineError(
                self.path,
                f"written by a later version of Conjure (format {found.newer}, this one writes {VERSION}); "
                "update conjure-jupyter, open the session read-only, or start a new one with %claude new",
            )
        self._note_lock()
        self._unsynced_folders = [self.folder, self.folder.parent]
        with contextlib.suppress(OSError):  # a copy may belong to somebody else; it is still readable
            os.fchmod(self._fd, 0o600)
            self.folder.chmod(0o700)
        self._mend(found)

    def _mend(self, found: Scan) -> None:
        kept = [line for line in found.bad if line.data is not None]
        if kept:
            try:
                keep_aside(self.folder, self._fd, kept)
            except OSError as error:  # they stay in the log as well, so nothing is lost
                self.problems.append(f"damaged lines could not be copied ({error.strerror})")
        tail = found.tail
        if tail is None:
            return
        if found.tail_is_block or tail.data is None:
            self._put(b"\n")  # a good line without its end, or one too long to copy: close it and go on
            return
        keep_aside(self.folder, self._fd, [tail])
        os.ftruncate(self._fd, tail.offset)
        self._size = tail.offset

    def _write(self, block: Block) -> None:
        if self._writer is None:
            raise TimelineError(self.path, "opened read-only")
        line = encode(block)
        if len(line) > MAX_LINE:
            raise TimelineError(
                self.path,
                f"a {block.kind} block of {len(line) >> 20} MiB is larger than the log takes "
                f"({MAX_LINE >> 20} MiB); give large content as a file",
            )
        self._put(line)

    def _put(self, line: bytes) -> None:
        try:
            if self._dirty:
                os.ftruncate(self._fd, self._size)
            self._dirty = True
            written = os.write(self._fd, line)
            while written < len(line):  # the rest does not fit either, as a rule, and then says why
                written += os.write(self._fd, line[written:])
        except OSError as error:
            with contextlib.suppress(OSError):  # else the next write tries again
                os.ftruncate(self._fd, self._size)
                self._dirty = False
            raise _error(self.path, error) from error
        self._size += len(line)
        self._dirty = False

    @property
    def durable(self) -> int:
        """How many blocks are known to be on disk."""
        return self._commit.durable

    def sync(self) -> bool:
        """Put all blocks appended so far on disk and wait for it: True.

        Raises:
            TimelineError: the disk refused, now or earlier, or the log was deleted. Nothing is claimed of
                later blocks any more.
            SessionClosedError: the timeline is closed.
        """
        self._must_write()
        self._commit.sync()
        return True

    async def synced(self) -> bool:
        """``sync`` without holding up the event loop. Calls overlap: one flush serves all who wait."""
        self._must_write()
        await self._commit.synced()
        return True

    def _must_write(self) -> None:
        if self._closed:
            raise SessionClosedError(self.id)
        if self._writer is None:
            raise TimelineError(self.path, "opened read-only")

    def _flush(self) -> None:
        if os.fstat(self._fd).st_nlink == 0:
            raise OSError(errno.ENOENT, "the log was deleted")
        flush_file(self._fd)
        while self._unsynced_folders:
            flush_folder(self._unsynced_folders[-1])
            self._unsynced_folders.pop()

    def close(self) -> None:
        """Let go of the log and its lock, without another flush to disk. Doing so twice is harmless."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._commit.close()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        if self._writer is not None:
            self._writer.release()

    def _note_lock(self) -> None:
        if self._writer is not None and not self._writer.works:
            self.problems.append(
                "this file system has no locks: do not use the session in two places at once"
            )

    def _disown(self) -> None:
        """In a forked child: the log is the parent's, and a thread left there may hold the lock."""
        if not self._closed and self._writer is not None:
            self._closed = True
            self._lock = threading.RLock()
            os.close(self._fd)
            self._fd = -1
            self._writer.forget()


def _must_be_file(fd: int, path: Path) -> None:
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        raise TimelineError(path, "this is not a file")


def _error(path: Path, error: OSError) -> TimelineError:
    return TimelineError(path, _ADVICE.get(error.errno or 0, error.strerror or str(error)))


_alive: weakref.WeakSet[Timeline] = weakref.WeakSet()


def _disown_all() -> None:
    for timeline in list(_alive):
        timeline._disown()  # noqa: SLF001  the same module


os.register_at_fork(after_in_child=_disown_all)
