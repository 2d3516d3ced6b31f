"""Finding skills below a folder.

Real folders are walked first and symbolic links after them, each folder once, so that a cycle ends and a
skill that is also linked keeps its own name. Listings are kept for as long as their folder is unchanged.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from .models import Diagnostic, Severity
from .reading import ENTRIES, Signature, signature
from .resources import IGNORED_FOLDERS

#: How deep below a folder skills are looked for, and in how many folders.
MAX_DEPTH = 10
MAX_FOLDERS = 20_000
#: Folders of a skill that hold its material; a SKILL.md in there is an example or a template.
MATERIAL = frozenset(
    {"scripts", "references", "reference", "assets", "templates", "examples", "tests", "themes"}
)
#: Longest text that is taken for a path: see ``pseudo_link``.
_MAX_LINK = 1024


@dataclass(slots=True)
class Found:
    """What a scan found.

    Attributes:
        entries: ``(folder, file name)`` of each SKILL.md.
        archives: ``.skill`` files.
        diagnostics: what could not be looked at.
    """

    entries: list[tuple[str, str]] = field(default_factory=list)
    archives: list[str] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)

    def tell(self, path: str, severity: Severity, code: str, message: str, advice: str = "") -> None:
        """Note a problem."""
        self.diagnostics.append(Diagnostic(Path(path), None, severity, code, message, advice))


class _Listing(NamedTuple):
    """The names in a folder that matter here, sorted; of ``entries`` the first is preferred."""

    entries: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    archives: tuple[str, ...] = ()
    bare: tuple[str, ...] = ()
    misspelt: tuple[str, ...] = ()


_BARE_SKILL = _Listing(entries=ENTRIES[:1])


def scan_directory(path: Path) -> list[Path]:
    """The SKILL.md and ``.skill`` files at or below a folder, sorted.

    Hidden folders and those of other programs (``node_modules``) are left out, as are the folders of a
    skill that hold its material.
    """
    found = scan(Path(os.path.abspath(path.expanduser())))  # noqa: PTH100  links must stay as they are
    entries = [Path(folder, name) for folder, name in found.entries]
    return sorted([*entries, *map(Path, found.archives)])


def scan(root: Path) -> Found:
    """Look for skills at and below an absolute folder."""
    found = Found()
    walk = _Walk(found)
    walk.run(str(root))
    found.entries.sort()
    found.archives.sort()
    return found


class _Walk:
    """One scan: folders still to visit, and those that were."""

    def __init__(self, found: Found) -> None:
        self.found = found
        self.visited: set[tuple[int, int]] = set()
        self.folders: deque[tuple[str, int]] = deque()
        self.links: deque[tuple[str, int]] = deque()

    def run(self, root: str) -> None:
        self.folders.append((root, 0))
        while self.folders or self.links:
            from_link = not self.folders
            path, depth = self.links.popleft() if from_link else self.folders.popleft()
            if len(self.visited) >= MAX_FOLDERS:
                self.found.tell(
                    root, "warning", "too-many-folders", f"only {MAX_FOLDERS} folders were searched"
                )
                return
            self.visit(path, depth, from_link=from_link)

    def visit(self, path: str, depth: int, *, from_link: bool) -> None:
        """List one folder, and note what it holds and what is still to visit."""
        try:
            status = os.stat(path)  # noqa: PTH116  a Path costs more than the call
            if from_link and not stat.S_ISDIR(status.st_mode):
                return
            identity = (status.st_dev, status.st_ino)
            if identity in self.visited:
                return
            self.visited.add(identity)
            listing = _list(path, signature(status))
        except OSError as error:
            reason = error.strerror or str(error)
            what = "a link that leads nowhere" if from_link else "a folder that cannot be read"
            self.found.tell(path, "warning", "unreadable", f"{what}: {reason}")
            return
        if listing.entries:
            self.found.entries.append((path, listing.entries[0]))
        if listing is not _BARE_SKILL:
            self.note(path if path.endswith("/") else f"{path}/", listing, depth + 1)

    def note(self, prefix: str, listing: _Listing, depth: int) -> None:
        """Queue the folders of a listing, and keep what else is in it."""
        inside: frozenset[str] = MATERIAL if listing.entries else frozenset()
        if depth <= MAX_DEPTH:
            self.folders.extend((prefix + name, depth) for name in listing.folders if name not in inside)
            self.links.extend((prefix + name, depth) for name in listing.links if name not in inside)
        if listing.entries:
            return
        self.links.extend((target, depth) for target in self.pseudo_links(prefix, listing.bare))
        self.found.archives.extend(prefix + name for name in listing.archives)
        for name in listing.misspelt:
            self.found.tell(
                prefix + name, "warning", "misspelt-entry", "not read as a skill", "call it SKILL.md"
            )

    def pseudo_links(self, prefix: str, names: Iterable[str]) -> Iterable[str]:
        """Folders that text files stand for."""
        for name in names:
            target = pseudo_link(prefix + name)
            if target is not None and os.path.isdir(target):  # noqa: PTH112
                self.found.tell(
                    prefix + name, "info", "pseudo-link", f"a text file in place of a link to {target}"
                )
                yield target


def pseudo_link(path: str) -> str | None:
    """What a text file in place of a symbolic link leads to.

    Git on Windows, where links need a privilege, checks out a link as a file that holds its target.

    Args:
        path: a file.

    Returns:
        The target as a path, whether or not it exists; None when the file does not look like a link.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or not 0 < status.st_size <= _MAX_LINK:
            return None
        text = os.read(descriptor, _MAX_LINK).decode("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    finally:
        os.close(descriptor)
    if not text.isprintable() or "/" not in text or text.startswith("/"):
        return None
    return os.path.normpath(f"{path}/../{text}")


_CACHE_SIZE = 50_000
_cache: dict[str, tuple[Signature, _Listing]] = {}
_lock = threading.Lock()


def is_settled(mark: Signature) -> bool:
    """Whether a later change would surely show in the signature.

    File systems count time in steps of up to 10 ms (some in seconds): within a step a second change leaves
    the same mark.
    """
    changed = max(mark[3], mark[4])
    step = 2_100_000_000 if changed % 1_000_000_000 == 0 else 30_000_000
    return time.time_ns() - changed > step


def forget() -> None:
    """Drop all listings that are kept."""
    with _lock:
        _cache.clear()


def _list(path: str, mark: Signature) -> _Listing:
    kept = _cache.get(path)
    if kept is not None and kept[0] == mark:
        return kept[1]
    listing = _read_folder(path)
    if is_settled(mark):
        with _lock:
            if len(_cache) >= _CACHE_SIZE:
                _cache.clear()
            _cache[path] = (mark, listing)
    return listing


def _read_folder(path: str) -> _Listing:
    with os.scandir(path) as entries:
        found = [entry for entry in entries if not entry.name.startswith(".")]
    if len(found) == 1 and found[0].name == ENTRIES[0]:
        return _BARE_SKILL
    found.sort(key=lambda entry: entry.name)
    kinds: dict[str, list[str]] = {kind: [] for kind in _Listing._fields}
    for entry in found:
        kind = _kind(entry)
        if kind is not None:
            kinds[kind].append(entry.name)
    return _Listing(**{kind: tuple(names) for kind, names in kinds.items()})


def _kind(entry: os.DirEntry[str]) -> str | None:
    """Which of a listing's names an entry belongs to."""
    name = entry.name
    if name in IGNORED_FOLDERS:
        return None
    if name.lower() == "skill.md":
        return "entries" if name in ENTRIES else "misspelt"
    if entry.is_dir(follow_symlinks=False):
        return "folders"
    if name.endswith(".skill"):
        return "archives"
    if entry.is_symlink():
        return "links"
    return None if "." in name else "bare"
