"""Where the files of a session lie, and what they are called in its timeline."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

SKILLS, UPLOADS, OUTPUTS = "skills", "uploads", "outputs"


@dataclass(frozen=True, slots=True)
class Layout:
    """The folders of a session.

    In the timeline a file has one name wherever it lies: ``outputs/report.pdf``, ``uploads/sales.csv``, or
    its path in the session's ``work`` folder.

    Attributes:
        root: the session's ``work`` folder.
        cwd: the tools' working directory: ``root``, or the notebook's folder.
    """

    root: Path
    cwd: Path

    @property
    def skills(self) -> Path:
        """Where the copies of skills lie."""
        return self.root / SKILLS

    @property
    def uploads(self) -> Path:
        """What the user gave."""
        return self.root / UPLOADS

    @property
    def outputs(self) -> Path:
        """What Claude made for the user."""
        return self.cwd / OUTPUTS

    def base(self, path: str) -> tuple[Path, str]:
        """The folder that a name of the timeline starts from, and the rest of the name."""
        if path.startswith(OUTPUTS + "/"):
            return self.cwd, path
        return self.root, path

    def absolute(self, path: str) -> Path:
        """Where a file of that name lies."""
        folder, rest = self.base(path)
        return folder / rest

    def told(self, path: Path) -> str:
        """A path as Claude is told it: relative to the working directory, with ``/``."""
        return Path(os.path.relpath(path, self.cwd)).as_posix()

    def name_of(self, path: Path) -> str | None:
        """The name of a file in the timeline; None when it lies in neither folder. Links are not followed."""
        whole = Path(os.path.normpath(path))
        if whole.is_relative_to(self.outputs):
            return whole.relative_to(self.cwd).as_posix()
        return whole.relative_to(self.root).as_posix() if whole.is_relative_to(self.root) else None
