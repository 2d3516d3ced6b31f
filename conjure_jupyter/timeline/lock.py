"""One writer for each session: an advisory lock on the file ``lock``.

The kernel gives the lock back when its holder ends, however it ends, so nothing stale has to be cleaned
up. What the file says (process, host, time) is only for the message to whoever comes second; readers need
no lock.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import errno
import fcntl
import json
import os
import socket
from pathlib import Path

from ..errors import SessionLockedError, TimelineError

NAME = "lock"

_HELD = frozenset({errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES})
_NO_LOCKS = frozenset({errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP})


class WriterLock:
    """The right to write to a session's folder.

    Attributes:
        works: False when the file system knows no locks and the right is only assumed.

    Raises:
        SessionLockedError: another process, or another object of this one, has it.
        TimelineError: the lock file cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / NAME
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            self._fd = os.open(path, flags, 0o600)
        except OSError as error:
            raise TimelineError(
                path, f"cannot be made ({error.strerror}); is the folder writable?"
            ) from error
        self.works = True
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = _owner(self._fd) if error.errno in _HELD else None
            if owner is None and error.errno in _NO_LOCKS:
                self.works = False
                return
            os.close(self._fd)
            if owner is None:
                raise TimelineError(path, f"cannot be locked ({error.strerror})") from error
            raise SessionLockedError(folder.name, owner) from None
        with contextlib.suppress(OSError):  # a full disk: the lock holds, only its holder is not named
            os.fchmod(self._fd, 0o600)
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, _introduce().encode(), 0)

    def release(self) -> None:
        """Let others write. Doing so twice is harmless."""
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                fcntl.flock(self._fd, fcntl.LOCK_UN)
            self.forget()

    def forget(self) -> None:
        """Close the file only: in a forked child, unlocking would unlock for the parent too."""
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                os.close(self._fd)
            self._fd = -1


def _introduce() -> str:
    now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    return json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "time": now})


def _owner(fd: int) -> str:
    try:
        said = json.loads(os.pread(fd, 1000, 0))
        pid, host, time = int(said["pid"]), str(said["host"]), str(said["time"])
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
    here = " of this kernel" if (pid, host) == (os.getpid(), socket.gethostname()) else ""
    return f"process {pid}{here} on {host} since {time}"
