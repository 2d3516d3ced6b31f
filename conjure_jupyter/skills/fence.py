"""Where the frontmatter of a SKILL.md lies.

The file may begin with a byte order mark and blank lines, end its lines in any of the three ways, carry
blanks after a fence, and end at the closing fence. ``---`` counts only as a line of its own, so that it may
stand inside a description.
"""

from __future__ import annotations

import re
from typing import NamedTuple

#: Most bytes of a frontmatter block.
MAX_BYTES = 64 * 1024

_OPENING = re.compile(rb"(?:\xef\xbb\xbf)?+(?:[ \t]*+(?:\r\n?|\n))*+---[ \t]*+(?:\r\n?|\n)")
_CLOSING = re.compile(rb"[\r\n]---[ \t]*+(?:\r\n?|\n|\Z)")


class Split(NamedTuple):
    """A file cut at its fences.

    Attributes:
        block: the bytes between the fences.
        line: the line, from 1, that the block starts at.
        body: the offset of what follows the closing fence.
    """

    block: bytes
    line: int
    body: int


class FenceError(Exception):
    """There is no frontmatter, or it does not end; the message says which."""

    def __init__(self, code: str, message: str, advice: str) -> None:
        super().__init__(message)
        self.code = code
        self.advice = advice


def split(data: bytes, *, complete: bool = True) -> Split | None:
    """Cut ``data`` at the fences.

    Args:
        data: a file, or its beginning.
        complete: whether ``data`` ends where the file does.

    Returns:
        None when ``data`` is only a beginning, and more of it must be read to tell.

    Raises:
        FenceError: the file has no frontmatter, or it is not closed.
    """
    if data.startswith(b"---\n"):
        start = 4
    else:
        opening = _OPENING.match(data)
        if opening is None:
            if not complete and not data.strip(b"\xef\xbb\xbf \t\r\n-"):
                return None
            raise _no_frontmatter(data)
        start = opening.end()
    closing = _closing(data, start - 1)
    if closing is None or (closing.end() == len(data) and not complete):
        if complete:
            raise FenceError(
                "unclosed-frontmatter",
                "the frontmatter that opens with --- is not closed",
                "put a line with only --- after the last key",
            )
        return None
    line = 2 if start == 4 else _lines(data[:start]) + 1
    return Split(data[start : closing.start() + 1], line, closing.end())


def _closing(data: bytes, start: int) -> re.Match[bytes] | None:
    if b"\r" in data:
        return _CLOSING.search(data, start)
    while (start := data.find(b"\n---", start)) >= 0:  # several times faster than the search
        match = _CLOSING.match(data, start)
        if match is not None:
            return match
        start += 1
    return None


def _lines(data: bytes) -> int:
    return len(re.findall(rb"\r\n?|\n", data))


def _no_frontmatter(data: bytes) -> FenceError:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return FenceError("bad-encoding", "the file is UTF-16, not UTF-8", "save it again as UTF-8")
    if not data.strip():
        return FenceError(
            "no-frontmatter", "the file is empty", "begin it with name and description between --- lines"
        )
    return FenceError(
        "no-frontmatter",
        "the file does not begin with frontmatter",
        "begin it with a line ---, then name and description, then a line ---",
    )


def decode(data: bytes) -> tuple[str, int | None]:
    """Text with plain newlines, and the line, from 0, of the first byte that is not UTF-8 (None: all are)."""
    bad = None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        bad = _lines(data[: error.start])
        text = data.decode("utf-8", "replace")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text, bad
