"""Short unified diffs for the view and for approvals."""

from __future__ import annotations

import difflib

from .bounds import clip_line
from .text import split_lines

#: Texts with more lines than this are not compared: the time grows with the square.
COMPARED_LINES = 3_000
#: Lines of a diff that are kept.
KEPT_LINES = 80
#: Lines of a diff line's text that are kept, in characters.
KEPT_WIDTH = 300
CONTEXT = 3


def whole_diff(before: str | None, after: str, path: str) -> str:
    """The difference between two texts of a file; ``before`` is None for a new file.

    Empty when nothing changed, or when comparing would take long.
    """
    old = split_lines(before) if before is not None else []
    new = split_lines(after)
    if max(len(old), len(new)) > COMPARED_LINES and before is not None:
        return ""
    name_before = "/dev/null" if before is None else f"a/{path}"
    return _bounded(list(difflib.unified_diff(old, new, name_before, f"b/{path}", lineterm="", n=CONTEXT)))


def edit_diff(before: str, start: int, end: int, replacement: str, path: str) -> str:
    """The difference that replacing ``before[start:end]`` makes; only its surroundings are looked at."""
    first = start
    for _ in range(CONTEXT + 1):
        first = before.rfind("\n", 0, max(first, 0))
        if first < 0:
            break
    first += 1
    last = end
    for _ in range(CONTEXT + 1):
        last = before.find("\n", last)
        if last < 0:
            last = len(before)
            break
        last += 1
    around = split_lines(before[first:last])
    edited = split_lines(before[first:start] + replacement + before[end:last])
    if max(len(around), len(edited)) > COMPARED_LINES:
        return ""
    offset = before.count("\n", 0, first)
    lines = list(difflib.unified_diff(around, edited, f"a/{path}", f"b/{path}", lineterm="", n=CONTEXT))
    return _bounded([_moved(line, offset) for line in lines])


def _moved(line: str, offset: int) -> str:
    """A hunk's header with its line numbers counted from the start of the file."""
    if not line.startswith("@@ "):
        return line
    ranges = []
    for part in line.split(" ")[1:3]:
        number, _, size = part[1:].partition(",")
        ranges.append(f"{part[0]}{int(number) + offset}" + (f",{size}" if size else ""))
    return f"@@ {' '.join(ranges)} @@"


def _bounded(lines: list[str]) -> str:
    kept = [clip_line(line, KEPT_WIDTH) for line in lines[:KEPT_LINES]]
    if len(lines) > KEPT_LINES:
        kept.append(f"[… {len(lines) - KEPT_LINES} more lines]")
    return "\n".join(kept)
