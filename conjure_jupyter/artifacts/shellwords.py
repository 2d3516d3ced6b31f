"""The plain words of a bash command: those that the shell takes as they are written."""

from __future__ import annotations

import re
from collections.abc import Iterator

#: A word, with where it begins and ends.
Word = tuple[int, int, str]

_BREAKS = frozenset(" \t\n;&|<>()")
_HEREDOC = re.compile(r"<<(-?)[ \t]*((?:'[^'\n]*'|\"[^\"\n]*\"|\\.|[^\s;&|<>()'\"\\])+)")
_UNQUOTE = re.compile(r"['\"\\]")


def plain_words(command: str) -> Iterator[Word]:
    """Whole words without any quoting, expansion or substitution in them.

    Left out are words in quotes, comments, here-documents and here-strings, ``${…}``, and words that touch a
    quoted or substituted part. Where bash would complain, less is found rather than more.
    """
    return iter(_Scanner(command).scan())


class _Scanner:
    def __init__(self, command: str) -> None:
        self._text = command
        self._at = 0
        self._start: int | None = None
        self._tainted = False
        self._pending: list[tuple[str, bool]] = []
        self._found: list[Word] = []

    def scan(self) -> list[Word]:
        text = self._text
        while self._at < len(text):
            char = text[self._at]
            if char in _BREAKS:
                self._break(char)
            elif char == "#" and self._start is None and not self._tainted:
                self._to(text.find("\n", self._at))
            elif char == "\\":
                self._escape()
            elif char in "'\"`" or text.startswith(("$'", "${"), self._at):
                self._taint(self._after_quote())
            else:
                if char in "$*?[]{}!~":
                    self._tainted = True
                if self._start is None:
                    self._start = self._at
                self._at += 1
        self._end_word()
        return self._found

    def _break(self, char: str) -> None:
        text = self._text
        if char == "(":
            self._tainted = self._tainted or self._start is not None  # f(, $( and the like
        self._end_word()
        heredoc = _HEREDOC.match(text, self._at) if char == "<" else None
        if text.startswith("<<<", self._at):
            self._at += 3
            self._tainted = True  # a here-string is text, not a path
            while self._at < len(text) and text[self._at] in " \t":
                self._at += 1
        elif heredoc is not None:
            self._pending.append((_UNQUOTE.sub("", heredoc[2]), bool(heredoc[1])))
            self._at = heredoc.end()
        else:
            self._at += 1
            self._tainted = char == ")"  # what follows at once belongs to the substitution
            if char == "\n":
                self._skip_heredocs()

    def _end_word(self) -> None:
        if self._start is not None and not self._tainted:
            self._found.append((self._start, self._at, self._text[self._start : self._at]))
        self._start = None
        self._tainted = False

    def _escape(self) -> None:
        if self._text.startswith("\\\n", self._at) and self._start is None:
            self._at += 2  # the line goes on
        else:
            self._taint(self._at + 2)

    def _taint(self, end: int) -> None:
        if self._start is None:
            self._start = self._at
        self._tainted = True
        self._at = min(end, len(self._text))

    def _to(self, end: int) -> None:
        self._at = len(self._text) if end < 0 else end

    def _after_quote(self) -> int:
        """Where a quoted or braced part ends; the end of the text when it is never closed."""
        text, at = self._text, self._at
        opening = text[at : at + 2] if text[at] == "$" else text[at]
        at += len(opening)
        closing = {"${": "}", "$'": "'"}.get(opening, opening)
        while at < len(text):
            if text[at] == "\\" and opening != "'":
                at += 2
            elif text[at] == closing:
                return at + 1
            else:
                at += 1
        return len(text)

    def _skip_heredocs(self) -> None:
        for delimiter, tabs in self._pending:
            while self._at < len(self._text):
                end = self._text.find("\n", self._at)
                end = len(self._text) if end < 0 else end
                line = self._text[self._at : end]
                self._at = min(end + 1, len(self._text))
                if (line.lstrip("\t") if tabs else line) == delimiter:
                    break
        self._pending.clear()
