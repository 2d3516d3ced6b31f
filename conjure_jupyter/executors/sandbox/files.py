"""File tools beside a sandbox: what commands may not see, they do not show."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from ...errors import PermissionDeniedError, ToolError
from ...paths import located
from ..contract import ExecutionContext, Stat
from ..files import Files
from .plan import Access, Plan


class ConfinedFiles(Files):
    """Files within the folders of a context and the rules of a plan.

    Args:
        context: whose folders.
        plan: what is hidden and guarded.
        points: empty folders of the sandbox's own.
    """

    def __init__(self, context: ExecutionContext, plan: Plan, points: Iterable[Path] = ()) -> None:
        kept = (*context.read_only_paths, *plan.guarded, *plan.missing)
        super().__init__(context.with_(read_only_paths=kept))
        self._plan = plan
        self._points = frozenset(points)

    def open(self, path: str) -> int:
        """A descriptor; where it leads is looked at once it is open, when no link can change it."""
        fd = super().open(path)
        try:
            self._check(path, _path_of(fd))
            _need(path, os.fstat(fd), 4)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def write(self, path: str, data: bytes, mode: int | None) -> None:
        """Replace or make a file, where a command may do the same."""
        self._check_folder(path)
        super().write(path, data, mode)

    def delete(self, path: str) -> None:
        """Remove a file, a link or an empty folder, where a command may do the same."""
        self._check_folder(path)
        super().delete(path)

    def list(self, path: str, depth: int, limit: int) -> list[Stat]:
        """What a folder holds, without what is in hidden ones, nor the sandbox's own."""
        fd = super().open(path)
        try:
            top = _path_of(fd)
        finally:
            os.close(fd)
        self._check(path, top)
        found = super().list(path, depth, limit + len(self._points))
        shown = [entry for entry in found if not self._hides(top / entry.path)]
        return shown[:limit]

    def _check(self, asked: str, real: Path) -> None:
        if self._plan.access(real) in (Access.HIDDEN, Access.PRIVATE):
            raise PermissionDeniedError(asked, "hidden by the sandbox")

    def _hides(self, real: Path) -> bool:
        return real in self._points or self._plan.access(real.parent) in (Access.HIDDEN, Access.PRIVATE)

    def _check_folder(self, path: str) -> None:
        """Root's commands have no right to overrule a folder's mode, so we use none."""
        if os.geteuid() != 0:
            return
        info = None
        with (
            contextlib.suppress(ToolError, OSError),  # what is wrong with the path is said by whoever uses it
            located(path.rstrip("/") or "/", self._writable, follow=False) as spot,
        ):
            info = os.fstat(spot.dir_fd)
        if info is not None:
            _need(path, info, 2)


def _path_of(fd: int) -> Path:
    if sys.platform == "darwin":
        return Path(os.fsdecode(fcntl.fcntl(fd, 50, bytes(1024)).split(b"\0", 1)[0]))  # F_GETPATH
    return Path(f"/proc/self/fd/{fd}").readlink()


def _need(path: str, info: os.stat_result, right: int) -> None:
    """Refuse what a mode gives (4 reading, 2 writing) to no root without capabilities, as in a sandbox."""
    if os.geteuid() != 0:
        return  # the system has decided
    shift = 6 if info.st_uid == 0 else 3 if info.st_gid == 0 else 0
    if not info.st_mode >> shift & right:
        raise PermissionDeniedError(path, "the system does not allow it")
