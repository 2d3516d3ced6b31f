"""What is wrong with a skill: by the public validator's rules, or by ours."""

from __future__ import annotations

from pathlib import Path

from .loading import ARCHIVES, absolute_path, load
from .models import Diagnostic, Skill
from .parsing import entry_of, parse
from .public_rules import public_problems
from .reading import UnreadableError, read_all

#: Recommended limits of the instructions; a token is taken to be four characters.
MAX_BODY_LINES = 500
MAX_BODY_TOKENS = 5000


def validate(skill: Skill | Path | str, *, strict: bool = True) -> list[Diagnostic]:
    """What is wrong with a skill.

    Args:
        skill: a skill, or the path of its folder, SKILL.md, or ``.skill`` archive.
        strict: by the public validator's rules, each breach an error, and nothing else is told. Otherwise
            as loading it would tell, plus what the specification only recommends.

    Returns:
        Problems; none when the skill is valid.
    """
    path = skill.path if isinstance(skill, Skill) else absolute_path(skill)
    if path.is_file() and path.suffix.lower() in ARCHIVES:
        return load(path, strict=strict).diagnostics
    entry = skill.entry if isinstance(skill, Skill) else None
    if path.is_file() and path.name.lower() == "skill.md":
        path, entry = path.parent, path.name
    if not path.is_dir():
        problem = "not a folder" if path.exists() else "no such file or folder"
        return [Diagnostic(path, None, "error", "not-found", problem, "give the path of a skill's folder")]
    entry = entry or entry_of(path)
    if entry is None:
        return [
            Diagnostic(
                path, None, "error", "no-skill-md", "there is no SKILL.md", "a skill is a folder with one"
            )
        ]
    return public_problems(path, entry) if strict else _all_problems(path, entry)


def _all_problems(folder: Path, entry: str) -> list[Diagnostic]:
    found = list(parse(str(folder), entry).diagnostics)
    path = folder / entry
    try:
        data, cut = read_all(str(path))
    except UnreadableError:
        return found
    body = data[cut.body :]
    lines, tokens = body.count(b"\n"), len(body) // 4
    if lines > MAX_BODY_LINES or tokens > MAX_BODY_TOKENS:
        message = f"the instructions are long: {lines} lines, about {tokens} tokens"
        advice = f"keep to {MAX_BODY_LINES} lines and {MAX_BODY_TOKENS} tokens; move details to references/"
        found.append(Diagnostic(path, None, "info", "long-body", message, advice))
    return found
