"""The frontmatter that nearly every skill has, read without a YAML parser: ten times faster.

``key: text`` lines, with one level of ``key: text`` or ``- text`` lines under a key. Whatever could mean
anything else to YAML is left to it: for any block this gives exactly what ``safe_yaml`` gives, or nothing.
"""

from __future__ import annotations

import functools
from typing import Any

#: Longest key; YAML gives up on keys of more than 1024 characters.
_MAX_KEY = 64


def load_simple(block: str) -> dict[str, Any] | None:
    """The mapping of a block, or None when only a YAML parser can tell.

    Args:
        block: the text between the fences, newlines plain.
    """
    lines = block.split("\n")
    if not "".join(lines).isprintable():  # tabs, controls, other line breaks, byte order marks
        return None
    values: dict[str, Any] = {}
    open_key = ""
    indent = -1
    for line in lines:
        if not line or line.isspace():
            continue
        if line[0] == " " or (line[0] == "-" and open_key):
            if not open_key or (indent := _add_nested(values, open_key, line, indent)) < 0:
                return None
            continue
        key, text = _key_and_text(line)
        if text is None or key in values:
            return None
        values[key] = text
        open_key, indent = "" if text or line.rstrip(" ")[-1] != ":" else key, -1
    return values


def _key_and_text(line: str) -> tuple[str, str | None]:
    """A line's key and text; the text is None when the line is not simple."""
    key, colon, text = line.partition(":")
    if not colon or not _is_key(key):
        return key, None
    if text[:1] == " ":
        text = text.strip(" ")
        return key, _text(text) if text else ""
    return key, None if text else ""


@functools.lru_cache(maxsize=1024)
def _is_key(key: str) -> bool:
    return (
        len(key) <= _MAX_KEY
        and key.isascii()
        and key[:1].isalpha()
        and key.replace("-", "").replace("_", "").replace(".", "").isalnum()
    )


def _text(text: str) -> str | None:
    """The text of a value without blanks around it; None when YAML could read something else into it."""
    first = text[:1]
    if first.isalnum() or first in {"(", "/", ".", "_", "$"}:
        return None if ": " in text or " #" in text or text[-1] == ":" else text
    if first in {'"', "'"} and len(text) > 1 and text[-1] == first:
        inner = text[1:-1]
        return None if first in inner or "\\" in inner else inner
    return None


def _add_nested(values: dict[str, Any], open_key: str, line: str, indent: int) -> int:
    """Add a line to the mapping or list under a key; its indentation, or -1 when it is not simple.

    Args:
        indent: that of the lines before it under the same key; -1 for the first.
    """
    bare = line.lstrip(" ")
    here = len(line) - len(bare)
    item = bare.startswith("- ")
    if indent < 0:
        values[open_key] = [] if item else {}
    container = values[open_key]
    if indent not in {-1, here} or isinstance(container, list) is not item:
        return -1
    if item:
        text = _text(bare[2:].strip(" "))
        if text is None:
            return -1
        container.append(text)
        return here
    key, text = _key_and_text(bare)
    if not text or key in container:
        return -1
    container[key] = text
    return here
