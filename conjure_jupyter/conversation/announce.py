"""What a session tells Claude besides the user's words: the frozen system prompt, and the news of a turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..artifacts.section import artifacts_section
from ..places import Place
from ..prompt import available_skills_block, catalogue, clean, session_instructions
from ..settings import Settings
from ..skills import Skill
from ..timeline.discovery import Registration
from ..types import FileRef
from ..wording import size_text
from .workspace import Workspace


def system_prompt(
    settings: Settings,
    skills: Sequence[Skill],
    files: Workspace,
    place: Place,
    *,
    notebook: Path | None,
    artifacts: str,
) -> tuple[str, tuple[str, ...]]:
    """The system prompt of a session, and the names of skills its budget had no room for.

    Args:
        notebook: the notebook's folder as tools call it, when they may read it.
        artifacts: the section of the artifacts that are known at the start.
    """
    listed = catalogue(skills, budget_tokens=settings.catalogue_tokens, location=files.skill_location)
    facts = session_instructions(
        timeout=settings.timeout,
        folder="" if files.cwd == files.root else files.told(files.root),
        notebook_folder=str(notebook) if notebook and notebook != place.context.working_directory else None,
        kernel_python=place.name == "local",
        place=place.describe(),
        inspect_variables=any(tool["name"] == "inspect_variable" for tool in place.definitions),
    )
    parts = ((settings.system or "").strip(), listed.text, artifacts, facts)
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


def attachments(uploads: Sequence[FileRef], numbers: Mapping[str, int]) -> str:
    """What Claude is told of the files that the user gave; empty when there are none.

    Args:
        uploads: the files.
        numbers: of those that are in the sources pool, by path.
    """
    if not uploads:
        return ""
    lines = (
        f"- {clean(file.path)} ({file.content_type}, {size_text(file.size)})"
        + (f" [[S:{numbers[file.path]}]]" if file.path in numbers else "")
        for file in uploads
    )
    return "Files attached:\n" + "\n".join(lines)


def artifacts(registrations: Sequence[Registration], gone: Sequence[str]) -> str:
    """What Claude is told of names that were given or taken away since the last turn; empty when none was."""
    parts = [f"Artifacts that are new:\n{artifacts_section(registrations, [])}"] if registrations else []
    if gone:
        parts.append("Artifacts that are no longer offered: " + ", ".join(clean(name) for name in gone))
    return "\n".join(parts)


def chosen_skill(skill: Skill | None, files: Workspace) -> str:
    """What Claude is told when the user keeps to one skill; empty when she does not."""
    if skill is None:
        return ""
    return f"Use the skill {clean(skill.name)} for this ({clean(files.skill_location(skill))}), and no other."


def skills_in_use(locations: Sequence[str]) -> str:
    """What Claude is told of skills it had read in turns that are summarised; empty when there are none."""
    if not locations:
        return ""
    listed = "\n".join(f"- {clean(location)}" for location in locations)
    return f"Skills in use (view SKILL.md again before going on with one):\n{listed}"
