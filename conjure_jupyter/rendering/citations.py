"""Citations: ``[[S:3]]`` in a text becomes a numbered link to a list of sources at its end.

In an attribute or a stylesheet it stands for the file of the source instead. Numbers are those of the
session's sources, so that ``[3]`` means the same in every document and in the conversation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import unquote
from xml.etree.ElementTree import Element, SubElement

from ..timeline.mentions import source_mentions
from .contract import CitedSource

#: Elements whose text is shown or read as it stands.
_VERBATIM = frozenset({"code", "kbd", "pre", "samp", "script", "style", "textarea", "title"})
_CITED = re.compile(r"\[\[S:[^\[\]]{1,400}\]\]")
_IN_CSS = re.compile(r"""url\(\s*["']?(\[\[S:[^\[\]]{1,100}\]\])["']?\s*\)""")
#: Citations of one mark, such as [[S:1-900]], that are written out.
_MOST = 50


def source_url(number: int) -> str:
    """What stands for a source's file wherever a URL is expected; the parent knows which file it is."""
    return f"source:{number}"


def cited_number(value: str) -> int | None:
    """The source that an attribute names, when a citation is all that it holds."""
    text = unquote(value).strip()
    if _CITED.fullmatch(text) is None:
        return None
    return next(iter(source_mentions(text)), None)


def in_css(text: str) -> str:
    """A stylesheet whose ``url([[S:3]])`` are the sources' files."""

    def replaced(match: re.Match[str]) -> str:
        number = cited_number(match[1])
        return match[0] if number is None else f'url("{source_url(number)}")'

    return _IN_CSS.sub(replaced, text)


def cite(root: Element, sources: Mapping[int, CitedSource]) -> None:
    """Turn the citations in the text of a document into links, and list their sources at its end."""
    cited: dict[int, None] = {}
    for element in _cited_elements(root):
        for index in range(len(element) - 1, -1, -1):
            text, marks = _marked(element[index].tail or "", sources, cited)
            if marks:
                element[index].tail = text
                element[index + 1 : index + 1] = marks
        if isinstance(element.tag, str) and element.tag not in _VERBATIM:
            text, marks = _marked(element.text or "", sources, cited)
            if marks:
                element.text = text
                element[0:0] = marks
    body = root.find("body")
    listed = sorted(number for number in cited if number in sources)
    if listed and body is not None:
        _list(body, listed, sources)


def _cited_elements(root: Element) -> Iterator[Element]:
    """Elements that may hold citations, verbatim ones left out with all that is in them."""
    stack = [root]
    while stack:
        element = stack.pop()
        if isinstance(element.tag, str) and element.tag not in _VERBATIM:
            children = list(element)
            yield element
            stack += children


def _marked(
    text: str, sources: Mapping[int, CitedSource], cited: dict[int, None]
) -> tuple[str, list[Element]]:
    """The text before the first citation, and the citations, each with the text that follows it."""
    if "[[S:" not in text:
        return text, []
    before, done = "", 0
    marks: list[Element] = []
    for match in _CITED.finditer(text):
        numbers = source_mentions(match[0])[:_MOST]
        if not numbers:
            continue
        between = text[done : match.start()]
        if marks:
            marks[-1].tail = between
        else:
            before = between
        marks += _marks(numbers, sources)
        cited.update(dict.fromkeys(numbers))
        done = match.end()
    if marks:
        marks[-1].tail = text[done:]
    return before, marks


def _marks(numbers: Iterable[int], sources: Mapping[int, CitedSource]) -> list[Element]:
    found = []
    for number in numbers:
        mark = Element("sup", {"class": "citation"})
        if number in sources:
            SubElement(mark, "a", {"href": f"#source-{number}"}).text = f"[{number}]"
        else:
            mark.text = f"[{number}?]"
        found.append(mark)
    return found


def _list(body: Element, numbers: list[int], sources: Mapping[int, CitedSource]) -> None:
    section = SubElement(body, "section", {"class": "sources"})
    SubElement(section, "h2").text = "Sources"
    items = SubElement(section, "ol")
    for number in numbers:
        source = sources[number]
        item = SubElement(items, "li", {"id": f"source-{number}", "value": str(number)})
        if source.url and source.url.startswith(("https://", "http://")):
            SubElement(item, "a", {"href": source.url}).text = source.title
        else:
            SubElement(item, "span").text = source.title
        if source.detail and source.detail != source.title:
            SubElement(item, "span", {"class": "source-detail"}).text = f" — {source.detail}"
