"""Where a path leads, by a walk that stays inside: every part is opened relative to the one before."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import PathNotFoundError, PermissionDeniedError, ToolError
from .translation import translated

OUTSIDE = "outside the allowed folders"
#: Links followed in one path before it counts as a cycle; Linux's own number.
MAX_LINKS = 40
#: Openings tried again because a folder changed under the walk.
MAX_RETRIES = 32
#: Flags of every opening: not inherited, never a terminal, and no wait at a FIFO or device.
SAFE_FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_NONBLOCK", 0)
NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
DIRECTORY: int = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
#: Enough to step through a folder; O_PATH asks for no right to read it.
STEP = DIRECTORY | getattr(os, "O_PATH", os.O_RDONLY)


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a path leads once its links are followed; valid while ``located`` is open.

    Attributes:
        dir_fd: the open folder that holds it.
        name: its name there, ``.`` when the path is the folder itself. It was no link when looked at, so
            whoever opens it says ``O_NOFOLLOW``.
        real: the same as text, for messages and for names under a link.
    """

    dir_fd: int
    name: str
    real: str


class _OutsideError(Exception):
    """The walk left its root; ``target`` is the absolute path it would go on with."""

    def __init__(self, target: str) -> None:
        super().__init__(target)
        self.target = target


@contextlib.contextmanager
def located(
    path: str,
    roots: Sequence[Path],
    *,
    follow: bool = True,
    create: bool = False,
    visit: Callable[[int], None] | None = None,
    outside: str = OUTSIDE,
) -> Iterator[Spot]:
    """The folder and name that ``path`` leads to, by a walk that stays inside ``roots``.

    What the name stands for need not exist.

    Args:
        roots: folders to stay in; a relative path starts from the first.
        follow: whether a link at the end of the path is followed too.
        create: make the folders on the way that do not exist.
        visit: hears each folder on the way as an open descriptor, and may refuse it by raising.
        outside: what to say when it leads outside.

    Raises:
        PathNotFoundError: a folder on the way does not exist.
        PermissionDeniedError: it leads outside, or the system refuses.
        ToolError: any other failure.
    """
    check_text(path)
    target = path
    with translated(path), contextlib.ExitStack() as stack:
        for _ in range(MAX_LINKS):
            root, rest = split_root(target, roots, path, outside)
            walk = stack.enter_context(contextlib.closing(_Walk(root, follow, create, visit)))
            try:
                spot = walk.go(rest)
            except _OutsideError as left:
                walk.close()
                target = left.target
            else:
                yield spot
                return
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


