"""The skills a session can use, by name, and what changed among them on disk."""

from __future__ import annotations

import builtins
import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import SkillNotFoundError
from .loading import StrPath, absolute_path, load
from .models import Diagnostic, Skill, SkillList
from .reading import signature
from .resources import walk
from .roots import Root

#: What tells whether a skill's files changed.
Fingerprint = frozenset[tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class ReloadReport:
    """What a reload found; true when anything changed.

    Attributes:
        added: names of skills that are new.
        changed: names of skills of which a file changed, or that now come from another place.
        removed: names of skills that are gone.
        diagnostics: problems as of now.
    """

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


@dataclass(frozen=True, slots=True)
class _Source:
    """A path skills were loaded from, and how."""

    path: Path
    trusted: bool
    strict: bool = False
    optional: bool = False


def index(skills: Iterable[Skill]) -> dict[str, Skill]:
    """Skills by name; of two with the same name the first counts."""
    found: dict[str, Skill] = {}
    for skill in skills:
        found.setdefault(skill.name, skill)
    return found


def find(index: Mapping[str, Skill], name: str) -> Skill | None:
    """The skill of that name, or None."""
    return index.get(name)


class SkillRegistry:
    """Skills by name. What was asked for comes before the roots; of those the earlier comes first.

    Skills registered later replace those of the same name. Safe to use from several threads.
    """

    def __init__(self, paths: Iterable[StrPath] = (), *, roots: Iterable[Root] = ()) -> None:
        """Load skills.

        Args:
            paths: what the user asked for by path; trusted.
            roots: folders to search, such as ``default_roots(...)``; those that do not exist are passed over.
        """
        self._lock = threading.RLock()
        self._asked = [_Source(absolute_path(path), trusted=True) for path in paths]
        self._roots = [_Source(root.path, root.trusted, optional=True) for root in roots]
        self._loose: dict[str, Skill] = {}
        self._skills: dict[str, Skill] = {}
        self._prints: dict[str, Fingerprint] = {}
        self._diagnostics: list[Diagnostic] = []
        self.reload()

    @property
    def diagnostics(self) -> builtins.list[Diagnostic]:
        """Problems met when the skills were last loaded."""
        with self._lock:
            return list(self._diagnostics)

    def list(self) -> list[Skill]:
        """All skills, sorted by name."""
        with self._lock:
            return sorted(self._skills.values(), key=lambda skill: skill.name)

    def get(self, name: str) -> Skill:
        """The skill of that name.

        Raises:
            SkillNotFoundError: there is none.
        """
        with self._lock:
            skill = find(self._skills, name)
            if skill is None:
                raise SkillNotFoundError(name, tuple(sorted(self._skills)))
            return skill

    def __contains__(self, name: object) -> bool:
        with self._lock:
            return name in self._skills

    def __len__(self) -> int:
        with self._lock:
            return len(self._skills)

    def register(self, skills: Iterable[Skill]) -> ReloadReport:
        """Add skills the user asked for; they replace those of the same name, which is told.

        Args:
            skills: what ``load`` returned, whose paths are searched again by ``reload``; or any skills.
        """
        with self._lock:
            if isinstance(skills, SkillList) and skills.paths:
                new = [_Source(path, trusted=True, strict=skills.strict) for path in skills.paths]
                # several paths loaded together keep their order; what is asked for last comes first
                self._asked = new + [source for source in self._asked if source not in new]
                for skill in skills:
                    self._loose.pop(skill.name, None)
            else:
                self._loose.update((skill.name, skill) for skill in skills)
            return self.reload()

    def reload(self) -> ReloadReport:
        """Look at all paths again, and see added, changed and removed skills."""
        with self._lock:
            skills, diagnostics = self._load()
            prints = {name: _fingerprint(skill) for name, skill in skills.items()}
            before = self._skills
            report = ReloadReport(
                added=tuple(sorted(skills.keys() - before.keys())),
                changed=tuple(
                    sorted(
                        name for name in skills.keys() & before.keys() if prints[name] != self._prints[name]
                    )
                ),
                removed=tuple(sorted(before.keys() - skills.keys())),
                diagnostics=tuple(diagnostics),
            )
            self._skills, self._prints, self._diagnostics = skills, prints, diagnostics
            return report

    def _load(self) -> tuple[dict[str, Skill], builtins.list[Diagnostic]]:
        skills: dict[str, Skill] = {}
        diagnostics: list[Diagnostic] = []
        for skill in [again for loose in self._loose.values() for again in _again(loose)]:
            _add(skill, skills, diagnostics)
        for source in (*self._asked, *self._roots):
            if source.optional and not source.path.is_dir():
                continue
            loaded = load(source.path, strict=source.strict)
            diagnostics += [problem for problem in loaded.diagnostics if not _is_empty(source, problem)]
            for skill in loaded:
                _add(skill if source.trusted else replace(skill, trusted=False), skills, diagnostics)
        return skills, diagnostics


def _is_empty(source: _Source, problem: Diagnostic) -> bool:
    """Whether a problem is only that a root holds no skill yet."""
    return source.optional and problem.code == "no-skills"


def _again(skill: Skill) -> list[Skill]:
    """A skill that was registered without its path, as it is on disk now; gone when its folder is."""
    if not (skill.source or skill.path).exists():
        return []
    loaded = load(skill.source or skill.skill_md)
    return [replace(again, trusted=skill.trusted) for again in loaded if again.name == skill.name] or [skill]


def _add(skill: Skill, skills: dict[str, Skill], diagnostics: list[Diagnostic]) -> None:
    first = skills.setdefault(skill.name, skill)
    here, there = skill.source or skill.skill_md, first.source or first.skill_md
    if first is skill or os.path.realpath(here) == os.path.realpath(there):
        return
    diagnostics.append(
        Diagnostic(
            here,
            None,
            "warning",
            "shadowed",
            f"another skill is called {skill.name!r}: {there}; that one counts",
            "rename one of them",
        )
    )


def _fingerprint(skill: Skill) -> Fingerprint:
    marks: set[tuple[object, ...]] = {(str(skill.path), skill.trusted, str(skill.source))}
    for name in (skill.entry, *walk(skill.path)):
        try:
            marks.add((name, *signature((skill.path / name).stat())))
        except OSError:
            marks.add((name,))
    return frozenset(marks)
