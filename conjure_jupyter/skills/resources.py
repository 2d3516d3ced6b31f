"""The files of a skill besides its SKILL.md."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

#: Folders that are never part of a skill: what tools leave behind, and what belongs to other programs.
IGNORED_FOLDERS = frozenset(
    {"__pycache__", "node_modules", "__MACOSX", ".git", ".hg", ".svn", ".venv", "venv", ".ipynb_checkpoints"}
    | {".pytest_cache", ".mypy_cache", ".ruff_cache", ".tox", ".conjure"}
)
IGNORED_FILES = frozenset({".DS_Store", "Thumbs.db", "desktop.ini"})
#: Most files that are listed, and how deep.
MAX_FILES = 10_000
MAX_DEPTH = 12


@dataclass(frozen=True, slots=True)
class Resources:
    """The files of a skill besides its SKILL.md, relative to its folder and sorted."""

    scripts: tuple[Path, ...] = ()
    references: tuple[Path, ...] = ()
    assets: tuple[Path, ...] = ()
    other: tuple[Path, ...] = ()

    def __iter__(self) -> Iterator[Path]:
        yield from (*self.scripts, *self.references, *self.assets, *self.other)


def ignored(name: str) -> bool:
    """Whether a file of that name is left out everywhere."""
    return name in IGNORED_FILES or name.endswith((".pyc", ".pyo"))


def load_resources(path: Path) -> Resources:
    """List what lies in a skill's folder, without its SKILL.md.

    Folders that are symbolic links are not entered; what cannot be listed is left out.
    """
    kinds: dict[str, list[Path]] = {"scripts": [], "references": [], "assets": [], "other": []}
    for relative in walk(path):
        parts = relative.split("/")
        if len(parts) == 1 and relative.lower() == "skill.md":
            continue
        kinds[parts[0] if len(parts) > 1 and parts[0] in kinds else "other"].append(Path(relative))
    return Resources(**{kind: tuple(sorted(paths)) for kind, paths in kinds.items()})


def walk(root: Path) -> list[str]:
    """Files below ``root`` as ``a/b.txt``, at most ``MAX_FILES`` of them."""
    found: list[str] = []
    pending = [("", 0)]
    while pending and len(found) < MAX_FILES:
        folder, depth = pending.pop()
        try:
            with os.scandir(root / folder) as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            relative = f"{folder}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in IGNORED_FOLDERS and depth < MAX_DEPTH:
                    pending.append((f"{relative}/", depth + 1))
            elif not ignored(entry.name) and _is_file(entry):
                found.append(relative)
    return found[:MAX_FILES]


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:
        return False
