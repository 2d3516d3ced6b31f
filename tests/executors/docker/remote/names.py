"""What a folder holds."""

from __future__ import annotations

from pathlib import Path


def names(folder: Path) -> list[str]:
    """The names in a folder, sorted."""
    return sorted(path.name for path in folder.iterdir())
