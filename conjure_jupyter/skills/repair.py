"""A second try for frontmatter that is nearly YAML: text that its author forgot to quote.

``description: Use this when: the user asks`` is the most common mistake in real skills, and YAML refuses
it. The values of such lines are quoted; the rest of the block stays as it is.
"""

from __future__ import annotations

import re

_LINE = re.compile(r"(?P<indent> *)(?P<key>[A-Za-z][\w.-]*):[ \t]+(?P<value>\S.*)")
_TEXT_KEYS = frozenset({"name", "description", "license", "compatibility"})
#: What begins a value that is not plain text to YAML.
_INDICATORS = "[]{}\"'|>&*!%@`#,?-"


def quote_unquoted(block: str) -> str | None:
    """``block`` with the plain text of its lines quoted, or None when there is nothing to quote."""
    lines = block.split("\n")
    repaired: list[str] = []
    changed = False
    while lines:
        line = lines.pop(0)
        match = _LINE.fullmatch(line)
        if match is None or not _needs_quotes(match["key"], match["value"]):
            repaired.append(line)
            continue
        text = match["value"].strip()
        while lines and _continues(lines[0], len(match["indent"])):
            text += " " + lines.pop(0).strip()
        quoted = text.replace("'", "''")
        repaired.append(f"{match['indent']}{match['key']}: '{quoted}'")
        changed = True
    return "\n".join(repaired) if changed else None


def _needs_quotes(key: str, value: str) -> bool:
    value = value.strip()
    if value[0] in _INDICATORS:
        return key in _TEXT_KEYS and not _is_closed(value)
    return ": " in value or ":\t" in value or value.endswith(":")


def _is_closed(value: str) -> bool:
    """Whether YAML can take the value as it stands: a block scalar's header, or closed quotes or brackets."""
    if value[0] in "|>":
        return re.fullmatch(r"[|>][-+0-9]{0,2}(\s+#.*)?", value) is not None
    pairs = {'"': r'"(?:[^"\\]|\\.)*"', "'": r"'(?:[^']|'')*'", "[": r"\[[^\[\]]*\]", "{": r"\{[^{}]*\}"}
    pattern = pairs.get(value[0])
    return pattern is not None and re.fullmatch(pattern + r"(\s+#.*)?", value) is not None


def _continues(line: str, indent: int) -> bool:
    return bool(line.strip()) and len(line) - len(line.lstrip(" ")) > indent
