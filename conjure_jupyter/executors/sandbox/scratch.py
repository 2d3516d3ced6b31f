"""The folders that a sandbox has for itself, and what it leaves in the user's: nothing, whatever happens.

Names that commands may not make are taken by empty folders while a sandbox runs, because only what is there
can be mounted over. A journal in the user's cache names them; it is locked as long as its owner lives. Who
starts next removes what journals of the dead name, by ``rmdir``: what is not empty is no longer ours.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import shutil
import stat
import tempfile
import weakref
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import platformdirs

from ...errors import ConjureError, ExecutorError
from ...paths import make_private_dir


class Scratch:
    """A private folder with ``tmp``, ``home`` and ``empty`` in it, and the names taken elsewhere.

    One is shared by the sandboxes of an executor: what commands put there outlasts a new plan.

    Raises:
        ExecutorError: no folder can be made for it.
    """

    def __init__(self) -> None:
        sweep()
        self.owner = os.getpid()
        self._journal, self._lock = _new_journal()
        try:
            self.path = Path(tempfile.mkdtemp(prefix="conjure-sandbox-")).resolve()
        except OSError as error:
            raise ExecutorError(f"a sandbox needs a temporary folder: {error}") from error
        self.tmp, self.home, self.empty = (self.path / name for name in ("tmp", "home", "empty"))
        for folder in (self.tmp, self.home, self.empty):
            folder.mkdir(mode=0o700)
        self._points: Counter[Path] = Counter()
        self._note()
        self._finish = weakref.finalize(self, _close, os.getpid(), self._journal, self._lock, self.path)

    def take(self, names: Iterable[Path]) -> tuple[Path, ...]:
        """Take names that nothing has, or a sandbox has taken in the same way; those that could be taken."""
        taken = _taken_by_others(self._journal)
        wanted = [
            path
            for path in dict.fromkeys(names)
            if path in self._points or str(path) in taken or not os.path.lexists(path)
        ]
        self._points.update(wanted)
        self._note()  # first: what is made and not noted would stay after a crash
        made = tuple(path for path in wanted if _make(path))
        self._points.subtract(path for path in wanted if path not in made)
        return made

    def release(self, points: Iterable[Path]) -> None:
        """Give names up; those that no sandbox needs any more are removed."""
        self._points.subtract(points)
        free = [path for path, count in self._points.items() if count <= 0]
        shared = _taken_by_others(self._journal) if free else set()
        for path in free:
            del self._points[path]
            if str(path) not in shared:
                with contextlib.suppress(OSError):
                    path.rmdir()
        self._note()

    def _note(self) -> None:
        text = json.dumps({"scratch": str(self.path), "points": [str(path) for path in self._points]})
        with contextlib.suppress(OSError):  # closed already, or the disk is full
            os.pwrite(self._lock, text.encode() + b"\n", 0)
            os.ftruncate(self._lock, len(text.encode()) + 1)

    def close(self) -> None:
        """Remove all of it; may be called twice."""
        self._finish()


def _make(path: Path) -> bool:
    try:
        path.mkdir(mode=0o755)
    except FileExistsError:
        return path.is_dir() and not path.is_symlink()
    except OSError:
        return False  # the folder cannot be written, by commands neither
    return True


def sweep() -> None:
    """Remove what sandboxes left whose process is gone."""
    for journal in _journals():
        try:
            fd = os.open(journal, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)  # its owner lives
            continue
        scratch = _content(journal).get("scratch")
        _close(os.getpid(), journal, fd, Path(scratch) if isinstance(scratch, str) else None)


def _close(owner: int, journal: Path, lock: int, scratch: Path | None) -> None:
    if os.getpid() != owner:
        return  # a fork: the folders are its parent's
    shared = _taken_by_others(journal)
    for text in _content(journal).get("points", ()):
        if text not in shared:
            with contextlib.suppress(OSError):
                os.rmdir(text)  # noqa: PTH106
    if scratch is not None and scratch.name.startswith("conjure-sandbox-"):
        _remove(scratch)
    with contextlib.suppress(OSError):
        journal.unlink()
    os.close(lock)


def _remove(folder: Path) -> None:
    """Remove a tree, also folders in it whose rights a command took away."""
    for parent, names, _ in os.walk(folder):
        for name in names:
            path = Path(parent, name)
            with contextlib.suppress(OSError):
                if not path.is_symlink():
                    path.chmod(stat.S_IRWXU)
    shutil.rmtree(folder, ignore_errors=True)


def _new_journal() -> tuple[Path, int]:
    for folder in _folders():
        try:
            make_private_dir(folder.parent)
            make_private_dir(folder)
            path = folder / f"{secrets.token_hex(8)}.json"
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            fcntl.flock(fd, fcntl.LOCK_EX)
            path.stat()  # not yet locked, it may have looked like one of the dead
        except (ConjureError, OSError):
            continue
        return path, fd
    raise ExecutorError("a sandbox needs a cache or temporary folder that can be written")


def _folders() -> tuple[Path, ...]:
    temporary = Path(tempfile.gettempdir()) / f"conjure-{os.getuid()}"
    return platformdirs.user_cache_path("conjure") / "sandbox", temporary / "sandbox"


def _journals() -> list[Path]:
    found: list[Path] = []
    for folder in _folders():
        with contextlib.suppress(OSError):
            if folder.lstat().st_uid == os.getuid():
                found += sorted(folder.glob("*.json"))
    return found


def _content(journal: Path) -> dict[str, list[str]]:
    try:
        found = json.loads(journal.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _taken_by_others(mine: Path) -> set[str]:
    """Names that other sandboxes have taken. Those of the dead count until they are swept away."""
    return {
        text for journal in _journals() if journal != mine for text in _content(journal).get("points", ())
    }
