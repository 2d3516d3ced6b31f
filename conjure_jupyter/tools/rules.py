"""Approval rules: which calls need no asking.

====================================  ==================================================================
``view``                              every call of the tool
``bash_tool(git status)``             exactly this command
``bash_tool(git status:*)``           this command with any further words; ``git status *`` is the same
``bash_tool(python scripts/*.py:*)``  in a word ``*`` and ``?`` stand for characters other than ``/``
``bash_tool(cd a && make:*)``         a command in another folder of the working directory
``create_file(outputs/**)``           paths in the working directory; ``**`` crosses folders
``view(/data/**)``                    absolute paths
``view(https://example.com/**)``      URLs; a rule for paths never speaks of one
====================================  ==================================================================

A bash rule speaks of one simple command. A line is allowed when each of its commands is, and only when the
line can be read exactly (see ``shell``). Names of other clients' tools are understood, because skills'
``allowed-tools`` use them.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from ..executors.contract import ExecutionContext
from .locations import in_workspace, normalize
from .references import is_url
from .shell import Command

#: Names that skills and users write, and our tool.
TOOL_NAMES = {
    "bash": "bash_tool",
    "bash_tool": "bash_tool",
    "read": "view",
    "view": "view",
    "glob": "view",
    "grep": "view",
    "ls": "view",
    "notebookread": "view",
    "write": "create_file",
    "create_file": "create_file",
    "edit": "str_replace",
    "multiedit": "str_replace",
    "str_replace": "str_replace",
    "inspect_variable": "inspect_variable",
    "stage_artifacts": "stage_artifacts",
    "return_artifacts": "return_artifacts",
    "read_artifact": "read_artifact",
    "render_file": "render_file",
}
_RULE = re.compile(r"\s*([A-Za-z_][\w.-]*)\s*(?:\((.*)\))?\s*", re.DOTALL)
#: URLs that a pattern can speak of: nothing beside the host can pass for a part of it, and no part of the
#: path leads elsewhere.
PLAIN_URL = re.compile(
    r"https?://[A-Za-z0-9.-]+(?::[0-9]+)?"
    r"(?:(?:/(?!(?:\.|%2[eE]){1,2}(?:[/?#]|$))[^\s\\/?#]*)+(?:[?#][^\s\\]*)?)?"
)
#: What a word of a suggested rule may hold: nothing that a rule or a shell reads as more than itself.
SAFE_WORD = re.compile(r"[A-Za-z0-9_@%+=,./:-]+")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        text: as it was written.
        tool: the tool it speaks of, None for one that does not exist here: it matches nothing.
        spec: what stands in the parentheses, None for every call of the tool.
    """

    text: str
    tool: str | None
    spec: str | None = None

    @property
    def every_call(self) -> bool:
        """Whether it matches whatever the tool is called with."""
        return self.spec is None

    def matches_command(self, command: Command, context: ExecutionContext) -> bool:
        """Whether a simple command is one that the rule speaks of, in the folder it speaks of.

        The folder counts because relative paths, and what a program finds beside it, depend on it.
        """
        if self.spec is None:
            return True
        place = in_workspace(command.place, context)
        pattern = _command_pattern(self.spec)
        return (
            place is not None and place == in_workspace(pattern.place, context) and pattern.matches(command)
        )

    def matches_path(self, path: str, context: ExecutionContext) -> bool:
        """Whether a path or URL is, whatever way it is written; ``..`` is taken away first."""
        if self.spec is None:
            return True
        if is_url(path):
            plain = is_url(self.spec) and PLAIN_URL.fullmatch(path) is not None
            return plain and _path_pattern(self.spec).fullmatch(path) is not None
        if self.spec.startswith("/"):
            return _path_pattern("/" + self.spec.lstrip("/")).fullmatch(normalize(path, context)) is not None
        relative = in_workspace(path, context)
        pattern = self.spec.removeprefix("./")
        return relative is not None and _path_pattern(pattern).fullmatch(relative) is not None


def parse_rule(text: str) -> Rule:
    """A rule from its text.

    Raises:
        ValueError: it has not the form ``tool`` or ``tool(what)``.
    """
    match = _RULE.fullmatch(text)
    if not match:
        raise ValueError(
            f"{text!r} is no rule; write 'view', 'bash_tool(git status:*)' or 'create_file(out/**)'"
        )
    tool = TOOL_NAMES.get(match[1].lower())
    spec = match[2].strip() if match[2] is not None else None
    if spec == "":
        raise ValueError(f"{text!r} allows nothing: the parentheses are empty")
    if spec in ("*", ":*", "**") and tool is not None:
        spec = None
    return Rule(text.strip(), tool, spec)


@dataclass(frozen=True, slots=True)
class _CommandPattern:
    """A pattern for each word; whether further words may follow; the folder it must run in."""

    words: tuple[re.Pattern[str], ...]
    open_end: bool
    place: str

    def matches(self, command: Command) -> bool:
        size = len(self.words)
        if not size or len(command.words) < size or (len(command.words) > size and not self.open_end):
            return False
        return all(
            pattern.fullmatch(word) is not None
            for pattern, word in zip(self.words, command.words, strict=False)
        )


@functools.lru_cache(maxsize=512)
def _command_pattern(spec: str) -> _CommandPattern:
    place = "."
    if moved := re.match(r"cd\s+([^\s*?&]+)\s+&&\s+(?=\S)", spec):
        place, spec = moved[1], spec[moved.end() :]
    open_end = spec.endswith((":*", " *"))
    words = (spec[:-2] if open_end else spec).split()
    return _CommandPattern(tuple(map(_word_pattern, words)), open_end, place)


@functools.lru_cache(maxsize=512)
def _word_pattern(word: str) -> re.Pattern[str]:
    parts = (
        "[^/]*" if character == "*" else "[^/]" if character == "?" else re.escape(character)
        for character in re.sub(r"\*+", "*", word)
    )
    return re.compile("".join(parts), re.DOTALL)


@functools.lru_cache(maxsize=512)
def _path_pattern(pattern: str) -> re.Pattern[str]:
    """``**/`` is any number of folders, ``**`` anything, ``*`` and ``?`` stay within a name."""
    parts = []
    for piece in re.split(r"(\*{2,}/|\*{2,}|\*|\?)", pattern):
        if piece.startswith("**"):
            parts.append("(?:[^/]+/)*" if piece.endswith("/") else ".+")
        else:
            parts.append({"*": "[^/]*", "?": "[^/]"}.get(piece) or re.escape(piece))
    return re.compile("".join(parts), re.DOTALL)
