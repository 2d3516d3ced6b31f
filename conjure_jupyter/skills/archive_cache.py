"""Where archives are extracted to: a folder of the user's cache for each, named by its SHA-256.

An archive is extracted beside its place and moved there in one step, so that a folder of that name is
always whole. What was not used for 30 days goes, and the oldest above 1 GiB together.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InvalidSkillStructureError, ToolError
from ..paths import make_private_dir
from .fence import FenceError, split
from .frontmatter import FrontmatterReader
from .naming import make_usable, name_problems

if TYPE_CHECKING:
    from .archive import Archive

#: Days after which an unused archive is dropped, and bytes kept together.
MAX_AGE_DAYS = 30
MAX_BYTES = 1024**3
#: Hours for which nothing is dropped: a session may be reading it.
GRACE_HOURS = 24

_HOUR = 3600.0
_TEMPORARY = ".partial-"


def cache_folder() -> Path:
    """The folder of all extracted archives."""
    import platformdirs

    return Path(platformdirs.user_cache_dir("conjure-jupyter", appauthor=False)) / "skills"


def extract_skill_file(path: str | os.PathLike[str]) -> Path:
    """Extract a ``.skill`` archive, or find it extracted.

    Args:
        path: the archive: a ZIP with SKILL.md at its top or in its only folder.

    Returns:
        The skill's folder. It belongs to a cache: copy it to change it.

    Raises:
        SkillArchiveError: it is damaged or hostile, or is no skill; nothing of it was kept.
        InvalidSkillStructureError: it cannot be read, or the cache cannot be written.
    """
    import hashlib

    from .archive import Archive

    source = Path(path)
    try:
        with source.open("rb") as file:
            archive = Archive(source, file)
            file.seek(0)
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            return _extracted(archive, cache_folder() / digest)
    except ToolError as error:
        raise InvalidSkillStructureError(source, f"the cache cannot be written: {error}") from error
    except OSError as error:
        raise InvalidSkillStructureError(
            Path(error.filename or source), error.strerror or str(error)
        ) from error


def _extracted(archive: Archive, home: Path) -> Path:
    """The folder of an archive's content; ``home`` may hold it under several names."""
    import shutil
    import tempfile

    skill = home / _folder_name(archive)
    if archive.matches(skill):
        os.utime(home)
        return skill
    make_private_dir(home.parent)
    make_private_dir(home)
    temporary = Path(tempfile.mkdtemp(prefix=_TEMPORARY, dir=home.parent))
    try:
        temporary.chmod(0o755)
        archive.extract(temporary)
        _move(temporary, skill, archive)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    prune(keep=home)
    return skill


def _move(temporary: Path, skill: Path, archive: Archive) -> None:
    """Put an extracted folder in its place, unless another process was faster; one that is damaged goes."""
    import shutil
    import tempfile

    try:
        temporary.rename(skill)
    except OSError:
        if archive.matches(skill):
            return
        damaged = Path(tempfile.mkdtemp(prefix=_TEMPORARY, dir=temporary.parent))
        try:
            skill.rename(damaged)
            temporary.rename(skill)
        finally:
            shutil.rmtree(damaged, ignore_errors=True)


def _folder_name(archive: Archive) -> str:
    """The name of the skill's folder: the archive's own, else the skill's, else the archive file's."""
    if archive.folder is not None:
        return make_usable(archive.folder)
    reader = FrontmatterReader(archive.path)
    with contextlib.suppress(FenceError):
        cut = split(archive.head())
        frontmatter = reader.read(cut) if cut else None
        if frontmatter and frontmatter.name and not name_problems(frontmatter.name):
            return frontmatter.name
    return make_usable(archive.path.stem)


def prune(
    folder: Path | None = None,
    *,
    max_age_days: float = MAX_AGE_DAYS,
    max_bytes: int = MAX_BYTES,
    keep: Path | None = None,
) -> list[Path]:
    """Drop extracted archives that are old, and the least recently used above a size.

    Args:
        folder: the cache; the user's when None.
        max_age_days: days since the last use.
        max_bytes: what all may take together.
        keep: one that stays.

    Returns:
        What was dropped.
    """
    import shutil

    now = time.time()
    dropped: list[Path] = []
    total = 0
    for used, size, path in sorted(_kept(folder or cache_folder()), reverse=True):
        age = now - used
        total += size
        if path == keep or age < GRACE_HOURS * _HOUR:
            continue
        if path.name.startswith(_TEMPORARY) or age > max_age_days * 24 * _HOUR or total > max_bytes:
            shutil.rmtree(path, ignore_errors=True)
            dropped.append(path)
            total -= size
    return dropped


def _kept(folder: Path) -> list[tuple[float, int, Path]]:
    kept = []
    for path in folder.iterdir() if folder.is_dir() else ():
        with contextlib.suppress(OSError):
            files = [Path(root, name) for root, _, names in os.walk(path) for name in names]
            kept.append((path.stat().st_mtime, sum(file.stat().st_size for file in files), path))
    return kept
