"""A call in one line, safe to show: nothing in it can move the cursor, turn the text round or hide a part."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from ..types import ToolCall
from ..wording import size_text
from .text import split_lines

#: Characters of a summary.
LONGEST = 200
#: Characters that are looked at; a command may have megabytes.
READ = 4_000
_SPACE = re.compile(r"[^\S\n]{2,}|[^\S\n ]")


def summary(call: ToolCall) -> str:
    """What a call would do. A long one keeps its beginning and its end, and says how much is left out."""
    arguments: dict[str, Any] = call.input if isinstance(call.input, dict) else {}
    path = arguments.get("path")
    if call.name == "bash_tool":
        text = str(arguments.get("command", ""))
    elif call.name == "create_file":
        body = arguments.get("file_text")
        facts = f"{len(split_lines(body)):,} lines, {size_text(len(body))}" if isinstance(body, str) else "?"
        return f"{safe_line(str(path), LONGEST - 40)} ({facts})"
    elif call.name in ("view", "read_artifact") and isinstance(lines := arguments.get("view_range"), list):
        text = f"{path} lines {'-'.join(map(str, lines[:2]))}"
    elif call.name in ("view", "str_replace", "read_artifact"):
        text = str(path)
    elif call.name == "inspect_variable":
        text = str(arguments.get("name") or "all variables")
    elif call.name == "stage_artifacts":
        text = (
            f"{_listed(arguments.get('artifact_names'))} → {arguments.get('destination_path') or 'uploads/'}"
        )
    elif call.name == "return_artifacts":
        names = arguments.get("artifact_names")
        text = _listed(arguments.get("file_paths")) + (f" as {_listed(names)}" if names else "")
    elif call.name == "render_file":
        text = f"{path or arguments.get('format') or 'document'} → {arguments.get('output')}"
    else:
        text = f"{call.name} {arguments}"
    return safe_line(text, LONGEST)


def _listed(names: Any) -> str:
    return ", ".join(map(str, names)) if isinstance(names, list) else str(names)


def safe_line(text: str, limit: int = LONGEST) -> str:
    """One line: line feeds become ``⏎``, runs of white space one space, what cannot be seen is escaped."""
    whole = len(text)
    if whole > READ:
        text = text[: READ // 2] + "\n" + text[-READ // 2 :]
    text = _SPACE.sub(" ", text.strip())
    text = re.sub(r" *\n[ \n]*", " ⏎ ", text)
    text = "".join(map(_visible, text))
    if len(text) <= limit and whole <= READ:
        return text
    head, tail = limit * 3 // 5, limit // 5
    return f"{text[:head]} […{max(whole, len(text)) - head - tail} more…] {text[-tail:]}"


def _visible(character: str) -> str:
    """The character, or its escape when it is a control, format, surrogate or unassigned one."""
    if character == " " or (character.isprintable() and unicodedata.category(character)[0] != "M"):
        return character
    if unicodedata.category(character)[0] == "M" and unicodedata.combining(character):
        return character  # an accent; a run of them is bounded with the line
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
