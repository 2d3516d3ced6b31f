"""Reading a command line strictly: either exactly the simple commands that bash would run, or nothing.

The answer is used to skip a question to the user, so it must never say less than bash does. Hence a list of
what is understood, not of what is dangerous: plain words, quotes without expansions, and the operators
``;``, ``&&``, ``||``, ``|`` and line feeds. Everything else (expansions, redirections, globs, braces,
background jobs, compound commands, assignments, comments) makes the line one that cannot be told.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

#: Longer lines are not read.
LONGEST = 10_000

_RESERVED = re.compile(
    r"if|then|elif|else|fi|time|for|in|until|while|do|done|case|esac|coproc|select|function|[{}!]|\[\[|\]\]"
)

# Builtins that run text as code, change what later words mean, or evaluate array subscripts. A line that
# holds one is not described by the words of its commands.
_OPAQUE = re.compile(
    r"[.:[]|alias|bg|bind|break|builtin|caller|command|compgen|complete|compopt|continue|declare|dirs|disown"
    r"|enable|eval|exec|exit|export|fc|fg|getopts|hash|history|jobs|kill|let|local|logout|mapfile|popd|printf"
    r"|pushd|read|readarray|readonly|return|set|shift|shopt|source|suspend|test|times|trap|type|typeset|ulimit"
    r"|umask|unalias|unset|wait"
)
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\[[^\]]*\])?\+?=")
# Unquoted, these are themselves wherever they stand in a word (a leading ~ and - aside).
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,+@%=")
_BLANK = frozenset(" \t")
_OPERATORS = frozenset(";&|\n")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff]")


class _UnclearError(Exception):
    """The line cannot be told."""


@dataclass(frozen=True, slots=True)
class Command:
    """One simple command of a line.

    Attributes:
        words: what bash would run.
        joined: the operator before it: ``;`` (a line feed too), ``&&``, ``||`` or ``|``; empty for the first.
        place: the folder it runs in, as ``cd`` named it; ``.`` is where the line began.
    """

    words: tuple[str, ...]
    joined: str = ""
    place: str = "."


def read_line(line: str) -> list[Command] | None:
    """The simple commands that bash would run at most, in order; None when that cannot be told.

    Commands that ``&&`` and ``||`` may skip are in the list. ``cd`` is understood at the beginning only, as
    ``cd FOLDER && …`` where all that follows depends on it; it is no command of the list then.
    """
    if len(line) > LONGEST or _CONTROL.search(line):
        return None
    try:
        commands = _Reader(line).commands()
    except _UnclearError:
        return None
    if not commands or not all(_is_plain(command.words[0]) for command in commands):
        return None
    if len(commands) > 1 and any(command.words[0] == "cd" for command in commands):
        return _moved(commands)
    return commands


def _moved(commands: list[Command]) -> list[Command] | None:
    """The commands after a leading ``cd``, with the place they run in."""
    first, rest = commands[0], commands[1:]
    if len(first.words) != 2 or first.words[1][:1] in ("", "-") or rest[0].joined != "&&":
        return None
    if any(command.words[0] == "cd" or command.joined not in ("&&", "|") for command in rest):
        return None
    return [replace(command, place=first.words[1]) for command in rest]


def _is_plain(name: str) -> bool:
    """Whether a command's name says what runs."""
    if not name or name.startswith("%"):  # %1 is a job
        return False
    return not (_RESERVED.fullmatch(name) or _OPAQUE.fullmatch(name) or _ASSIGNMENT.match(name))


class _Reader:
    """One pass over a line."""

    def __init__(self, line: str) -> None:
        self.line = line
        self.at = 0

    def commands(self) -> list[Command]:
        """All simple commands; raises when anything is not understood."""
        found: list[Command] = []
        words: list[str] = []
        joined = ""
        while self.at < len(self.line):
            character = self.line[self.at]
            if character in _BLANK:
                self.at += 1
            elif character not in _OPERATORS:
                words.append(self._word())
            elif words:
                found.append(Command(tuple(words), joined))
                words = []
                operator = self._operator()
                joined = ";" if operator == "\n" else operator
            elif self._operator() != "\n":
                raise _UnclearError
        if words:
            found.append(Command(tuple(words), joined))
        elif joined not in ("", ";"):
            raise _UnclearError  # a command should follow
        return found

    def _operator(self) -> str:
        for operator in ("&&", "||", ";", "|", "\n"):
            if self.line.startswith(operator, self.at):
                self.at += len(operator)
                # ";;", "|&", "||&", ";&" and the like are something else.
                if operator != "\n" and self.line[self.at : self.at + 1] in tuple("&|;"):
                    raise _UnclearError
                return operator
        raise _UnclearError

    def _word(self) -> str:
        parts: list[str] = []
        before = ""
        while self.at < len(self.line):
            character = self.line[self.at]
            if character in _BLANK or character in _OPERATORS:
                break
            if character == "'":
                parts.append(self._single())
                before = ""
            elif character == '"':
                parts.append(self._double())
                before = ""
            elif character == "\\":
                parts.append(self._escaped())
                before = ""
            elif character in _PLAIN or (character == "~" and before.isalnum()) or _is_letter(character):
                parts.append(character)
                before = character
                self.at += 1
            else:
                raise _UnclearError
        return "".join(parts)

    def _single(self) -> str:
        end = self.line.find("'", self.at + 1)
        if end < 0:
            raise _UnclearError
        text = self.line[self.at + 1 : end]
        self.at = end + 1
        return text

    def _double(self) -> str:
        parts: list[str] = []
        self.at += 1
        while self.at < len(self.line):
            character = self.line[self.at]
            self.at += 1
            if character == '"':
                return "".join(parts)
            if character in "$`":
                raise _UnclearError
            if character == "\\":
                following = self.line[self.at : self.at + 1]
                if following in ('"', "\\", "$", "`"):
                    parts.append(following)
                    self.at += 1
                    continue
                if following == "\n":
                    raise _UnclearError
            parts.append(character)
        raise _UnclearError

    def _escaped(self) -> str:
        following = self.line[self.at + 1 : self.at + 2]
        if not following or not following.isascii() or not following.isprintable():
            raise _UnclearError
        self.at += 2
        return following


def _is_letter(character: str) -> bool:
    return not character.isascii() and character.isalnum()
