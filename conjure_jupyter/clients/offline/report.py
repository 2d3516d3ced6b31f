"""The words of the offline client: what it did, what came of it, and what it is not."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .filling import Filled
from .reading import ListedSkill

#: Lines and characters of a command's output that a report shows.
SHOWN_LINES = 80
SHOWN_CHARACTERS = 6_000

#: Files and skills that a report names.
SHOWN_NAMES = 20

NO_MODEL = (
    "*Offline: no language model read this prompt. Skills are matched by their descriptions, and their "
    "documented commands run as they stand.*"
)
HOW_TO_GO_LIVE = (
    "For an answer by Claude, set `ANTHROPIC_API_KEY` (or another credential of Anthropic's SDK) and "
    "restart the kernel."
)

_FILE_ROW = re.compile(r"^ *(\d[\d.]* [KMGT]?B)  (.+)$", re.MULTILINE)
#: What is different in every run and says nothing: a time, the session's folder.
_VOLATILE = re.compile(r"\n\[took \d+ s\]\s*$|(?:/[^\s\"']{0,300})?/sessions/[\w.-]{1,80}/work/")


def done(skill: ListedSkill, command: str, output: str, listing: str, left: Sequence[str]) -> str:
    """What was run, what it printed, and what it made."""
    output = _VOLATILE.sub("", output)
    parts = [
        f"I ran the command that the **{skill.name}** skill documents:",
        _fenced(command, "bash"),
        "It printed nothing."
        if output.strip() in ("", "(no output)")
        else "It printed:\n\n" + _fenced(bounded(output)),
    ]
    made = _FILE_ROW.findall(listing)
    if made:
        rows = "\n".join(f"- {_code('outputs/' + path)} ({size})" for size, path in made[:SHOWN_NAMES])
        more = f"\n- and {len(made) - SHOWN_NAMES} more" if len(made) > SHOWN_NAMES else ""
        parts.append(f"`outputs/` now holds:\n\n{rows}{more}")
    else:
        parts.append("`outputs/` holds no files.")
    if left:
        parts.append(
            "The command takes no more files, so these were not used: " + ", ".join(map(_code, left)) + "."
        )
    return _signed(*parts)


def failed(skill: ListedSkill, command: str, output: str) -> str:
    """A call that did not succeed."""
    return _signed(
        f"The command that the **{skill.name}** skill documents did not succeed:",
        _fenced(command, "bash"),
        _fenced(bounded(_VOLATILE.sub("", output))),
        "I cannot tell why, and I try nothing else.",
    )


def no_skill(skills: Sequence[ListedSkill]) -> str:
    """No skill fits the prompt."""
    if not skills:
        return _signed("No skill is loaded, so there is nothing I can run. `%skills_load PATH` loads some.")
    rows = [f"- **{skill.name}**: {_sentence(skill.description)}" for skill in skills[:SHOWN_NAMES]]
    if len(skills) > SHOWN_NAMES:
        rows.append(f"- and {len(skills) - SHOWN_NAMES} more")
    return _signed(
        "No loaded skill fits this prompt by its words. Name one of these to use it:", "\n".join(rows)
    )


def no_tool(skill: ListedSkill, tool: str) -> str:
    """The request offers no tool that would be needed."""
    return _signed(
        f"The **{skill.name}** skill fits, but the `{tool}` tool is not available, so I cannot run it."
    )


def no_command(skill: ListedSkill) -> str:
    """SKILL.md documents no command to run."""
    return _signed(
        f"The **{skill.name}** skill fits. Its instructions ({_code(skill.location)}) document no command "
        "line that runs a bundled script, and following instructions in prose takes a language model."
    )


def no_file(skill: ListedSkill, filled: Filled, files: Sequence[str]) -> str:
    """The command needs more files than there are."""
    need = ", ".join(map(_code, filled.missing))
    have = f"Only {', '.join(map(_code, files))} is at hand" if files else "The prompt names no file"
    return _signed(
        f"The **{skill.name}** skill fits, but its command needs a file for {need}:",
        _fenced(filled.command, "bash"),
        f"{have}. Attach one by naming it, such as `file://data.csv`.",
    )


def not_fillable(skill: ListedSkill, filled: Filled) -> str:
    """The command needs a value that only understanding the prompt would give."""
    need = ", ".join(map(_code, filled.unknown))
    return _signed(
        f"The **{skill.name}** skill fits, but its command needs {need}, which takes a language model "
        "to choose:",
        _fenced(filled.command, "bash"),
    )


def bounded(text: str) -> str:
    """The head and tail of a text, with a line that says how much is left out."""
    lines = [line if len(line) <= 500 else line[:499] + "…" for line in text.strip("\n").split("\n")]
    if len(lines) > SHOWN_LINES:
        head, tail = SHOWN_LINES * 3 // 4, SHOWN_LINES // 4
        lines = [*lines[:head], f"[… {len(lines) - head - tail} lines left out …]", *lines[-tail:]]
    text = "\n".join(lines)
    if len(text) > SHOWN_CHARACTERS:
        head, tail = SHOWN_CHARACTERS * 3 // 4, SHOWN_CHARACTERS // 4
        text = f"{text[:head]}\n[… {len(text) - head - tail} characters left out …]\n{text[-tail:]}"
    return text


def _signed(*parts: str) -> str:
    return "\n\n".join([*parts, f"{NO_MODEL} {HOW_TO_GO_LIVE}"])


def _fenced(text: str, language: str = "") -> str:
    """A code block that nothing in ``text`` can close."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _code(text: str) -> str:
    """An inline code span; a path's own backticks cannot close it."""
    ticks = "``" if "`" in text else "`"
    pad = " " if "`" in text else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def _sentence(text: str) -> str:
    """The first sentence, at most 160 characters of it."""
    first = re.split(r"(?<=[.!?])\s", text, maxsplit=1)[0]
    return first if len(first) <= 160 else first[:159].rstrip() + "…"
