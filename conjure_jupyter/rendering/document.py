"""From HTML or Markdown to a tree that is safe to render. Runs in the child."""

from __future__ import annotations

import io
import re
import unicodedata
from collections.abc import Mapping
from typing import cast
from urllib import parse as urls
from urllib.parse import quote
from xml.etree.ElementTree import Element, SubElement

from .citations import cite, cited_number, in_css, source_url
from .contract import CitedSource
from .problems import ResourceProblem
from .resources import Resources, absolute, shown

#: What references of a document start from: the working directory, by a scheme of our own.
ROOT = "workspace:///"
for _known in (urls.uses_relative, urls.uses_netloc):
    # Else ``urljoin``, which WeasyPrint uses too, would join nothing to it.
    if "workspace" not in _known:
        _known.append("workspace")

_DROPPED = frozenset({"script", "noscript", "iframe", "frame", "frameset", "template", "base"})
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_WEB = re.compile(r"(?:https?://[^/?#\\\s]|mailto:[^\s])", re.IGNORECASE)
_XLINK = "{http://www.w3.org/1999/xlink}href"
_SOURCED = ("src", "href", "data", "poster", "background", _XLINK)


def to_html(markdown: str) -> str:
    """Markdown (CommonMark with tables and strikethrough) as HTML; HTML in it stays HTML."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    # Which links and images are let through is decided for both formats alike, on the tree.
    setattr(parser, "validateLink", lambda _url: True)  # noqa: B010  its documented way, a method to mypy
    return cast("str", parser.render(markdown))


def parse(html: str) -> Element:
    """The tree of an HTML document, as browsers read it, however broken it is."""
    import tinyhtml5  # type: ignore[import-untyped]  # it ships none

    return cast("Element", tinyhtml5.parse(io.StringIO(html), namespace_html_elements=False))


def base_of(folder: str) -> str:
    """The URL of a folder of the working directory."""
    return ROOT + (quote(folder.strip("/")) + "/" if folder.strip("/") else "")


def prepare(
    root: Element,
    *,
    base: str,
    resources: Resources,
    sources: Mapping[int, CitedSource],
    title: str | None = None,
) -> str:
    """Make a tree ready: nothing active in it, citations written out, missing images told in their place.

    Args:
        root: the tree, which is changed.
        base: the URL that references start from.
        resources: gives images.
        sources: what citations stand for.
        title: the document's title; None leaves its own.

    Returns:
        The base that references start from, the document's own ``<base>`` considered.
    """
    base = _own_base(root, base)
    _drop(root)
    for element in root.iter():
        if isinstance(element.tag, str):
            _references(element, sources)
            if element.tag == "style":
                element.text = in_css(element.text or "")
    cite(root, sources)
    _missing_images(root, base, resources)
    _heading_ids(root)
    if title is not None:
        _set_title(root, title)
    return base


def text_of(element: Element) -> str:
    """All text in an element, white space as one space."""
    parts = [
        part
        for child in element.iter()
        for part in (
            (child.text if isinstance(child.tag, str) else ""),
            child.tail if child is not element else "",
        )
        if part
    ]
    return " ".join("".join(parts).split())


def _own_base(root: Element, base: str) -> str:
    found = next(root.iter("base"), None)
    href = (found.get("href") or "").strip() if found is not None else ""
    return absolute(base, href) if href else base


def _drop(root: Element) -> None:
    """Take out comments, what is active, what embeds files, and ``base``, which has been read."""
    for parent in list(root.iter()):
        for child in list(parent):
            if not isinstance(child.tag, str) or _local(child) in _DROPPED or _embeds(child):
                _remove(parent, child)


def _embeds(element: Element) -> bool:
    """A link that is no stylesheet: ``rel=attachment`` would put any file into the PDF."""
    if _local(element) == "link":
        return element.tag != "link" or "stylesheet" not in (element.get("rel") or "").lower().split()
    return element.tag == "meta" and element.get("http-equiv") is not None


def _local(element: Element) -> str:
    """An element's name without its namespace: in a drawing a script is one too."""
    return str(element.tag).rpartition("}")[2]


def _remove(parent: Element, child: Element) -> None:
    """Take out an element and keep the text behind it."""
    index = list(parent).index(child)
    if child.tail:
        if index:
            parent[index - 1].tail = (parent[index - 1].tail or "") + child.tail
        else:
            parent.text = (parent.text or "") + child.tail
    parent.remove(child)


def _references(element: Element, sources: Mapping[int, CitedSource]) -> None:
    if element.tag == "link":
        element.set("rel", "stylesheet")  # and nothing else besides
    for name in [name for name in element.attrib if name.lower().startswith("on")]:
        del element.attrib[name]
    if "style" in element.attrib:
        element.set("style", in_css(element.get("style") or ""))
    if _local(element) in ("a", "area"):
        _link(element, sources)
        return
    element.attrib.pop("srcset", None)
    for name in _SOURCED:
        number = cited_number(element.get(name) or "")
        if number is not None:
            element.set(name, source_url(number))


def _link(element: Element, sources: Mapping[int, CitedSource]) -> None:
    """Links lead to the web, by mail, or to a place in the document."""
    for name in ("rel", "xlink:href"):
        element.attrib.pop(name, None)
    href = (element.attrib.pop(_XLINK, None) or element.get("href") or "").strip()
    number = cited_number(href)
    if number is not None:
        source = sources.get(number)
        href = (source.url or f"#source-{number}") if source else ""
    if href.startswith("#") or _WEB.match(href):
        element.set("href", href)
    else:
        element.attrib.pop("href", None)


def _missing_images(root: Element, base: str, resources: Resources) -> None:
    for parent in list(root.iter()):
        for index, child in enumerate(parent):
            if child.tag != "img":
                continue
            source = child.get("src") or ""
            url = absolute(base, source) if source else ""
            try:
                if url and resources.get(url).kind in ("image", "svg"):
                    child.set("src", url)
                    continue
            except ResourceProblem:
                pass
            name = child.get("alt") or shown(url.rpartition("/")[2] if url.startswith("workspace:") else url)
            placeholder = Element("span", {"class": "missing-image"})
            placeholder.text = f"[image not available: {name}]" if name else "[image not available]"
            placeholder.tail = child.tail
            parent[index] = placeholder


def _heading_ids(root: Element) -> None:
    """Names for headings, as Markdown's links to them expect: ``#what-was-found``."""
    used = {element.get("id") for element in root.iter()}
    for element in root.iter():
        if element.tag in _HEADINGS and not element.get("id"):
            text = unicodedata.normalize("NFKC", text_of(element)).lower()
            slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")[:80]
            if slug and slug not in used:
                used.add(slug)
                element.set("id", slug)


def _set_title(root: Element, title: str) -> None:
    head = root.find("head")
    if head is None:
        head = Element("head")
        root.insert(0, head)
    for old in head.findall("title"):
        head.remove(old)
    SubElement(head, "title").text = title
