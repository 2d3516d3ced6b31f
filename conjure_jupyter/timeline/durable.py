"""Group commit: one flush to disk serves everybody whose blocks were written before it began."""

from __future__ import annotations

import asyncio
import fcntl
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from ..errors import TimelineError


class GroupCommit:
    """Flushes a log to disk, at most one flush at a time and at most one more waiting.

    After a flush has failed, nothing is said to be on disk any more: the kernel forgets the pages it could
    not write, and a second ``fsync`` that succeeds says nothing about them.

    Args:
        path: the log, for messages.
        flush: puts what was written on disk; raises OSError.
        written: how many blocks are written now.

    Attributes:
        durable: how many blocks are known to be on disk.
    """

    def __init__(self, path: Path, flush: Callable[[], None], written: Callable[[], int]) -> None:
        self.durable = 0
        self._path = path
        self._flush = flush
        self._written = written
        self._failure: OSError | None = None
        self._flushing = threading.Lock()
        self._state = threading.Lock()
        self._waiting: Future[None] | None = None
        self._worker: ThreadPoolExecutor | None = None

    def sync(self) -> None:
        """Put all that is written by now on disk, on the caller's thread.

        Raises:
            TimelineError: the disk refused, now or earlier.
        """
        wanted = self._written()
        if self.durable < wanted:
            self._run(wanted)
        self._confirm(wanted)

    async def synced(self) -> None:
        """Like ``sync``, on a thread of its own. When the waiter is cancelled, the flush goes on."""
        wanted = self._written()
        while self.durable < wanted and self._failure is None:
            await asyncio.shield(asyncio.wrap_future(self._join()))
        self._confirm(wanted)

    def close(self) -> None:
        """Wait for the flush that runs, and end the thread."""
        with self._state:
            worker, self._worker = self._worker, None
        if worker is not None:
            worker.shutdown(wait=True)

    def _join(self) -> Future[None]:
        # A flush that has not begun covers all that is written by now, so one that waits serves everybody.
        with self._state:
            if self._waiting is None:
                if self._worker is None:
                    self._worker = ThreadPoolExecutor(1, thread_name_prefix="conjure-sync")
                self._waiting = self._worker.submit(self._begin)
            return self._waiting

    def _begin(self) -> None:
        with self._state:
            self._waiting = None
        self._run(self._written())

    def _run(self, wanted: int) -> None:
        with self._flushing:
            if self._failure is not None or self.durable >= wanted:
                return
            written = self._written()
            try:
                self._flush()
            except OSError as error:
                self._failure = error
            else:
                self.durable = written

    def _confirm(self, wanted: int) -> None:
        if self._failure is not None and self.durable < wanted:
            raise TimelineError(
                self._path,
                f"could not be put on disk ({self._failure.strerror or self._failure}). What was said since "
                "may be lost when the machine stops: copy what matters, check the disk, resume the session",
            ) from self._failure


def flush_file(fd: int) -> None:
    """Put a file's content on the disk itself, not only in its cache.

    Raises:
        OSError: the disk refused.
    """
    if sys.platform == "darwin":
        try:
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)  # fsync on macOS leaves the drive's own cache unflushed
        except OSError:  # not every file system there knows the command
            os.fsync(fd)
    else:
        os.fdatasync(fd)


def flush_folder(path: Path) -> None:
    """Put a folder's entries on disk, so that a new file in it has its name after a power loss.

    Raises:
        OSError: the disk refused.
    """
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
