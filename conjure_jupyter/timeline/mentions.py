"""Artifacts and sources that a text names: ``<img src="turn_0003/files/x.png">``, ``as [[S:2]] shows``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from urllib.parse import unquote

from .grammar import PATH_LIMIT, TURN, from_physical, spans

_START = re.compile(rf"(?<![\w%@\\-])(?:{TURN})/(?:files|attachments|internal)/")
_CITED = re.compile(r"\[\[S:([0-9 ,:\u2013-]{1,400})\]\]")

#: What may stand before a path in the same word: it is then the same file of the working directory.
_PREFIX = re.compile(r"(?:\.{1,2}/)*|(?:[^:]*/)?work(?:space)?/")

#: What ends a path that nothing encloses, and what may enclose one.
_END = re.compile(r"[\s\"'`<>()\[\]{}|,;*\\]")
_CLOSING = {'"': '"', "'": "'", "`": "`", "<": ">", "(": ")", "[": "]"}
_WORD_START = re.compile(r"[\s\"'`<(\[{=,;:|>&]")
_LINE_END = re.compile(r"[\r\n\0]")
_PREFIX_LIMIT = 300

# A link's target in Markdown: without blanks, parentheses in pairs; a title may follow it.
_LINK = re.compile(r"[^\s()<>]++(?:\([^\s()<>]*+\)[^\s()<>]*+)*+")
_STOPS = ".,:;!?"
_TITLE = re.compile(r"\s+[\"'(]")
_PARENTHESIS = re.compile(r"[()]")


def mentions(text: str, known: Callable[[str], bool] | None = None) -> list[str]:
    """Physical paths that a text names (``turn_0003/files/x.png``), each once, in order.

    A path in quotes, angle brackets or parentheses may have blanks. In HTML and Markdown a path is a URL:
    it may be percent-encoded and have a query or fragment. As names may have ``#``, ``?`` and ``%`` as well,
    ``known`` decides.

    Args:
        text: HTML, Markdown, a command, prose.
        known: whether there is a file of that path. Of the readings of a mention the first known one is
            given; when none is, or without this, it is read as a URL.
    """
    found: dict[str, None] = {}
    for start in _START.finditer(text):
        if not _is_ours(text, start.start()):
            continue
        readings = [path for path in _readings(text, start.start(), start.end()) if from_physical(path)]
        if not readings:
            continue
        chosen = next((path for path in readings if known is not None and known(path)), None)
        found[readings[-1] if chosen is None else chosen] = None
    return list(found)


def source_mentions(text: str) -> list[int]:
    """Numbers of the sources that a text cites, each once, in order.

    A citation is ``[[S:3]]``, ``[[S:1,2]]`` or ``[[S:1-3]]``.
    What is no list of numbers, or a range of more than a thousand, is no citation.
    """
    found: dict[int, None] = {}
    for match in _CITED.finditer(text):
        numbers = match[1].replace(" ", "").replace("-", ":").replace("\u2013", ":")
        for span in spans(numbers) or ():
            found.update(dict.fromkeys(span))
    return list(found)


def _is_ours(text: str, start: int) -> bool:
    """Whether what stands before a path in its word leads to the working directory and not elsewhere."""
    before = text[max(0, start - _PREFIX_LIMIT) : start]
    word_start = max((match.end() for match in _WORD_START.finditer(before)), default=0)
    if not word_start and start > _PREFIX_LIMIT:
        return False
    return _PREFIX.fullmatch(before, word_start) is not None


def _readings(text: str, start: int, after: int) -> Iterator[str]:
    """A mention read as it stands, then as a URL; in its enclosing quotes first when it has some."""
    stop = min(len(text), after + 3 * PATH_LIMIT)  # percent-encoding takes three characters a byte
    opening = start
    while opening and text[opening - 1] in "./" and start - opening < _PREFIX_LIMIT:
        opening -= 1
    closing = _CLOSING.get(text[opening - 1]) if opening else None
    bare = _END.search(text, after, stop)
    word = text[start : bare.start() if bare else stop].rstrip(_STOPS)
    line = _LINE_END.search(text, after, stop)
    stop = line.start() if line else stop
    if closing == ")":
        end = _balanced(text, after, stop)
        whole = _TITLE.split(text[start:end], maxsplit=1)[0] if end >= 0 else word
        link = _LINK.match(text, start, stop)
        word = link[0].rstrip(_STOPS) if link else word
        yield from (whole, _decoded(whole), word, _decoded(word))
    else:
        end = text.find(closing, after, stop) if closing else -1
        whole = text[start:end] if end >= 0 else word
        yield from (whole, _decoded(whole))


def _balanced(text: str, start: int, stop: int) -> int:
    """Where the parenthesis that is open at ``start`` closes, -1 when it does not before ``stop``."""
    depth = 1
    for match in _PARENTHESIS.finditer(text, start, stop):
        depth += 1 if match[0] == "(" else -1
        if not depth:
            return match.start()
    return -1


def _decoded(path: str) -> str:
    return unquote(re.split(r"[?#]", path, maxsplit=1)[0])
