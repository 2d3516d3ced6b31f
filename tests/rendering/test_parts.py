"""The parts that need no process: sizes, citations, trees, the room on slides."""

from __future__ import annotations

import asyncio
from xml.etree.ElementTree import Element, tostring

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conjure_jupyter.rendering import CitedSource, Page, parse_page
from conjure_jupyter.rendering.document import parse, prepare, text_of, to_html
from conjure_jupyter.rendering.problems import ResourceProblem
from conjure_jupyter.rendering.resources import Resource, Resources, absolute, shown
from conjure_jupyter.rendering.slides.blocks import Block, Break, Cell, Heading, Picture, Run, Table, Text
from conjure_jupyter.rendering.slides.extract import blocks
from conjure_jupyter.rendering.slides.flow import Flow, PlacedPicture, PlacedTable, TextBox
from conjure_jupyter.rendering.slides.pictures import Pictures
from conjure_jupyter.rendering.wire import WireError, encode, read

from .conftest import picture

SOURCES = {1: CitedSource("One"), 2: CitedSource("Two", "somewhere", "https://example.org/2")}


def nothing(url: str) -> bytes:
    raise ResourceProblem("nothing here")


def prepared(html: str) -> str:
    root = parse(html)
    prepare(root, base="workspace:///", resources=Resources(nothing), sources=SOURCES)
    return tostring(root, encoding="unicode", method="html")


@pytest.mark.parametrize(
    ("text", "page"),
    [
        ("A4", Page(210, 297)),
        (" a4  Landscape ", Page(297, 210)),
        ("letter portrait", Page(215.9, 279.4)),
        ("100 x 50 mm", Page(100, 50)),
        ("10cm x 100mm", Page(100, 100)),
        ("960px x 96px", Page(254, 25.4)),
        ("16:9", Page(40 / 3 * 25.4, 190.5)),
    ],
)
def test_sizes(text: str, page: Page) -> None:
    found = parse_page(text)
    assert (found.width, found.height) == pytest.approx((page.width, page.height))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "A9",
        "10 x 10",
        "1mm x 1mm",
        "1.2.3mm x 50mm",
        "99999in x 9in",
        "A4; } *",
        "-5mm x 9mm",
        "landscape",
    ],
)
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="page_size"):
        parse_page(text)


@pytest.mark.parametrize(
    ("html", "told"),
    [
        ("a[[S:1]]b", 'a<sup class="citation"><a href="#source-1">[1]</a></sup>b'),
        ("[[S:2,1]]", '[2]</a></sup><sup class="citation"><a href="#source-1">[1]'),
        ("<b>x</b>y [[S:7]] z", '</b>y <sup class="citation">[7?]</sup> z'),
        ("<pre>[[S:1]]</pre>", "<pre>[[S:1]]</pre>"),
        ("[[S:x]] [[S:]] [[S:9-1]]", "[[S:x]] [[S:]] [[S:9-1]]"),
        ('<a href="[[S:2]]">t</a>', '<a href="https://example.org/2">t</a>'),
        ('<a href="[[S:1]]">t</a>', '<a href="#source-1">t</a>'),
        ('<a href="[[S:8]]">t</a>', "<a>t</a>"),
        ("<p style=\"background: url('[[S:1]]')\">", "background: url(&quot;source:1&quot;)"),
        ("<style>p { background: url([[S:1]]) }</style>", 'url("source:1")'),
        ("<title>[[S:1]]</title>x", "<title>[[S:1]]</title>"),
    ],
)
def test_citations(html: str, told: str) -> None:
    assert told in prepared(html)


def test_a_document_without_citations_has_no_list() -> None:
    assert "Sources" not in prepared("<p>x</p>[[S:7]]")
    assert prepared("<p>[[S:1]][[S:2]]</p>").count("<li") == 2


@pytest.mark.parametrize("form", ["[[S:1-999]]", "[[S:1]]" * 500])
def test_many_citations_are_bounded(form: str) -> None:
    assert prepared(f"<p>{form}</p>").count("<sup") <= 500


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("# What *was* found?\n\n[x](#what-was-found)", 'id="what-was-found"'),
        ("[x](javascript:alert(1))", "<a>x</a>"),
        ("[x](JaVaScRiPt:alert(1))", "<a>x</a>"),
        ("[x](data:text/html,x)", "<a>x</a>"),
        ("[x](other.html)", "<a>x</a>"),
        ("[x](mailto:a@example.org)", 'href="mailto:a@example.org"'),
        ("<script>alert(1)</script>after", "after"),
        ("![a](b.png) c", "[image not available: a]</span> c"),
        ("a | b\n--|--\n1 | 2", "<td>1</td>"),
    ],
)
def test_markdown(markdown: str, html: str) -> None:
    made = prepared(to_html(markdown))
    assert html in made
    assert "script" not in made.lower()


class NoPictures(Pictures):
    """Drawing is the child's work."""

    def drawn(self, element: Element) -> Picture | None:
        return None


