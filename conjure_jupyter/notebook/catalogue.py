"""Showing skills: the table, one of them, and what went wrong when they were loaded."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from ..errors import SettingsError, SkillNotFoundError
from ..skills import load_body
from . import markdown
from .view import show
from .visible import bounded, one_line

if TYPE_CHECKING:
    from ..skills import Diagnostic, Skill
    from .desk import Desk

#: Skills, problems and characters of a description that are shown.
MOST, DESCRIPTION = 200, 300


def load(desk: Desk, paths: Sequence[str]) -> None:
    """Load skills, then show them and what was wrong.

    Raises:
        SettingsError: no path is given.
    """
    if not paths:
        raise SettingsError("%skills_load", "name a folder or a .skill file")
    loaded = desk.load_skills(paths)
    _show(desk, list(loaded), list(loaded.diagnostics))


def table(desk: Desk) -> None:
    """Show all skills of the kernel."""
    desk.registry.reload()
    _show(desk, desk.registry.list(), list(desk.registry.diagnostics))


def one(desk: Desk, name: str) -> None:
    """Show one skill: what it is for, what it holds, and its instructions.

    Raises:
        SkillNotFoundError: there is none of that name.
    """
    skill = desk.registry.get(name)
    if skill is None:
        raise SkillNotFoundError(name, tuple(known.name for known in desk.registry.list()))
    told = desk.style().told
    body = load_body(skill).body or ""
    resources = skill.resources
    files = [*resources.scripts, *resources.references, *resources.assets, *resources.other]
    listed = [one_line(path.as_posix(), 200) for path in files[:MOST]]
    head = f"{one_line(skill.name)}: {one_line(skill.description, 2_000)}"
    where = one_line(told(str(skill.path)), 500)
    rows = "".join(f"<li><code>{escape(name)}</code></li>" for name in listed)
    show(
        {
            "text/plain": "\n".join(
                [head, where, *(f"  {name}" for name in listed), "", bounded(body, 20_000)]
            ),
            "text/html": f"<div><p><strong>{escape(one_line(skill.name))}</strong></p>"
            f"<p>{escape(one_line(skill.description, 2_000))}</p><p><code>{escape(where)}</code></p>"
            f"<ul>{rows}</ul><details><summary>Instructions</summary>{markdown.html(body)}</details></div>",
        }
    )


def _show(desk: Desk, skills: Sequence[Skill], problems: Sequence[Diagnostic]) -> None:
    told = desk.style().told
    rows = [(one_line(skill.name, 64), one_line(skill.description, DESCRIPTION)) for skill in skills[:MOST]]
    lines = [one_line(told(str(problem)), 500) for problem in problems[:MOST]]
    count = f"{len(skills)} skill{'' if len(skills) == 1 else 's'}"
    width = max((len(name) for name, _ in rows), default=0)
    plain = [count, *(f"  {name:{width}}  {text}" for name, text in rows), *lines]
    cells = "".join(f"<li><strong>{escape(name)}</strong>: {escape(text)}</li>" for name, text in rows)
    listed = "".join(f"<li>{escape(line)}</li>" for line in lines)
    html = f"<div><p>{count}</p>" + (f"<ul>{cells}</ul>" if rows else "")
    show(
        {
            "text/plain": "\n".join(plain),
            "text/html": html + (f"<ul>{listed}</ul></div>" if lines else "</div>"),
        }
    )
