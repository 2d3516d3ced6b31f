"""Where skills are looked for when nobody says where (client guide of the public specification)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FOLDERS = (".conjure/skills", ".agents/skills", ".claude/skills")


@dataclass(frozen=True, slots=True)
class Root:
    """A folder that is searched for skills.

    Attributes:
        path: absolute; it need not exist.
        trusted: False in a project, whose files may have been written by anyone.
        label: what to call it: ``project`` or ``user``.
    """

    path: Path
    trusted: bool
    label: str


def default_roots(project: Path, home: Path | None = None) -> list[Root]:
    """The folders of the project, then those of the user: of two skills with one name the first counts.

    Args:
        project: the notebook's folder.
        home: the user's home folder; the real one when None. When it is the project too, its folders are
            the user's.
    """
    home = Path.home() if home is None else home
    user = [Root(home / folder, trusted=True, label="user") for folder in FOLDERS]
    if project.absolute() == home.absolute():
        return user
    return [Root(project.absolute() / folder, trusted=False, label="project") for folder in FOLDERS] + user
