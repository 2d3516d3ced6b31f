"""Which files of the notebook's folder a container must not see: those whose names begin with a dot.

Credentials lie in such files (``.env``, ``.git``, ``.aws``). A mask is a mount of its own, so there is a
limit to them: where a folder holds too many, the whole of it is masked.

A mask goes with the very entry that it was put over. When that is removed, or replaced as most editors do
when they save, the kernel takes the mask off in every container; so masks are watched.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from .mounts import Mount

#: Entries that are looked at; a folder with more is not shown, rather than shown in part unchecked.
MAX_ENTRIES = 50_000
#: Masks; each costs the engine about a millisecond at the start.
MAX_MASKS = 64
#: Seconds after which the whole folder is searched for new dot-files again.
LOOK_AGAIN = 30.0


@dataclass(frozen=True, slots=True)
class Masks:
    """What is masked in a folder.

    Attributes:
        folders: relative paths of folders.
        files: relative paths of files.
        whole: which of the folders are masked whole, for the dot-files they hold.
        complete: False when there is too much to look at, or a name that engines cannot be told: the folder
            must not be shown.
    """

    folders: frozenset[str]
    files: frozenset[str]
    whole: frozenset[str] = frozenset()
    complete: bool = True

    @property
    def paths(self) -> frozenset[str]:
        """All that are masked; a name that became a file's where a folder's was is replaced, and found so."""
        return self.folders | self.files

    def mounts(self, target: PurePosixPath) -> list[Mount]:
        """The mounts that cover them, for a folder that is shown at ``target``."""
        covered = [Mount(None, target / path, "tmpfs") for path in sorted(self.folders)]
        return covered + [Mount(None, target / path, "null") for path in sorted(self.files)]


def find_masks(folder: Path, *, max_entries: int = MAX_ENTRIES, max_masks: int = MAX_MASKS) -> Masks:
    """Look for dot-files, without following links. Blocks.

    A link is not masked: it leads to what is masked, or to what the container does not have.
    """
    folders: set[str] = set()
    files: set[str] = set()
    whole: set[str] = set()
    seen = 0
    for path, is_dir in _dot_entries(folder):
        seen += 1
        if seen > max_entries:
            return Masks(frozenset(), frozenset(), complete=False)
        if path is None:
            continue
        shown = _sayable(path)
        if not shown:
            return Masks(frozenset(), frozenset(), complete=False)
        if shown != path:
            whole.add(shown)
        (folders if is_dir or shown != path else files).add(shown)
    folders = {path for path in folders if not _below(path, whole)}
    files = {path for path in files if not _below(path, whole)}
    while len(folders) + len(files) > max_masks:
        heavy = _heaviest(folders | files)
        if heavy is None:
            return Masks(frozenset(), frozenset(), complete=False)
        folders = {path for path in folders if not path.startswith(heavy + "/")} | {heavy}
        files = {path for path in files if not path.startswith(heavy + "/")}
        whole = {path for path in whole if not path.startswith(heavy + "/")} | {heavy}
    return Masks(frozenset(folders), frozenset(files), frozenset(whole))


class MaskWatch:
    """What is masked of a folder in a running container, and whether that still hides all there is to hide.

    Looks for it at once: made outside the event loop.

    Attributes:
        masks: what is masked.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names = quick_look(folder)
        self.masks = find_masks(folder)
        self._looked = time.monotonic()
        self._held = {path: held for path in self.masks.paths if (held := Held.hold(folder / path))}

    def slipped(self) -> bool:
        """Whether an entry is another than the one that was masked: it is seen. Quick."""
        return any(held.replaced(self._folder / path) for path, held in self._held.items())

    def is_due(self) -> bool:
        """Whether it is worth while to look again: a new name in the folder itself, or time. Quick."""
        return not quick_look(self._folder) <= self._names or time.monotonic() >= self._looked + LOOK_AGAIN

    def finds_more(self) -> bool:
        """Look again: whether there is more to hide. Blocks."""
        now = find_masks(self._folder)
        self._looked = time.monotonic()
        return not now.paths <= self.masks.paths or now.complete != self.masks.complete

    def close(self) -> None:
        """Let go of the entries. May be called twice."""
        for held in self._held.values():
            held.close()
        self._held = {}


class Held:
    """An entry of a folder, held open where the system can, so that no other gets its number."""

    def __init__(self, identity: tuple[int, int], descriptor: int | None) -> None:
        self._identity = identity
        self._descriptor = descriptor

    @classmethod
    def hold(cls, path: Path) -> Held | None:
        """Hold what lies at a path; None when nothing does."""
        flag = getattr(os, "O_PATH", None)
        try:
            if flag is None:
                return cls(_identity(path.lstat()), None)
            descriptor = os.open(path, flag | os.O_NOFOLLOW)
        except OSError:
            return None
        return cls(_identity(os.fstat(descriptor)), descriptor)

    def replaced(self, path: Path) -> bool:
        """Whether something else lies there now."""
        try:
            return _identity(path.lstat()) != self._identity
        except OSError:
            return False

    def close(self) -> None:
        """Let go of it."""
        if self._descriptor is not None:
            os.close(self._descriptor)


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def quick_look(folder: Path) -> frozenset[str]:
    """The dot-entries of a folder itself: cheap enough to ask before each command."""
    try:
        with os.scandir(folder) as scan:
            return frozenset(
                entry.name for entry in scan if entry.name.startswith(".") and not entry.is_symlink()
            )
    except OSError:
        return frozenset()


def _dot_entries(top: Path) -> Iterator[tuple[str | None, bool]]:
    """Each entry below ``top`` outside dot-folders: its path when it is a dot-entry, and whether a folder."""
    pending = [""]
    while pending:
        here = pending.pop()
        try:
            with os.scandir(top / here) as scan:
                entries = list(scan)
        except OSError:
            continue  # what we may not read, the container, which runs as us, may not either
        for entry in entries:
            path = f"{here}/{entry.name}" if here else entry.name
            if entry.is_symlink():
                yield None, False
                continue
            is_dir = entry.is_dir(follow_symlinks=False)
            if entry.name.startswith("."):
                yield path, is_dir
                continue
            if is_dir:
                pending.append(path)
            yield None, is_dir


def _sayable(path: str) -> str:
    """The longest beginning of a path that is valid text, which is all that an engine can be told."""
    parts = path.split("/")
    while parts:
        try:
            "/".join(parts).encode()
        except UnicodeEncodeError:
            parts.pop()
        else:
            break
    return "/".join(parts)


def _below(path: str, folders: set[str]) -> bool:
    return any(path.startswith(folder + "/") for folder in folders)


def _heaviest(paths: set[str]) -> str | None:
    """The folder to mask whole: the one at the top that holds the most."""
    weights: dict[str, int] = {}
    for path in paths:
        if "/" in path:
            top = path.split("/", 1)[0]
            weights[top] = weights.get(top, 0) + 1
    return max(sorted(weights), key=lambda top: weights[top], default=None)
