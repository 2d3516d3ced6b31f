"""The blocks of a document, read from its tree in order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from xml.etree.ElementTree import Element

from .blocks import Block, Break, Heading, Run, Style, Text
from .pictures import Pictures
from .tables import table

_SKIPPED = frozenset(
    {
        "audio",
        "canvas",
        "datalist",
        "embed",
        "head",
        "link",
        "map",
        "math",
        "meta",
        "object",
        "select",
        "style",
    }
    | {"textarea", "title", "video"}
)
_INLINE = frozenset(
    {
        "a",
        "abbr",
        "b",
        "bdi",
        "bdo",
        "big",
        "br",
        "cite",
        "code",
        "data",
        "del",
        "dfn",
        "em",
        "font",
        "i",
        "ins",
    }
    | {
        "kbd",
        "label",
        "mark",
        "q",
        "ruby",
        "s",
        "samp",
        "small",
        "span",
        "strike",
        "strong",
        "sub",
        "sup",
        "time",
    }
    | {"tt", "u", "var", "wbr"}
)
_BOLD, _ITALIC = frozenset({"b", "strong"}), frozenset({"i", "em", "cite", "dfn", "var"})
_CODE, _STRUCK = frozenset({"code", "kbd", "samp", "tt"}), frozenset({"del", "s", "strike"})
_SVG = "{http://www.w3.org/2000/svg}svg"
_DEEPEST = 8


def blocks(body: Element, pictures: Pictures) -> Iterator[Block]:
    """All blocks of a document."""
    yield from _Reader(pictures).container(body, _Place())


class _Place:
    """Where in the document the reader is: what a paragraph is there, and how deep in lists."""

    def __init__(self, style: Style = "text", level: int = 0, number: int = 1) -> None:
        self.style, self.level, self.number = style, level, number

    def used(self) -> None:
        """The mark of a list's item belongs to its first paragraph; what follows stands under it."""
        if self.style in ("bullet", "number"):
            self.style, self.level = "text", self.level + 1


class _Reader:
    def __init__(self, pictures: Pictures) -> None:
        self._pictures = pictures

    def container(self, element: Element, place: _Place) -> Iterator[Block]:
        """The blocks in an element, loose text between them included."""
        loose: list[Run | Block] = [*_text(element.text, Run(""))]
        for child in element:
            if _is_inline(child):
                loose += self._inline(child, Run(""))
            else:
                yield from _paragraphs(loose, place)
                loose = []
                yield from self._block(child, place)
            loose += _text(child.tail, Run(""))
        yield from _paragraphs(loose, place)

    def _block(self, element: Element, place: _Place) -> Iterator[Block]:  # noqa: C901, PLR0912  a table of tags
        tag = element.tag
        if not isinstance(tag, str) or tag in _SKIPPED:
            return
        match tag:
            case "h1" | "h2":
                yield from self._heading(element, int(tag[1]))
            case "h3" | "h4" | "h5" | "h6" | "dt" | "summary" | "legend":
                yield from _paragraphs(self._children(element, Run("")), _Place("heading", place.level))
            case "ul" | "ol" | "menu":
                yield from self._list(element, place)
            case "pre":
                text = "".join(element.itertext()).strip("\n").expandtabs(4)
                if text:
                    yield Text((Run(text, code=True),), "code", place.level)
            case "table":
                yield table(element)
                yield from self._pictures_in(element)
            case "hr":
                yield Break()
            case "blockquote":
                yield from self.container(element, _Place("quote", place.level))
            case "figcaption" | "caption":
                yield from self.container(element, _Place("caption"))
            case "dd":
                yield from self.container(element, _Place("text", place.level + 1))
            case _ if tag == _SVG:
                picture = self._pictures.drawn(element)
                if picture is not None:
                    yield picture
            case _:
                yield from self.container(element, place)

    def _heading(self, element: Element, level: int) -> Iterator[Block]:
        parts = self._children(element, Run(""))
        text = "".join(part.text for part in parts if isinstance(part, Run) and not part.raised)
        if text.strip():
            yield Heading(" ".join(text.split()), level)
        yield from (part for part in parts if not isinstance(part, Run))

    def _list(self, element: Element, place: _Place) -> Iterator[Block]:
        level = min(place.level, _DEEPEST)
        number = _whole(element.get("start"), 1)
        for item in element:
            if item.tag != "li":
                # Lists right inside a list are not valid, and common.
                yield from self._block(item, _Place("text", level + 1))
                continue
            number = _whole(item.get("value"), number)
            mark: Style = "number" if element.tag == "ol" else "bullet"
            yield from self.container(item, _Place(mark, level, number))
            number += 1

    def _pictures_in(self, element: Element) -> Iterator[Block]:
        """The images of a table's cells, which hold text alone, follow it."""
        for image in element.iter("img"):
            picture = self._pictures.image(image)
            if picture is not None:
                yield picture

    def _children(self, element: Element, look: Run) -> list[Run | Block]:
        found: list[Run | Block] = [*_text(element.text, look)]
        for child in element:
            found += self._inline(child, look)
            found += _text(child.tail, look)
        return found

    def _inline(self, element: Element, look: Run) -> list[Run | Block]:
        tag = element.tag
        if not isinstance(tag, str) or tag in _SKIPPED:
            return []
        if tag == "br":
            return [replace(look, text="\n")]
        if tag == "img":
            picture = self._pictures.image(element)
            return [] if picture is None else [picture]
        if tag == _SVG:
            picture = self._pictures.drawn(element)
            return [] if picture is None else [picture]
        return self._children(element, _within(look, element))


