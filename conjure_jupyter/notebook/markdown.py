"""Claude's Markdown as HTML and as Markdown that no front end can be tricked by.

Outputs of a running kernel are trusted by front ends and not sanitised, so that everything is escaped here.
HTML in Markdown is shown as text. Links go to ``http``, ``https`` and ``mailto`` only. Images are named, not
loaded: an address chosen by the model would carry what it knows to whoever serves it. No class, style, id
or name is ever taken from the text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from .visible import visible

#: Most characters of an answer that are rendered; the whole of it is in ``Reply.text``.
LIMIT = 200_000

_LINK = re.compile(r"(?:https?://[^/?#\\\s]|mailto:[^\s])", re.IGNORECASE)

#: A link whose address can be nothing but an address: no quotes, entities, escapes or brackets.
_PLAIN_LINK = re.compile(r"\((?:https?://|mailto:)[A-Za-z0-9._~:/?#@!$*+,;=%-]+\)")


def html(text: str) -> str:
    """``text`` as HTML of a few elements without class, style, id or script."""
    rendered = _parser().render(visible(text[:LIMIT]))
    assert isinstance(rendered, str)  # noqa: S101  the renderer's type is shared with tree builders
    return rendered + _cut(text)


def markdown(text: str) -> str:
    """``text`` as Markdown that means the same and that is safe in a front end which allows HTML.

    Code fences at the top level are written anew, so that every parser agrees where they end; outside
    them tags become entities and only plain web links stay links.
    """
    text = visible(text[:LIMIT])
    lines = text.split("\n")
    parts: list[str] = []
    done = 0
    for token in _parser().parse(text):
        if token.type in {"fence", "code_block"} and token.level == 0 and token.map:
            start, end = token.map
            parts += [_defused("\n".join(lines[done:start])), _fence(token)]
            done = end
    parts.append(_defused("\n".join(lines[done:])))
    return "\n".join(part for part in parts if part) + _cut(text)


def literal(text: str) -> str:
    """One line of ``text`` in Markdown, with none of its characters meaning anything."""
    text = re.sub(r"([\\`*_\[\]()|~$>])", r"\\\1", text.replace("&", "&amp;").replace("<", "&lt;"))
    return re.sub(
        r"^([#+-])|^(\d+)(?=[.)])", lambda start: "\\" + start[0] if start[1] else start[0] + "\\", text
    )


def code(text: str) -> str:
    """One line of ``text`` as a code span; ``<`` is replaced, as parsers differ on where a span ends."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    ticks = "`" * (longest + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    text = text.replace("<", "\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}")
    return f"{ticks}{pad}{text}{pad}{ticks}" if text else ""


def _cut(text: str) -> str:
    return f"\n\n… {len(text) - LIMIT:,} characters left out …\n" if len(text) > LIMIT else ""


def _fence(token: Token) -> str:
    longest = max((len(run) for run in re.findall(r"`+", token.content)), default=0)
    ticks = "`" * max(3, longest + 1)
    language = re.match(r"[A-Za-z0-9_+-]{1,20}", token.info)
    # An info string keeps the line from being read as the end of a fence that some parser saw before it.
    return f"\n{ticks}{language[0] if language else 'text'}\n{token.content.rstrip()}\n{ticks}\n"


def _defused(text: str) -> str:
    text = text.replace("<", "&lt;").replace("]:", "]\\:").replace("![", "!\\[")
    return re.sub(
        r"\]\(([^)]*\)?)", lambda m: m[0] if _PLAIN_LINK.fullmatch(m[0][1:]) else "]\\(" + m[1], text
    )


class _Parser(MarkdownIt):
    """CommonMark with tables and strikethrough, without HTML, and with links to the web only."""

    def __init__(self) -> None:
        super().__init__("commonmark", {"html": False, "linkify": False, "typographer": False})
        self.enable(["table", "strikethrough"])
        for name, rule in _RULES.items():
            self.add_render_rule(name, rule)

    def validateLink(self, url: str) -> bool:  # noqa: N802  the library's hook
        return bool(_LINK.match(url))


@cache
def _parser() -> _Parser:
    return _Parser()


def _code(_: Any, tokens: Sequence[Token], index: int, *__: Any) -> str:
    return f"<pre><code>{escape(tokens[index].content)}</code></pre>\n"


def _image(_: Any, tokens: Sequence[Token], index: int, *__: Any) -> str:
    address = escape(str(tokens[index].attrs.get("src", "")))
    name = escape(tokens[index].content or "image")
    return f'<a href="{address}" rel="noopener noreferrer nofollow">{name}</a>'


def _link(_: Any, tokens: Sequence[Token], index: int, *__: Any) -> str:
    address = escape(str(tokens[index].attrs.get("href", "")))
    return f'<a href="{address}" rel="noopener noreferrer nofollow">'


def _table_cell(_: Any, tokens: Sequence[Token], index: int, *__: Any) -> str:
    side = str(tokens[index].attrs.get("style", "")).removeprefix("text-align:")
    align = f' align="{side}"' if side in {"left", "center", "right"} else ""
    return f"<{tokens[index].tag}{align}>"


_RULES = {
    "fence": _code,
    "code_block": _code,
    "image": _image,
    "link_open": _link,
    "th_open": _table_cell,
    "td_open": _table_cell,
}