class _Walk:
    """One walk from one root; holds the folders on its way open."""

    def __init__(self, root: Path, follow: bool, create: bool, visit: Callable[[int], None] | None) -> None:
        self._root = root
        self._real = os.path.realpath(root)
        self._follow = follow
        self._create = create
        self._visit = visit
        self._fds: list[int] = []
        self._names: list[str] = []
        self._turns = 0

    def close(self) -> None:
        """Close every folder that is still open."""
        while self._fds:
            os.close(self._fds.pop())

    def go(self, path: str) -> Spot:
        self._enter(os.open(self._root, STEP))
        pending = path.split("/")[::-1]
        while pending:
            name = pending.pop()
            if name in ("", "."):
                continue
            if name == "..":
                self._up(pending)
                continue
            last = not pending
            info = self._look(name, last)
            if info is not None and stat.S_ISLNK(info.st_mode) and (self._follow or not last):
                self._follow_link(name, pending)
            elif last:
                return self._spot(name)
            elif info is not None and not stat.S_ISDIR(info.st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
            else:
                self._down(name, pending)
        return self._spot(".")

    def _spot(self, name: str) -> Spot:
        return Spot(self._fds[-1], name, os.path.normpath("/".join([self._real, *self._names, name])))

    def _enter(self, fd: int) -> None:
        self._fds.append(fd)
        if self._visit is not None:
            self._visit(fd)

    def _up(self, pending: list[str]) -> None:
        if self._names:
            os.close(self._fds.pop())
            self._names.pop()
        elif self._real != "/":
            raise _OutsideError("/".join([self._real.rpartition("/")[0], *pending[::-1]]))

    def _look(self, name: str, last: bool) -> os.stat_result | None:
        try:
            return os.stat(name, dir_fd=self._fds[-1], follow_symlinks=False)
        except FileNotFoundError:
            if not last:
                if not self._create:
                    raise
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, dir_fd=self._fds[-1])
            return None

    def _follow_link(self, name: str, pending: list[str]) -> None:
        self._count(MAX_LINKS)
        target = os.readlink(name, dir_fd=self._fds[-1])
        if target.startswith("/"):
            raise _OutsideError("/".join([target, *pending[::-1]]))
        pending.extend(target.split("/")[::-1])

    def _down(self, name: str, pending: list[str]) -> None:
        try:
            fd = os.open(name, STEP | NOFOLLOW, dir_fd=self._fds[-1])
        except OSError as error:
            if error.errno not in (errno.ENOTDIR, errno.ELOOP, errno.EMLINK):
                raise
            self._count(MAX_LINKS + MAX_RETRIES)  # it was a folder when looked at: look again
            pending.append(name)
        else:
            self._names.append(name)
            self._enter(fd)

    def _count(self, limit: int) -> None:
        self._turns += 1
        if self._turns > limit:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def check_text(path: str) -> None:
    """Refuse what no path can be.

    Raises:
        PathNotFoundError: it is empty.
        ToolError: it holds NUL, or a half of a surrogate pair.
    """
    if not path:
        raise PathNotFoundError(path, "the path is empty")
    if "\0" in path:
        raise ToolError(f"{path!r}: a path cannot hold a NUL character")
    try:
        os.fsencode(path)
    except UnicodeEncodeError as error:
        raise ToolError(f"{path!r}: the path is not valid text") from error


def split_root(path: str, roots: Sequence[Path], asked: str, outside: str = OUTSIDE) -> tuple[Path, str]:
    """The deepest root that ``path`` starts with, and the rest of the path.

    Only whole parts count: ``/p`` holds ``/p`` and ``/p/x``, not ``/p2``.
    """
    if not path.startswith("/"):
        return roots[0], path
    for text in (path, os.path.normpath(path)):
        best: tuple[int, Path, str] | None = None
        for root in roots:
            for base in {os.path.normpath(Path(root).absolute()), os.path.realpath(root)}:
                rest = _below(base, text)
                if rest is not None and (best is None or len(base) > best[0]):
                    best = (len(base), root, rest)
        if best is not None:
            return best[1], best[2]
    raise PermissionDeniedError(asked, outside)


def _below(base: str, path: str) -> str | None:
    """The part of ``path`` below ``base``; None when it is not below."""
    parts, wanted = _parts(path), _parts(base)
    if parts[: len(wanted)] != wanted:
        return None
    tail = parts[len(wanted) :]
    return "/".join([*tail, ""]) if path.endswith("/") and tail else "/".join(tail) or "."


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def validate_path(path: str | Path, allowed_paths: Sequence[str | Path]) -> Path:
    """The absolute path with its links resolved, when it lies in one of ``allowed_paths``.

    The answer is as old as the look: to read or write, open with ``open_beneath``, which cannot be raced.
    A path that does not exist is judged by the part that does.

    Raises:
        PermissionDeniedError: it lies outside.
        ToolError: it is no path (empty, NUL, a cycle of links).
    """
    text = os.fspath(path)
    check_text(text)
    with translated(text):
        real = _resolved(text)
        if any(_below(os.path.realpath(root), real) is not None for root in allowed_paths):
            return Path(real)
    raise PermissionDeniedError(text, OUTSIDE)


def _resolved(path: str) -> str:
    try:
        return os.path.realpath(path, strict=True)
    except FileNotFoundError:
        return os.path.realpath(path)
