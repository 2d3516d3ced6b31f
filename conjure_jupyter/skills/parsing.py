"""From a SKILL.md to a Skill, remembered for as long as the file is unchanged."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import InvalidFrontmatterError, InvalidSkillStructureError
from ..paths import read_beneath
from .frontmatter import FrontmatterReader, body_text
from .models import Diagnostic, Skill
from .naming import make_usable, normalise, usable
from .reading import ENTRIES, MAX_FILE, Head, Signature, UnreadableError, read_all, read_head, signature
from .scanning import is_settled, pseudo_link

_CACHE_SIZE = 20_000
#: The attributes of a Skill.
State = dict[str, Any]
_cache: dict[tuple[str, str], tuple[Signature, State | None, tuple[Diagnostic, ...]]] = {}
_lock = threading.Lock()


class Parsed(NamedTuple):
    """What came of a file: a skill, or only problems."""

    skill: Skill | None
    diagnostics: tuple[Diagnostic, ...]


def parse_skill_md(path: str | os.PathLike[str]) -> Skill:
    """The skill of a SKILL.md, its body not loaded.

    Args:
        path: the file, or the folder that holds it.

    Raises:
        InvalidSkillStructureError: there is no such file, or it cannot be read.
        InvalidFrontmatterError: its frontmatter cannot be used.
    """
    target = Path(os.path.abspath(Path(path).expanduser()))  # noqa: PTH100  links must stay as they are
    if target.is_dir():
        name = entry_of(target)
        if name is None:
            raise InvalidSkillStructureError(target, "there is no SKILL.md in this folder")
        target /= name
    parsed = parse(str(target.parent), target.name)
    if parsed.skill is not None:
        return parsed.skill
    problem = next(problem for problem in parsed.diagnostics if problem.severity == "error")
    if problem.code == "unreadable":
        raise InvalidSkillStructureError(problem.path, problem.message)
    raise InvalidFrontmatterError(problem.path, problem.message, line=problem.line)


def entry_of(folder: Path) -> str | None:
    """The name of a folder's SKILL.md as it is spelt on disk."""
    try:
        names = set(os.listdir(folder))  # noqa: PTH208  a Path of each is not needed
    except OSError:
        return None
    return next((name for name in ENTRIES if name in names), None)


def parse(folder: str, entry: str, *, follow: bool = True) -> Parsed:
    """The skill in a folder; never raises for what the file holds.

    Args:
        folder: absolute.
        entry: the name of its SKILL.md.
        follow: whether a text file in place of a link is followed.
    """
    key = (folder, entry)
    path = f"{folder}/{entry}"
    kept = _cache.get(key)
    if kept is not None:
        try:
            if signature(os.stat(path)) == kept[0]:  # noqa: PTH116  a Path costs more than the call
                return _parsed(kept[1], kept[2])
        except OSError:
            pass
    try:
        head = read_head(path)
    except UnreadableError as error:
        target = pseudo_link(path) if follow and error.diagnostic.code == "no-frontmatter" else None
        if target is None or not target.endswith(tuple(f"/{name}" for name in ENTRIES)):
            return Parsed(None, (error.diagnostic,))
        return parse(*target.rsplit("/", 1), follow=False)
    state, diagnostics = _parse_head(folder, entry, head)
    if is_settled(head.signature):
        with _lock:
            if len(_cache) >= _CACHE_SIZE:
                _cache.clear()
            _cache[key] = (head.signature, state, diagnostics)
    return _parsed(state, diagnostics)


def _parse_head(folder: str, entry: str, head: Head) -> tuple[State | None, tuple[Diagnostic, ...]]:
    reader = FrontmatterReader(f"{folder}/{entry}")
    frontmatter = reader.read(head.cut)
    if frontmatter is None:
        return None, tuple(reader.diagnostics)
    name = frontmatter.name
    basename = folder.rsplit("/", 1)[1]
    if name != basename:
        name = _name(name, basename, reader)
    diagnostics = tuple(reader.diagnostics)
    state: State = {
        "name": name,
        "description": frontmatter.description,
        "path": Path(folder),
        "license": frontmatter.license,
        "compatibility": frontmatter.compatibility,
        "metadata": frontmatter.metadata,
        "allowed_tools": frontmatter.allowed_tools,
        "extra": frontmatter.extra,
        "body": None,
        "body_loaded": False,
        "trusted": True,
        "diagnostics": diagnostics,
        "entry": entry,
        "source": None,
    }
    return state, diagnostics


def _parsed(state: State | None, diagnostics: tuple[Diagnostic, ...]) -> Parsed:
    """A skill with containers of its own, so that a caller who changes them changes nothing remembered."""
    if state is None:
        return Parsed(None, diagnostics)
    skill = object.__new__(Skill)  # five times faster than the frozen class's __init__
    own = skill.__dict__
    own.update(state)
    own["metadata"] = _copied(own["metadata"]) if own["metadata"] else {}
    own["extra"] = _copied(own["extra"]) if own["extra"] else {}
    own["compatibility"] = _copied(own["compatibility"])
    return Parsed(skill, diagnostics)


def forget() -> None:
    """Drop all skills that are remembered."""
    with _lock:
        _cache.clear()


def load_body(skill: Skill) -> Skill:
    """The same skill with its instructions.

    Raises:
        InvalidSkillStructureError: its file is gone or can no longer be read.
    """
    try:
        data, cut = read_all(str(skill.skill_md))
    except UnreadableError as error:
        raise InvalidSkillStructureError(error.diagnostic.path, error.diagnostic.message) from error
    return replace(skill, body=body_text(data, cut), body_loaded=True)


def read_resource(skill: Skill, relative: str | os.PathLike[str]) -> str:
    """The text of one of a skill's files; bytes that are no UTF-8 are replaced.

    Args:
        skill: whose file.
        relative: its path in the skill's folder, such as ``references/api.md``.

    Raises:
        PathNotFoundError: there is no such file.
        PermissionDeniedError: it lies outside the skill's folder, also by way of a link.
        InvalidSkillStructureError: it is larger than 16 MiB.
    """
    data = read_beneath(skill.path, os.fspath(relative), limit=MAX_FILE + 1)
    if len(data) > MAX_FILE:
        raise InvalidSkillStructureError(skill.path / relative, f"larger than {MAX_FILE // 1024 // 1024} MiB")
    return data.decode("utf-8", "replace")


def _copied(value: Any) -> Any:
    """A copy of what frontmatter can hold: text, lists and dicts."""
    if isinstance(value, dict):
        return {key: item if isinstance(item, str) else _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


def _name(name: str, folder: str, reader: FrontmatterReader) -> str:
    """The name to use, when it is not simply that of the folder."""
    own = normalise(folder)
    if not name:
        return make_usable(folder)
    if name == own and usable(name):
        return name
    if not usable(name):
        name = make_usable(folder)
        reader.tell(
            "warning", "unsafe-name", f"the name cannot be used; {name!r} is used", "rename it", "name"
        )
        return name
    reader.tell(
        "warning",
        "name-mismatch",
        f"name {name!r} is not that of its folder, {own!r}",
        "make them equal",
        "name",
    )
    return name
