"""JSON that can stand in a prompt: one line, nothing in it opens or closes a tag or hides words.

Names come from files, archives and URLs that others made. Escapes of JSON keep them exact.
"""

from __future__ import annotations

import json
import re
from typing import Any

# Letters and marks that are drawn as nothing but count as printable: fillers, joiners, variation selectors.
_MARKUP = re.compile("[<>&\x7f]")
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
)
_encode = json.JSONEncoder(ensure_ascii=False, separators=(", ", ": ")).encode


def safe_json(value: Any) -> str:
    """``value`` as JSON on one line of visible characters, without ``<``, ``>`` and ``&``.

    Raises:
        TypeError, ValueError, RecursionError: it has no JSON form.
    """
    text = _encode(value)
    if any(char in text for char in "<>&\x7f"):
        text = _MARKUP.sub(_escaped, text)
    if text.isascii():
        return text
    if not text.isprintable():
        text = "".join(char if char.isprintable() else _units(char) for char in text)
    return _INVISIBLE.sub(_escaped, text)


def readable_json(value: Any) -> str:
    """``value`` as JSON on one line, for text that is escaped or set apart where it is used.

    Raises:
        TypeError, ValueError, RecursionError: it has no JSON form.
    """
    return valid(_encode(value))


def valid(text: str) -> str:
    """``text`` with a mark for each half of a surrogate pair, which no request can hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _escaped(match: re.Match[str]) -> str:
    return _units(match[0])


def _units(char: str) -> str:
    """A character as JSON escapes it: by its one or two units of UTF-16."""
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
