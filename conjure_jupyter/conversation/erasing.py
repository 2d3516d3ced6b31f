"""Erasing a session: its log, blobs and work files, and its copies elsewhere.

A session that is being erased is none any more: its log is renamed first, in one step. Whatever a crash
leaves of it can be told by that name, or by the folder's, and goes with the next erasure or pruning.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import os
import secrets
import stat
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import ConjureError, SessionError, SessionNotFoundError
from ..storage import RemoteStorage, Storage
from ..timeline.lock import WriterLock
from ..timeline.log import LOG
from ..timeline.remote import erase
from ..wording import size_text
from . import trees

#: What a log is called once its session is being erased.
ERASED_LOG = "timeline.erased"

#: What a session's folder is called while it is emptied; its id follows.
ERASED = ".deleted-"

#: In what is left of an erased session: its copies elsewhere could not be erased yet.
_ELSEWHERE = "elsewhere"


@dataclass(slots=True)
class Erased:
    """What erasing a session did.

    Attributes:
        id: the session.
        files: how many files were erased on this machine.
        size: their bytes.
        remote: keys that were erased elsewhere.
        left: what could not be erased, and why.
    """

    id: str
    files: int = 0
    size: int = 0
    remote: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    def describe(self) -> str:
        """It in words, for the user."""
        elsewhere = f", {len(self.remote):,} remote copies" if self.remote else ""
        lines = [f"Erased session {self.id}: {self.files:,} files, {size_text(self.size)}{elsewhere}"]
        return "\n".join([*lines, *(f"  not erased: {what}" for what in self.left)])


def id_of(folder: Path) -> str:
    """The session that a folder belongs to, or belonged to."""
    name = folder.name
    return name.removeprefix(ERASED).rpartition("-")[0] if name.startswith(ERASED) else name


def is_leftover(folder: Path) -> bool:
    """Whether a folder is what is left of a session that was being erased."""
    if folder.name.startswith(ERASED):
        return True
    return not os.path.lexists(folder / LOG) and os.path.lexists(folder / ERASED_LOG)


def last_used(folder: Path) -> dt.datetime:
    """When a session's log was written last."""
    try:
        status = (folder / LOG).lstat()
    except OSError:
        status = folder.lstat()
    return dt.datetime.fromtimestamp(status.st_mtime, dt.UTC)


def _is_session(folder: Path) -> bool:
    return not folder.is_symlink() and (is_leftover(folder) or (folder / LOG).is_file())


async def erase_session(
    folder: Path, remote: Storage | None = None, *, unused_since: dt.datetime | None = None
) -> Erased:
    """Erase a session, or what an erasure that was cut short has left of it.

    Args:
        folder: the session's folder.
        remote: its copies elsewhere, after ``init``; None when there are none.
        unused_since: erase it only if its ``last_used`` still is this.

    Raises:
        SessionNotFoundError: there is no session in the folder.
        SessionLockedError: it is in use, by this process or another.
        SessionError: it was used since, or cannot be erased at all.
    """
    if not await asyncio.to_thread(_is_session, folder):
        raise SessionNotFoundError(folder.name, folder.parent)
    done = Erased(id_of(folder))
    done.files, done.size = await asyncio.to_thread(count, folder)
    lock = await asyncio.to_thread(WriterLock, folder)
    try:
        if unused_since is not None and last_used(folder) != unused_since:
            raise SessionError(f"Session {done.id} was used since")
        await asyncio.to_thread(_hide, folder)
        if remote is not None:
            pending = await _erase_elsewhere(remote, folder, done)
        elif pending := _pending(folder):
            done.left.append(f"the copies elsewhere ({pending})")
        await asyncio.to_thread(_empty, folder, done, pending)
    finally:
        lock.release()
    return done


def _hide(folder: Path) -> None:
    """Make a session none, in one step."""
    try:
        with contextlib.suppress(FileNotFoundError):
            (folder / LOG).rename(folder / ERASED_LOG)
    except OSError as error:
        raise SessionError(f"{folder} cannot be erased: {error.strerror}") from error


async def _erase_elsewhere(remote: Storage, folder: Path, done: Erased) -> str:
    """Erase the copies elsewhere; what went wrong, when something did."""
    try:
        if isinstance(remote, RemoteStorage):
            # The log goes first and under its lease: a writer on another machine is not robbed of it.
            done.remote += await erase(remote, folder)
        done.remote += [ref.path for ref in await remote.cleanup() if ref.path not in done.remote]
    except (ConjureError, OSError) as error:
        done.left.append(f"the copies elsewhere ({error}); erase it again to try once more")
        return str(error)
    return ""


def _pending(folder: Path) -> str:
    try:
        return (folder / _ELSEWHERE).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""


def _empty(folder: Path, done: Erased, pending: str) -> None:
    """Remove all that lies in the folder, and the folder unless something of the session is left."""
    if not folder.exists():
        return  # the storage's own folder, and gone with it
    if not folder.name.startswith(ERASED):
        with contextlib.suppress(OSError):  # it keeps its name; its log tells as well what it is
            folder = folder.rename(folder.with_name(f"{ERASED}{folder.name}-{secrets.token_hex(4)}"))
    if pending:
        with contextlib.suppress(OSError):
            (folder / _ELSEWHERE).write_text(pending, encoding="utf-8")
    # The renamed log goes last: until then it tells what the folder is, should it have kept its name.
    last = ERASED_LOG, _ELSEWHERE
    entries = sorted(folder.iterdir(), key=lambda entry: entry.name in last)
    for entry in entries:
        if entry.name == _ELSEWHERE and pending:
            continue
        if entry.name == ERASED_LOG and done.left and not folder.name.startswith(ERASED):
            continue
        try:
            trees.clear(entry)
        except OSError as error:
            done.left.append(f"{entry} ({error.strerror})")
            done.files -= (gone := count(entry))[0]
            done.size -= gone[1]
    with contextlib.suppress(OSError):  # something is left in it, and was told
        folder.rmdir()


def count(folder: Path) -> tuple[int, int]:
    """How many files lie in a tree, and their bytes; links are counted, not followed."""
    pending, files, size = [os.fspath(folder)], 0, 0
    with contextlib.suppress(OSError):
        if not stat.S_ISDIR(folder.lstat().st_mode):
            return 1, folder.lstat().st_size
    while pending:
        try:
            with os.scandir(pending.pop()) as scan:
                for entry in scan:
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    else:
                        files += 1
                        size += entry.stat(follow_symlinks=False).st_size
        except OSError:
            continue  # gone meanwhile, not readable, or too deep to be named
    return files, size