_PIECES = st.sampled_from(
    [
        "<a href='javascript:x'>",
        "<a xlink:href='javascript:x'>",
        '<a href="  jAva\tscript:x">',
        "<script>",
        "</script>",
        "<svg>",
        "<p onclick=x>",
        "<!--",
        "-->",
        "<iframe src=x>",
        "<template>",
        "<table>",
        "<td>",
        "<li>",
        "<pre>",
        "[[S:1]]",
        "[[S:1",
        "]]",
        "text ",
        "<b>",
        "</b>",
        "</p>",
        "<img src=x>",
        "<style>",
        "</style>",
        "<title>",
        "<base href=//h/>",
        "<math>",
        "<a href=//h>",
        "<link rel=import href=x>",
        "<meta http-equiv=refresh content=0>",
        "<h2>",
        "\x00",
        "\ud800",
        "<noscript>",
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(_PIECES, max_size=25))
def test_nothing_active_is_left(pieces: list[str]) -> None:
    root = parse("".join(pieces))
    base = prepare(root, base="workspace:///", resources=Resources(nothing), sources=SOURCES)
    assert base in ("workspace:///", "workspace://h/")
    for element in root.iter():
        assert isinstance(element.tag, str)
        name = element.tag.rpartition("}")[2]
        assert name not in ("script", "iframe", "base", "template", "link", "noscript")
        assert element.tag != "img"
        assert not [attribute for attribute in element.attrib if attribute.lower().startswith("on")]
        assert element.get("http-equiv") is None
        assert (element.get("href") or "#").startswith(("#", "https://"))
        assert "javascript:" not in " ".join(element.attrib.values())
    body = root.find("body")
    if body is not None:
        list(blocks(body, NoPictures(Resources(nothing))))


@given(st.text(max_size=60), st.text(max_size=60))
def test_references_never_lead_above_the_working_directory(folder: str, reference: str) -> None:
    url = absolute("workspace:///" + folder, reference)
    if url.startswith("workspace:///"):
        assert "/../" not in url.partition("?")[0].partition("#")[0] or "%" in url or ";" in url
    assert len(shown(url)) <= 121
    assert "\n" not in shown(url)


def test_each_thing_is_asked_for_once_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def ask(url: str) -> bytes:
        asked.append(url)
        return picture()

    monkeypatch.setattr("conjure_jupyter.rendering.limits.RESOURCES", 3)
    monkeypatch.setattr("conjure_jupyter.rendering.limits.ALL_PIXELS", 80 * 40 * 2)
    resources = Resources(ask)
    assert isinstance(resources.get("workspace:///a"), Resource)
    assert resources.get("workspace:///a") is resources.get("workspace:///a")
    resources.get("workspace:///b")
    with pytest.raises(ResourceProblem, match="million pixels"):
        resources.get("workspace:///c")
    with pytest.raises(ResourceProblem, match="may refer to 3 files"):
        resources.get("workspace:///d")
    assert asked == ["workspace:///a", "workspace:///b", "workspace:///c"]
    assert [problem.partition(" ")[0] for problem in resources.problems()] == ["c", "d"]


# Slides ---------------------------------------------------------------------------------------------

_WORDS = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S")), min_size=1, max_size=40)
_TEXTS = st.builds(
    lambda words, style, level, bold: Text((Run(" ".join(words), bold=bold),), style, level),
    st.lists(_WORDS, min_size=1, max_size=200),
    st.sampled_from(["text", "bullet", "number", "heading", "code", "quote", "caption"]),
    st.integers(0, 8),
    st.booleans(),
)
_TABLES = st.integers(1, 8).flatmap(
    lambda width: st.builds(
        lambda rows, heads: Table([[Cell(text) for text in row] for row in rows], min(heads, len(rows) - 1)),
        st.lists(st.lists(st.text(max_size=400), min_size=width, max_size=width), min_size=1, max_size=40),
        st.integers(0, 1),
    )
)
_BLOCKS: st.SearchStrategy[Block] = st.one_of(
    _TEXTS,
    _TABLES,
    st.builds(Heading, _WORDS, st.integers(1, 2)),
    st.builds(Picture, st.just(b""), st.floats(1, 9000), st.floats(1, 9000)),
    st.just(Break()),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(_BLOCKS, max_size=8), st.sampled_from([(960, 540), (720, 540), (283, 142), (595, 842)]))
def test_everything_is_on_a_slide_and_inside_it(found: list[Block], size: tuple[float, float]) -> None:
    flow = Flow(*size, "Title")
    slides = flow.add_all(found)
    pictures = tables = 0
    said: list[str] = []
    for slide in slides:
        said += [slide.subtitle.plain] if slide.subtitle else []
        for item in slide.items:
            match item:
                case TextBox():
                    bottom = item.top + item.height
                    said += [text.plain for text in item.texts]
                case PlacedPicture():
                    pictures += 1
                    bottom = item.top + item.height
                    assert item.left >= -0.01
                    assert item.left + item.width <= size[0] + 0.01
                case PlacedTable():
                    tables += len(item.rows) - item.heads
                    bottom = item.top + sum(item.heights)
                    assert sum(item.columns) <= size[0] - 2 * item.left + 0.01
            assert item.top >= 0
            assert bottom <= size[1] + 0.01
    wanted = "".join(block.plain for block in found if isinstance(block, Text))
    assert "".join("".join(said).split()) == "".join(wanted.split())
    assert pictures == sum(isinstance(block, Picture) for block in found)
    rows = sum(len(block.rows) - block.heads for block in found if isinstance(block, Table))
    assert tables == rows


def test_text_of_an_element_keeps_to_it() -> None:
    root = parse("<p>a <b>b<!-- c --></b> d</p> e")
    assert text_of(next(root.iter("p"))) == "a b d"


@given(st.binary(max_size=64))
async def test_what_is_no_message(data: bytes) -> None:
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    with pytest.raises((WireError, asyncio.IncompleteReadError)):
        await read(reader, 10)


async def test_a_message_arrives_as_it_was_sent() -> None:
    reader = asyncio.StreamReader()
    reader.feed_data(encode({"op": "é"}, b"\x00\xff"))
    assert await read(reader, 2) == ({"op": "é"}, b"\x00\xff")
