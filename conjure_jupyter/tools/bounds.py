"""Keeping what Claude is sent within a length, and saying what was left out."""

from __future__ import annotations

#: Part of a shortened text that is its beginning; the end of an output tells more than the middle.
HEAD_SHARE = 0.6


def clip(text: str, limit: int) -> tuple[str, int]:
    """Head and tail of a long text, cut at line ends where those are near.

    Args:
        text: what to shorten.
        limit: characters to keep; the line that states the cut comes on top.

    Returns:
        The text and the number of characters left out.
    """
    if len(text) <= limit:
        return text, 0
    head_size = int(limit * HEAD_SHARE)
    tail_size = limit - head_size
    head, tail = text[:head_size], text[len(text) - tail_size :]
    line_end = head.rfind("\n")
    if line_end > head_size // 2:
        head = head[: line_end + 1]
    line_start = tail.find("\n") + 1
    if 0 < line_start < tail_size // 2:
        tail = tail[line_start:]
    cut = len(text) - len(head) - len(tail)
    before = "" if head.endswith("\n") or not head else "\n"
    return f"{head}{before}[… {cut:,} characters left out …]\n{tail}", cut


def clip_line(line: str, limit: int = 2_000) -> str:
    """The beginning of a very long line, with the number of characters cut."""
    return line if len(line) <= limit else f"{line[:limit]}… [+{len(line) - limit:,} characters]"
