"""What a session tells Claude besides the user's words: the frozen system prompt, and the news of a turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..places import Place
from ..prompt import available_skills_block, catalogue, clean, session_instructions
from ..settings import Settings
from ..skills import Skill
from ..types import FileRef
from .workspace import Workspace


def system_prompt(
    settings: Settings, skills: Sequence[Skill], files: Workspace, place: Place, notebook: Path | None
) -> tuple[str, tuple[str, ...]]:
    """The system prompt of a session, and the names of skills its budget had no room for."""
    listed = catalogue(skills, budget_tokens=settings.catalogue_tokens, location=files.skill_location)
    facts = session_instructions(
        timeout=settings.timeout,
        folder="" if files.cwd == files.root else files.told(files.root),
        notebook_folder=str(notebook) if notebook and notebook != files.cwd else None,
        inspect_variables=any(tool["name"] == "inspect_variable" for tool in place.definitions),
    )
    parts = ((settings.system or "").strip(), listed.text, facts)
    return "\n\n".join(part for part in parts if part), listed.left_out


def left_out(names: Sequence[str]) -> str:
    """What the user is told of skills that the catalogue has no room for."""
    shown = ", ".join(names[:5]) + (" …" if len(names) > 5 else "")
    return (
        f"{len(names)} skills are loaded but not in the prompt ({shown}); raise catalogue_tokens to list them"
    )


def new_skills(skills: Sequence[Skill], announced: Mapping[str, Skill], files: Workspace) -> str:
    """What Claude is told of skills that came, changed or went since the last turn; empty when none did."""
    news = [skill for skill in skills if announced.get(skill.name) != skill]
    gone = sorted(set(announced) - {skill.name for skill in skills})
    parts = []
    if news:
        block = available_skills_block(news, location=files.skill_location)
        parts.append(f"Skills that are new or have changed:\n{block}")
    if gone:
        parts.append("Skills that are no longer offered: " + ", ".join(clean(name) for name in gone))
    return "\n".join(parts)


def attachments(uploads: Sequence[FileRef]) -> str:
    """What Claude is told of the files that the user gave; empty when there are none."""
    if not uploads:
        return ""
    lines = (f"- {clean(file.path)} ({file.content_type}, {size(file.size)})" for file in uploads)
    return "Files attached:\n" + "\n".join(lines)


def chosen_skill(skill: Skill | None, files: Workspace) -> str:
    """What Claude is told when the user keeps to one skill; empty when she does not."""
    if skill is None:
        return ""
    return f"Use the skill {clean(skill.name)} for this ({clean(files.skill_location(skill))}), and no other."


def size(count: int) -> str:
    """A number of bytes for people."""
    if count < 1000:
        return f"{count} B"
    value, units = float(count), ["kB", "MB", "GB", "TB"]
    for unit in units:
        value /= 1000
        if value < 999.5 or unit == units[-1]:
            return f"{value:.1f} {unit}"
    raise AssertionError  # the loop returns at its last unit
