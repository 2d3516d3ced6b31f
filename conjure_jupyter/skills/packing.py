"""Making a ``.skill`` archive of a skill's folder."""

from __future__ import annotations

import io
import os
import stat
from pathlib import Path

from ..errors import InvalidSkillStructureError, ToolError
from ..paths import write_atomic
from .loading import absolute_path
from .parsing import entry_of, parse_skill_md
from .resources import walk

#: The earliest time a ZIP can hold: archives of equal files are equal.
_TIME = (1980, 1, 1, 0, 0, 0)


def pack_skill(directory: str | os.PathLike[str], out: str | os.PathLike[str] | None = None) -> Path:
    """Pack a skill's folder, as the archive's top folder; equal files give an equal archive.

    Left out is what tools leave behind: ``__pycache__``, ``node_modules``, ``.git``, ``*.pyc``, ``.DS_Store``
    and the like, and other ``.skill`` archives at the folder's top.

    Args:
        directory: the skill's folder.
        out: the archive to write, or a folder for it; ``<folder's name>.skill`` in the working directory
            when None.

    Returns:
        The archive's path.

    Raises:
        InvalidSkillStructureError: the folder holds no skill, too much, or a link that leads outside.
        InvalidFrontmatterError: the frontmatter of its SKILL.md cannot be used.
    """
    folder = absolute_path(directory)
    if entry_of(folder) is None:
        raise InvalidSkillStructureError(folder, "there is no SKILL.md in this folder")
    skill = parse_skill_md(folder)
    target = absolute_path(out) if out is not None else Path.cwd()
    if target.is_dir():
        target /= f"{folder.name}.skill"
    data = _zip(folder, [name for name in walk(folder) if not _is_archive(name) and folder / name != target])
    try:
        write_atomic(target, data, mode=0o644)
    except ToolError as error:
        raise InvalidSkillStructureError(skill.path, f"cannot write the archive: {error}") from error
    return target


def _is_archive(name: str) -> bool:
    return "/" not in name and name.endswith(".skill")


def _zip(folder: Path, names: list[str]) -> bytes:
    import zipfile

    from .archive import MAX_ENTRIES, MAX_TOTAL

    if len(names) > MAX_ENTRIES:
        raise InvalidSkillStructureError(folder, f"it holds more than {MAX_ENTRIES} files")
    root = folder.resolve()
    buffer = io.BytesIO()
    total = 0
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(names):
            path = folder / name
            if not path.resolve().is_relative_to(root):
                raise InvalidSkillStructureError(path, "a link that leads out of the skill's folder")
            status = path.stat()
            total += status.st_size
            if total > MAX_TOTAL:
                raise InvalidSkillStructureError(
                    folder, f"its files are larger than {MAX_TOTAL // 1024 // 1024} MiB"
                )
            info = zipfile.ZipInfo(f"{folder.name}/{name}", _TIME)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3
            info.external_attr = (stat.S_IFREG | (0o755 if status.st_mode & 0o100 else 0o644)) << 16
            archive.writestr(info, path.read_bytes())
    return buffer.getvalue()
