"""Loading skills: from a folder, a SKILL.md, or a ``.skill`` archive."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from ..errors import InvalidFrontmatterError, InvalidSkillStructureError, SkillArchiveError
from .archive_cache import extract_skill_file
from .models import Diagnostic, Severity, Skill, SkillList
from .parsing import parse, parse_skill_md
from .public_rules import public_problems
from .scanning import scan

_log = logging.getLogger(__name__)

#: Endings of archives that are loaded when named; in folders only ``.skill`` files are looked for.
ARCHIVES = (".skill", ".zip")
StrPath = str | os.PathLike[str]


def load(path: StrPath, *, strict: bool = False) -> SkillList:
    """Load the skills at or below a path.

    A skill with a problem never stops the others: see ``.diagnostics`` of the result, which names the
    problems of the skills that were loaded and of those that were not. When two have the same name, the
    first by path counts.

    Args:
        path: a skill's folder, a folder of such folders at any depth, a SKILL.md, or a ``.skill`` archive.
        strict: load only skills in which the public validator finds nothing.
    """
    return load_all([path], strict=strict)


def load_all(paths: Iterable[StrPath], *, strict: bool = False) -> SkillList:
    """Load the skills of several paths; of two with the same name, that of the earlier path counts.

    Args:
        paths: as for ``load``.
        strict: load only skills in which the public validator finds nothing.
    """
    absolute = [absolute_path(path) for path in paths]
    loader = _Loader(strict=strict)
    for path in absolute:
        loader.add(path)
    for problem in loader.diagnostics:
        _log.log(_LEVELS[problem.severity], "%s", problem)
    return SkillList(loader.skills.values(), loader.diagnostics, paths=absolute, strict=strict)


def load_skill_file(path: StrPath) -> Skill:
    """Load one ``.skill`` archive.

    Raises:
        SkillArchiveError: it was refused; nothing of it was kept.
        InvalidSkillStructureError: there is no such file, or it holds no skill.
        InvalidFrontmatterError: the frontmatter of its SKILL.md cannot be used.
    """
    source = absolute_path(path)
    return replace(parse_skill_md(extract_skill_file(source)), source=source)


def absolute_path(path: StrPath) -> Path:
    """``path`` from the root, ``~`` expanded, symbolic links left as they are."""
    return Path(os.path.abspath(Path(path).expanduser()))  # noqa: PTH100  resolve() would follow links


_LEVELS: dict[Severity, int] = {"error": logging.WARNING, "warning": logging.INFO, "info": logging.DEBUG}


class _Loader:
    """Skills by name, and the problems met on the way."""

    def __init__(self, *, strict: bool) -> None:
        self.strict = strict
        self.skills: dict[str, Skill] = {}
        self.diagnostics: list[Diagnostic] = []

    def add(self, path: Path) -> None:
        if path.is_dir():
            self.add_folder(path)
        elif not os.path.lexists(path):
            self.tell(path, "not-found", "no such file or folder", "check the spelling")
        elif path.name.lower() == "skill.md":
            self.add_entry(str(path.parent), path.name)
        elif path.suffix.lower() in ARCHIVES:
            self.add_archive(path)
        else:
            self.tell(path, "not-a-skill", "neither a folder, nor a SKILL.md, nor a .skill archive")

    def add_folder(self, path: Path) -> None:
        found = scan(path)
        self.diagnostics.extend(found.diagnostics)
        for folder, entry in found.entries:
            self.add_entry(folder, entry)
        for archive in found.archives:
            self.add_archive(Path(archive))
        if not (found.entries or found.archives or found.diagnostics):
            hidden = [
                name for name in (".conjure", ".agents", ".claude") if (path / name / "skills").is_dir()
            ]
            advice = (
                f"load {path / hidden[0] / 'skills'}" if hidden else "a skill is a folder with a SKILL.md"
            )
            self.tell(path, "no-skills", "there is no skill in this folder", advice, "warning")

    def add_entry(self, folder: str, entry: str) -> None:
        if self.strict:
            problems = public_problems(Path(folder), entry)
            self.diagnostics.extend(problems)
            if problems:
                return
        parsed = parse(folder, entry)
        self.diagnostics.extend(parsed.diagnostics)
        if parsed.skill is not None:
            self.keep(parsed.skill)

    def add_archive(self, path: Path) -> None:
        try:
            skill = load_skill_file(path)
        except SkillArchiveError as error:
            self.tell(path, "bad-archive", error.reason, "nothing of it was kept")
        except InvalidSkillStructureError as error:
            self.tell(path, "bad-archive", error.reason)
        except InvalidFrontmatterError as error:
            self.tell(path, "invalid-frontmatter", f"SKILL.md in it, line {error.line or 1}: {error.reason}")
        else:
            problems = public_problems(skill.path, skill.entry) if self.strict else list(skill.diagnostics)
            problems = [replace(problem, path=path / skill.entry) for problem in problems]
            self.diagnostics.extend(problems)
            if not (self.strict and problems):
                self.keep(replace(skill, diagnostics=tuple(problems)))

    def keep(self, skill: Skill) -> None:
        first = self.skills.setdefault(skill.name, skill)
        if first is not skill and first.path != skill.path:
            self.tell(
                skill.source or skill.skill_md,
                "shadowed",
                f"another skill is called {skill.name!r}: {first.source or first.path}; that one counts",
                "rename one of them",
                "warning",
            )

    def tell(
        self, path: Path, code: str, message: str, advice: str = "", severity: Severity = "error"
    ) -> None:
        self.diagnostics.append(Diagnostic(path, None, severity, code, message, advice))
