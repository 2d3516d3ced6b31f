"""What the offline client does next: read the skill, run its command, look at what was made, report."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import unescape
from typing import Any

from ..base import Request
from . import report
from .documented import documented_commands, plain_text
from .filling import Filled, fill
from .matching import choose_skill
from .reading import Call, ListedSkill, Reading

VIEW, BASH = "view", "bash_tool"
OUTPUTS = "outputs"

#: Characters of each entry in an extract of earlier turns.
SUMMARY_LINE = 300

_ENTRY = re.compile(r"^<(\w+) turn=\d+>\n(.*?)\n</\1>$", re.MULTILINE | re.DOTALL)

#: How many documented commands are looked at.
MOST_COMMANDS = 20


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: words, and a call when there is more to do."""

    text: str
    tool: str = ""
    input: dict[str, Any] | None = None


def answer(reading: Reading) -> Answer:
    """The next answer of the conversation; the same for the same request."""
    named = [file + reading.kinds.get(file, "") for file in reading.named]
    chosen = (choose_skill(prompt, named, reading.skills) for prompt in reading.prompts)
    skill = next((skill for skill in chosen if skill is not None), None)
    if skill is None:
        return Answer(report.no_skill(reading.skills))
    for tool in (VIEW, BASH):
        if tool not in reading.tools:
            return Answer(report.no_tool(skill, tool))
    document = _document(skill, reading)
    if document is None:
        return Answer(f"I read the instructions of the {skill.name} skill.", VIEW, {"path": skill.location})
    if document.is_error:
        return Answer(report.failed(skill, f"view {skill.location}", document.text))
    return _with_instructions(skill, document, reading)


def summary(request: Request) -> Answer:
    """What stands for earlier turns: their first lines, since nothing here can tell what mattered in them."""
    content = request.messages[-1]["content"]
    text = content if isinstance(content, str) else "\n".join(block.get("text", "") for block in content)
    entries = _ENTRY.findall(text)
    lines = [
        f"- {role}: {' '.join(unescape(said).split())[:SUMMARY_LINE]}"
        for role, said in entries
        if said.strip()
    ]
    return Answer("Extract of the earlier turns, made without a language model:\n" + "\n".join(lines[-40:]))


def _with_instructions(skill: ListedSkill, document: Call, reading: Reading) -> Answer:
    filled = _planned(skill, document, reading)
    run = next((call for call in reversed(reading.calls) if call.name == BASH), None)
    if filled is None:
        return Answer(report.no_command(skill))
    if run is None:
        return _first_run(skill, filled, reading)
    command = str(run.input.get("command", ""))
    if run.is_error:
        return Answer(report.failed(skill, command, run.text))
    listing = next((call for call in reversed(reading.calls) if _views(call, OUTPUTS)), None)
    if listing is None:
        return Answer("I look at what it made.", VIEW, {"path": OUTPUTS})
    left = [file for file in reading.files if file not in filled.used]
    return Answer(report.done(skill, command, run.text, "" if listing.is_error else listing.text, left))


def _first_run(skill: ListedSkill, filled: Filled, reading: Reading) -> Answer:
    if filled.missing:
        return Answer(report.no_file(skill, filled, reading.files))
    if filled.unknown:
        return Answer(report.not_fillable(skill, filled))
    purpose = f"Run the documented command of the {skill.name} skill"
    return Answer("I run its documented command.", BASH, {"command": filled.command, "description": purpose})


def _document(skill: ListedSkill, reading: Reading) -> Call | None:
    """The latest look at the skill's SKILL.md; one that failed before this prompt is tried again."""
    for call in reversed(reading.calls):
        if _views(call, skill.location):
            return call
    return next(
        (call for call in reversed(reading.earlier) if _views(call, skill.location) and not call.is_error),
        None,
    )


def _views(call: Call, path: str) -> bool:
    return call.name == VIEW and call.input.get("path") == path and "view_range" not in call.input


def _planned(skill: ListedSkill, document: Call, reading: Reading) -> Filled | None:
    """The first documented command, unless it needs what only a language model could give."""
    first: Filled | None = None
    for line in documented_commands(plain_text(document.text))[:MOST_COMMANDS]:
        filled = fill(
            line, skill=skill.folder, files=reading.files, prompt=reading.words, kinds=reading.kinds
        )
        if not filled.unknown:
            return filled
        first = first or filled
    return first
