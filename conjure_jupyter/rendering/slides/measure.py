"""How much room text takes on a slide, estimated: whoever opens it has fonts of their own.

All lengths are points. The estimates are a little too large rather than too small, so that text stays on its
slide.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from .blocks import Style, Text

#: Size of the letters on a slide of 960 x 540 points.
SIZES: dict[Style, float] = {
    "text": 18,
    "bullet": 18,
    "number": 18,
    "heading": 20,
    "code": 12,
    "quote": 17,
    "caption": 13,
}
#: Space below a paragraph, as a part of its letters' size.
GAP = 0.4
LINE = 1.2
#: Indentation of each level, as a part of the letters' size on the first one.
INDENT = 1.25

_NARROW = frozenset("ijlIft.,;:'|!()[]{} -")
_BROAD = frozenset("mwMWQO@%&")


def size_of(text: Text, scale: float) -> float:
    """Size of a paragraph's letters; deeper list items are smaller."""
    size = SIZES[text.style]
    if text.style in ("bullet", "number", "text"):
        size -= min(text.level, 2) * 2
    return round(max(size * scale, 6.0) * 2) / 2


def indent_of(text: Text, scale: float) -> float:
    """How far a paragraph's text stands from the left edge."""
    levels = text.level + (1 if text.style in ("bullet", "number", "quote") else 0)
    return levels * INDENT * SIZES["text"] * scale


def letter(char: str, *, code: bool = False) -> float:
    """Width of a letter of size 1."""
    if unicodedata.east_asian_width(char) in "WF":
        return 1.0
    if code:
        return 0.62
    if char in _NARROW:
        return 0.31
    if char in _BROAD:
        return 0.88
    return 0.66 if char.isupper() else 0.53


def line_starts(text: Text, width: float, scale: float) -> list[int]:
    """Where each line of a paragraph begins, as positions in its plain text."""
    size = size_of(text, scale)
    room = max(width - indent_of(text, scale), size * 3)
    starts = [0]
    used, since_space, space = 0.0, 0.0, 0
    for position, (char, code) in enumerate(_letters(text)):
        if char == "\n":
            starts.append(position + 1)
            used = since_space = 0.0
            space = position + 1
            continue
        wide = letter(char, code=code) * size
        if used + wide > room and used:
            if char == " " and not code:
                continue  # it hangs over the edge
            cut = space if space > starts[-1] else position
            starts.append(cut)
            used = since_space if cut == space else 0.0
            if cut == position:
                since_space = 0.0
        used += wide
        since_space += wide
        if char == " ":
            space, since_space = position + 1, 0.0
    return starts


def height_of(text: Text, lines: int, scale: float) -> float:
    """Height of so many lines of a paragraph, with the space below it."""
    size = size_of(text, scale)
    return size * (lines * LINE + (0 if text.style == "code" else GAP))


def plain_lines(text: str, width: float, size: float) -> int:
    """Lines that a text takes, broken anywhere."""
    count = 0
    for part in text.split("\n"):
        total = sum(map(letter, part)) * size * 1.06
        count += max(1, -int(-total // max(width, size)))
    return count


def _letters(text: Text) -> Iterator[tuple[str, bool]]:
    for run in text.runs:
        code = run.code or text.style == "code"
        for char in run.text:
            yield char, code
