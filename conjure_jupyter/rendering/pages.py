"""Sizes of pages, as they are written in a call."""

from __future__ import annotations

import re
from dataclasses import dataclass

_MM = 25.4
_NAMED = {
    "a3": (297.0, 420.0),
    "a4": (210.0, 297.0),
    "a5": (148.0, 210.0),
    "letter": (8.5 * _MM, 11 * _MM),
    "legal": (8.5 * _MM, 14 * _MM),
    "tabloid": (11 * _MM, 17 * _MM),
    "16:9": (40 / 3 * _MM, 7.5 * _MM),
    "4:3": (10 * _MM, 7.5 * _MM),
}
_UNITS = {"mm": 1.0, "cm": 10.0, "in": _MM, "pt": _MM / 72, "px": _MM / 96}
_MEASURED = re.compile(r"([\d.]{1,8})\s*(mm|cm|in|pt|px)?\s*[x*]\s*([\d.]{1,8})\s*(mm|cm|in|pt|px)")
#: Shortest and longest side, in millimetres: what PowerPoint takes.
_LEAST, _MOST = _MM, 56 * _MM

#: What may be written, for people.
EXAMPLES = "A4, A3, A5, letter, legal or tabloid, each also 'A4 landscape'; 16:9; 4:3; or '210mm x 100mm'"


@dataclass(frozen=True, slots=True)
class Page:
    """The size of a page or slide, in millimetres."""

    width: float
    height: float


#: Slides whose size nobody gave.
SLIDE = Page(*_NAMED["16:9"])


def parse_page(text: str) -> Page:
    """The size that a text names.

    Raises:
        ValueError: it names none; the message says what may be written.
    """
    words = text.strip().lower().split()
    if len(words) == 2 and words[1] in ("landscape", "portrait") and words[0] in _NAMED:
        sides = sorted(_NAMED[words[0]], reverse=words[1] == "landscape")
        return Page(*sides)
    if len(words) == 1 and words[0] in _NAMED:
        return Page(*_NAMED[words[0]])
    match = _MEASURED.fullmatch(" ".join(words))
    if match is None:
        raise ValueError(f"page_size {text[:40]!r} is not known; use {EXAMPLES}")
    last = _UNITS[match[4]]
    try:
        page = Page(float(match[1]) * _UNITS.get(match[2] or "", last), float(match[3]) * last)
    except ValueError:
        raise ValueError(f"page_size {text[:40]!r} has no two numbers; use {EXAMPLES}") from None
    if not all(_LEAST <= side <= _MOST for side in (page.width, page.height)):
        raise ValueError(f"page_size {text[:40]!r}: a side is {_LEAST:g} to {_MOST:g} mm long")
    return page
