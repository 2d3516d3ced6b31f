"""The str_replace tool: one edit of one place in a file, everything else byte for byte as it was."""

from __future__ import annotations

import re
from typing import Any

from ..errors import InvalidToolInputError, ToolError
from ..redaction import REDACTED
from ..wording import size_text
from . import schemas
from .bounds import clip, clip_line
from .diffs import edit_diff
from .locations import check_path, shown
from .text import SAMPLE, Encoding, detect, line_of, numbered, split_lines
from .tool import Outcome, ToolEnv

#: Larger files are edited with a program.
LARGEST = 20_000_000
#: Characters of the edited place that Claude is shown again.
SNIPPET = 2_000
_NUMBER_PREFIX = re.compile(r"^ {0,6}\d+\t", re.MULTILINE)


class StrReplaceTool:
    """Replaces a text that occurs exactly once; without ``new_str`` it is deleted."""

    name = "str_replace"
    read_only = False
    path_fields = ("path",)
    read_fields = ()
    artifact_fields = ()

    @property
    def definition(self) -> dict[str, Any]:
        """The source document's schema."""
        return schemas.str_replace_tool()

    async def run(self, arguments: dict[str, Any], env: ToolEnv) -> Outcome:
        """Edit the file.

        Raises:
            ToolError: the text occurs not once, or the file is no text or cannot be written.
        """
        path = check_path(self.name, arguments["path"])
        old, new = arguments["old_str"], arguments.get("new_str", "")
        if not old:
            raise InvalidToolInputError(
                self.name, "old_str is empty; send the text to replace, or use create_file", field="old_str"
            )
        if old == new:
            raise InvalidToolInputError(
                self.name, "old_str and new_str are the same: nothing to do", field="new_str"
            )
        text, encoding = await _read(path, env)
        old, new = match_line_ends(text, old, new)
        positions = find_all(text, old)
        if len(positions) != 1:
            name = shown(path, env.context)
            raise ToolError(_not_once(text, old, positions, name))
        start = positions[0]
        edited = text[:start] + new + text[start + len(old) :]
        try:
            data = encoding.encode(edited)
        except UnicodeEncodeError as error:
            raise ToolError(
                f"{path} is {encoding.codec}, which has no {error.object[error.start]!r}; use other "
                "characters, or convert the file to UTF-8 with bash_tool first"
            ) from None
        await env.executor.write(path, data, env.context)
        name = shown(path, env.context)
        meta = {"files": [name], "diff": edit_diff(text, start, start + len(old), new, name)}
        return Outcome(_report(edited, start, new, name), meta=meta)


async def _read(path: str, env: ToolEnv) -> tuple[str, Encoding]:
    stat = await env.executor.stat(path, env.context)
    if stat.kind == "dir":
        raise ToolError(f"{path} is a folder; send the path of a file")
    if stat.size > LARGEST:
        raise ToolError(f"{path} has {size_text(stat.size)}; edit it with a program, through bash_tool")
    data = await env.executor.read(path, env.context)
    encoding = detect(data[:SAMPLE], whole=len(data) <= SAMPLE)
    if encoding is None:
        raise ToolError(f"{path} is no text file; change it with a program, through bash_tool")
    try:
        return encoding.decode(data), encoding
    except UnicodeDecodeError as error:
        raise ToolError(
            f"{path} is no valid {encoding.codec}: {error.reason} at byte {error.start}"
        ) from None


def match_line_ends(text: str, old: str, new: str) -> tuple[str, str]:
    """Both texts with the file's own line ends, where the file has one kind and Claude sent another."""
    crlf = text.count("\r\n")
    if crlf and crlf == text.count("\n"):
        return _with_crlf(old), _with_crlf(new)
    if crlf and old not in text:
        return _with_crlf(old), _with_crlf(new)
    if not crlf and "\r\n" in old and old not in text:
        return old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    return old, new


def _with_crlf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def find_all(text: str, part: str) -> list[int]:
    """Where ``part`` begins in ``text``; overlapping places count, each would be an edit of its own."""
    positions: list[int] = []
    at = text.find(part)
    while at >= 0 and len(positions) < 1_000:
        positions.append(at)
        at = text.find(part, at + 1)
    return positions


def _not_once(text: str, old: str, positions: list[int], name: str) -> str:
    if positions:
        lines = [str(line_of(text, at)) for at in positions[:10]]
        more = ", …" if len(positions) > 10 else ""
        count = "1,000 or more" if len(positions) >= 1_000 else str(len(positions))
        return (
            f"old_str occurs {count} times in {name}, at lines {', '.join(lines)}{more}; it must occur "
            "once. Send more of the lines around the place you mean. Nothing was changed"
        )
    return f"old_str does not occur in {name}{_why_not(text, old)}. Nothing was changed"


def _why_not(text: str, old: str) -> str:
    """The likely reason that a text was not found, for the mistakes that are made most."""
    if REDACTED in old:
        return f": {REDACTED} stands for a secret that you are not shown; leave that part out of old_str"
    bare = _NUMBER_PREFIX.sub("", old)
    if bare != old and bare in text:
        return ": it holds the line numbers that view puts before each line; leave them out"
    wanted = [" ".join(line.split()) for line in split_lines(old.strip("\r\n"))]
    lines = split_lines(text)
    have = [" ".join(line.split()) for line in lines]
    if len(have) <= 200_000 and any(wanted):
        for at in _windows(have, wanted):
            shown_lines = "\n".join(clip_line(line, 200) for line in lines[at : at + len(wanted)][:12])
            place = f"lines {at + 1} to {at + len(wanted)}" if len(wanted) > 1 else f"line {at + 1}"
            return f", but {place} of it differ only in white space:\n{shown_lines}\n"
        first = next(line for line in wanted if line)
        if len(first) > 3 and first in have:
            return f"; its first line is line {have.index(first) + 1} of the file, what follows differs"
    return "; view the file and copy the text exactly"


def _windows(have: list[str], wanted: list[str]) -> list[int]:
    """Where the wanted lines stand in a row; the first place only."""
    first, size = wanted[0], len(wanted)
    for at, line in enumerate(have):
        if line == first and have[at : at + size] == wanted:
            return [at]
    return []


def _report(edited: str, start: int, new: str, name: str) -> str:
    """What the edited place looks like now, with a few lines around it."""
    first, last = line_of(edited, start), line_of(edited, start + len(new))
    top = max(1, first - 3)
    lines = [clip_line(line, 300) for line in split_lines(edited)[top - 1 : last + 3]]
    snippet, _ = clip(numbered(lines, top), SNIPPET)
    return f"Edited {name}. It now reads:\n{snippet}" if lines else f"Edited {name}. It is empty now"
