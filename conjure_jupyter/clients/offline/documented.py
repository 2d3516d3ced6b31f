"""The command lines that a SKILL.md documents."""

from __future__ import annotations

import re
from collections.abc import Iterator

#: Characters of a line beyond which it is taken for data, not for a command.
LONGEST = 2_000

_NUMBERED = re.compile(r"^\s*(\d+)(?:\t|\s?[|│→:]\s?)(.*)$")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})\s*([\w+-]*)")
_SHELLS = frozenset(
    {"", "bash", "sh", "shell", "zsh", "console", "terminal", "text", "txt", "plaintext", "shell-session"}
)
_INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_PROMPT = re.compile(r"^(?:\$|>|%)\s+|^[Uu]sage:\s*")
_QUOTED_OR_COMMENT = re.compile(r""""[^"]*"|'[^']*'|(\s#)""")
_CONTROL = re.compile(r"^(?:for|while|until|if|case|function|do|done|then|else|fi)\b|<<")

_INTERPRETERS = r"(?:python[\d.]*|bash|sh|zsh|node|ruby|perl|Rscript|deno run|bun|uv run|env)"
_SCRIPT = r"[\w./~${}<>-]*\.(?:py|sh|bash|js|mjs|ts|rb|pl|R)"
_RUNS_SCRIPT = re.compile(
    rf"(?:^|[\s;&|\"'])(?:{_INTERPRETERS}\s+(?:-\w+\s+)*[\"']?{_SCRIPT}|\./{_SCRIPT}|[\"']?[\w./~${{}}<>-]*\bscripts/[\w./-]+)"
    r"(?=[\s\"';|&]|$)"
)
_ASKS_FOR_HELP = re.compile(r"\s(?:--help|-h|--version)\s*$")


def plain_text(viewed: str) -> str:
    """A file as it is, from what the view tool shows of it: line numbers are taken off."""
    lines = viewed.split("\n")
    matches = [_NUMBERED.match(line) for line in lines]
    numbers = [int(match[1]) for match in matches if match]
    if not numbers or numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        return viewed
    # A line before the first number or after the last is the tool's own.
    return "\n".join(match[2] for match in matches if match)


def documented_commands(text: str) -> list[str]:
    """Command lines that run a bundled script: of fenced blocks, then of indented blocks, then inline.

    Args:
        text: a SKILL.md, whole or its body.
    """
    fenced, rest = _split(_body(text))
    found = [command for lines in fenced for command in _commands(lines)]
    indented = [line[4:] for line in rest if line.startswith("    ") and line.strip()]
    found += _commands(indented)
    # A path alone is a mention of a file, not a command line.
    inline = [
        span for line in rest if not line.startswith("    ") for span in _INLINE.findall(line) if " " in span
    ]
    found += [command for span in inline for command in _commands([span])]
    return list(dict.fromkeys(found))


def _body(text: str) -> str:
    match = re.match(r"\A\s*---[ \t]*\n.*?\n---[ \t]*(?:\n|\Z)", text.lstrip("\ufeff"), re.DOTALL)
    return text.lstrip("\ufeff")[match.end() :] if match else text


def _split(text: str) -> tuple[list[list[str]], list[str]]:
    """The lines of each fenced block of a shell, and the lines outside of all fenced blocks."""
    fenced: list[list[str]] = []
    rest: list[str] = []
    fence: str | None = None
    lines: list[str] | None = None
    for line in text.splitlines():
        match = _FENCE.match(line.expandtabs(4).lstrip() if fence is None else line.strip())
        if fence is None and match:
            fence = match[1]
            lines = [] if match[2].lower() in _SHELLS else None
            if lines is not None:
                fenced.append(lines)
        elif fence is not None and match and match[1].startswith(fence) and not match[2]:
            fence = None
        elif fence is None:
            rest.append(line)
        elif lines is not None:
            lines.append(line)
    return fenced, rest


def _commands(lines: list[str]) -> Iterator[str]:
    folder = ""
    for line in _joined(lines):
        if len(line) > LONGEST:
            continue
        command = _without_comment(_PROMPT.sub("", line.strip())).strip()
        if not command or command.startswith("#") or _CONTROL.search(command):
            continue
        if re.fullmatch(r"cd\s+[^;&|]+", command):
            folder = command
        elif _RUNS_SCRIPT.search(command) and not _ASKS_FOR_HELP.search(command):
            yield f"{folder} && {command}" if folder else command


def _without_comment(line: str) -> str:
    for match in _QUOTED_OR_COMMENT.finditer(line):
        if match[1]:
            return line[: match.start()]
    return line


def _joined(lines: list[str]) -> Iterator[str]:
    """Lines with those that a backslash continues made one."""
    held = ""
    for line in lines:
        if line.rstrip().endswith("\\"):
            held += line.rstrip()[:-1].rstrip() + " "
            continue
        yield held + line.strip() if held else line
        held = ""
    if held:
        yield held