def _within(look: Run, element: Element) -> Run:
    """The look of text in an element."""
    tag, href = element.tag, element.get("href") or ""
    return replace(
        look,
        bold=look.bold or tag in _BOLD,
        italic=look.italic or tag in _ITALIC,
        code=look.code or tag in _CODE,
        struck=look.struck or tag in _STRUCK,
        raised=look.raised or tag == "sup",
        link=href if tag == "a" and href and not href.startswith("#") else look.link,
    )


def _is_inline(element: Element) -> bool:
    tag = element.tag
    if not isinstance(tag, str):
        return False
    if tag == "img":
        return True
    # A link or span around blocks is read as they are.
    return tag in _INLINE and all(_is_inline(child) or not isinstance(child.tag, str) for child in element)


def _text(text: str | None, look: Run) -> list[Run]:
    return [replace(look, text=re.sub(r"[ \t\r\n\f]+", " ", text))] if text else []


def _paragraphs(parts: list[Run | Block], place: _Place) -> Iterator[Block]:
    """Paragraphs of a line of runs, with the pictures in it between them."""
    runs: list[Run] = []
    for part in [*parts, None]:
        if isinstance(part, Run):
            runs.append(part)
            continue
        tidy = _tidy(runs)
        if tidy:
            yield Text(tidy, place.style, place.level, place.number)
            place.used()
        runs = []
        if part is not None:
            yield part


def _tidy(runs: list[Run]) -> tuple[Run, ...]:
    """Runs without white space at the ends of lines and twice in a row."""
    tidy: list[Run] = []
    gap = True
    for run in runs:
        text = run.text.lstrip(" ") if gap else run.text
        if run.text == "\n" and tidy:
            tidy[-1] = replace(tidy[-1], text=tidy[-1].text.rstrip(" "))
        if text:
            tidy.append(replace(run, text=text))
            gap = text[-1] in " \n"
    while tidy and not tidy[-1].text.rstrip():
        tidy.pop()
    if tidy:
        tidy[-1] = replace(tidy[-1], text=tidy[-1].text.rstrip())
    return tuple(tidy)


def _whole(text: str | None, otherwise: int) -> int:
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 6 else otherwise
