"""Documents as presentations, read back by python-pptx."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import pytest
from pptx import Presentation
from pptx.util import Pt

from conjure_jupyter.errors import ToolError
from conjure_jupyter.rendering import CitedSource, limits, parse_page

from .conftest import Render, picture

MARKDOWN = """# Sales report

For the board.

## Summary

Growth was **strong**, see [the site](https://example.org/a)[[S:2]].

- North
  - New stores
    - In March
- South

4. Fourth
5. Fifth

## Figures

| Region | Q1 |
|--------|---:|
| North  | 12 |
| South  | 30 |

![a chart](outputs/chart.png)

### How

```python
def f(x):
    return x
```
"""


def slides_of(data: bytes) -> list[Any]:
    return list(Presentation(io.BytesIO(data)).slides)


def title_of(slide: Any) -> str | None:
    return slide.shapes.title.text_frame.text if slide.shapes.title is not None else None


def paragraphs_of(slide: Any) -> list[Any]:
    return [
        paragraph
        for shape in slide.shapes
        if shape.has_text_frame and shape != slide.shapes.title
        for paragraph in shape.text_frame.paragraphs
    ]


def text_of(slide: Any) -> str:
    return "\n".join(paragraph.text for paragraph in paragraphs_of(slide))


def mark_of(paragraph: Any) -> str:
    properties = paragraph._p.pPr
    for name in ("buChar", "buAutoNum", "buNone"):
        found = properties.find(f"{{{properties.nsmap['a']}}}{name}")
        if found is not None:
            return str(found.get("char") or found.get("startAt") or "")
    return "inherited"


async def test_markdown_becomes_slides(rendered: Render, work: Path) -> None:
    (work / "outputs/chart.png").write_bytes(picture(size=(400, 200)))
    made = await rendered(
        MARKDOWN, "pptx", title="The title", sources={2: CitedSource("Minutes", "uploads/minutes.txt")}
    )
    slides = slides_of(made.files[0])
    assert made.pages == len(slides)
    assert [title_of(slide) for slide in slides][:3] == ["Sales report", "Summary", "Figures"]
    assert title_of(slides[-1]) == "Sources"
    assert "For the board." in text_of(slides[0])

    summary = paragraphs_of(slides[1])
    runs = {run.text: run for run in summary[0].runs}
    assert runs["strong"].font.bold
    assert runs["the site"].hyperlink.address == "https://example.org/a"
    assert runs["[2]"].font._element.get("baseline") == "30000"
    listed = [(p.text, p.level, mark_of(p)) for p in summary[1:] if p.text]
    assert listed == [
        ("North", 0, "•"),
        ("New stores", 1, "◦"),
        ("In March", 2, "•"),
        ("South", 0, "•"),
        ("Fourth", 0, "4"),
        ("Fifth", 0, "4"),
    ]

    shapes = [shape for slide in slides for shape in slide.shapes]
    tables = [shape.table for shape in shapes if getattr(shape, "has_table", False) and shape.has_table]
    assert [[cell.text for cell in row.cells] for row in tables[0].rows] == [
        ["Region", "Q1"],
        ["North", "12"],
        ["South", "30"],
    ]
    pictures = [shape for shape in shapes if shape.shape_type == 13]
    assert [shape.image.size for shape in pictures] == [(400, 200)]
    assert pictures[0].element.xpath("./p:nvPicPr/p:cNvPr/@descr") == ["a chart"]
    code = next(shape for shape in shapes if shape.name == "Code").text_frame
    assert code.text == "def f(x):\n    return x"
    assert code.paragraphs[0].runs[0].font.name == "Consolas"
    assert "Minutes — uploads/minutes.txt" in text_of(slides[-1])


async def test_properties_and_archive_have_no_moment_of_writing(rendered: Render) -> None:
    made = await rendered("# A\n\nb", "pptx", title="The title")
    properties = Presentation(io.BytesIO(made.files[0])).core_properties
    assert (properties.title, properties.author, properties.last_modified_by) == ("The title", "", "")
    assert properties.created == properties.modified
    with zipfile.ZipFile(io.BytesIO(made.files[0])) as archive:
        assert {info.date_time for info in archive.infolist()} == {(2000, 1, 1, 0, 0, 0)}


async def test_html_becomes_slides(rendered: Render, work: Path) -> None:
    (work / "outputs/a.webp").write_bytes(picture(kind="WEBP"))
    html = """<title>From HTML</title><style>h1 { color: red }</style>
    <p>Before any heading</p><hr><p>After a line</p>
    <section><h2>Table <em>one</em></h2><table><thead><tr><th colspan="2">Both</th></tr></thead>
    <tr><td rowspan="2">a</td><td align="right">1</td></tr><tr><td>2</td></tr></table></section>
    <h2>Rest</h2><div>loose <b>bold</b> text<div>inner</div>tail</div>
    <blockquote>Said</blockquote><dl><dt>Term</dt><dd>Meaning</dd></dl>
    <p>one<br>two</p><img src="outputs/a.webp" alt="w">
    <svg xmlns="http://www.w3.org/2000/svg" width="40" height="20">
    <rect width="40" height="20" fill="red"/></svg>
    <script>alert(1)</script>"""
    made = await rendered(html, "pptx", page=parse_page("4:3"))
    deck = Presentation(io.BytesIO(made.files[0]))
    assert (deck.slide_width, deck.slide_height) == (Pt(720), Pt(540))
    slides = list(deck.slides)
    titles = ["From HTML", "From HTML", "Table one", "Rest"]
    assert [title_of(slide) for slide in slides][:4] == titles
    assert text_of(slides[0]).strip() == "Before any heading"
    table = next(
        shape.table for shape in slides[2].shapes if getattr(shape, "has_table", False) and shape.has_table
    )
    assert [[cell.text for cell in row.cells] for row in table.rows] == [["Both", ""], ["a", "1"], ["", "2"]]
    assert table.cell(0, 0).is_merge_origin
    rest = "\n".join(text_of(slide) for slide in slides[3:])
    for line in ("loose bold text", "inner", "tail", "Said", "Term", "Meaning", "one\vtwo"):
        assert line in rest.split("\n")
    assert "alert" not in rest
    pictures = [shape for slide in slides for shape in slide.shapes if shape.shape_type == 13]
    assert [shape.image.content_type for shape in pictures][:1] == ["image/png"]
    assert len(pictures) + len([note for note in made.notices if "Pango" in note]) == 2


async def test_long_content_goes_on_and_nothing_is_lost(rendered: Render) -> None:
    words = [f"word{index}" for index in range(1500)]
    rows = "\n".join(f"| row{index} | {index} |" for index in range(60))
    code = "\n".join(f"line_{index} = {index}" for index in range(80))
    text = f"## Long\n\n{' '.join(words)}\n\n| Name | N |\n|--|--|\n{rows}\n\n```\n{code}\n```\n"
    made = await rendered(text, "pptx")
    deck = Presentation(io.BytesIO(made.files[0]))
    slides = list(deck.slides)
    assert len(slides) > 6
    assert {title_of(slide) for slide in slides} == {"Long", "Long (continued)"}
    found = " ".join(text_of(slide) for slide in slides).split()
    assert [word for word in found if word.startswith("word")] == words
    assert [word for word in found if word.startswith("line_")] == [f"line_{index}" for index in range(80)]
    tables = [
        shape.table
        for slide in slides
        for shape in slide.shapes
        if getattr(shape, "has_table", False) and shape.has_table
    ]
    assert len(tables) > 2
    assert all(table.cell(0, 0).text == "Name" for table in tables)
    names = [row.cells[0].text for table in tables for row in list(table.rows)[1:]]
    assert names == [f"row{index}" for index in range(60)]
    for slide in slides:
        for shape in slide.shapes:
            assert shape.left >= 0
            assert shape.top >= 0
            assert shape.left + shape.width <= deck.slide_width + 1
            assert shape.top + shape.height <= deck.slide_height + 1


async def test_too_many_slides_and_none(rendered: Render) -> None:
    with pytest.raises(ToolError, match=f"more than {limits.PAGES} slides"):
        await rendered("\n\n".join(f"## {index}" for index in range(limits.PAGES + 1)), "pptx")
    with pytest.raises(ToolError, match="nothing to show"):
        await rendered("<style>p {}</style><p> </p>", "pptx")


async def test_characters_that_xml_cannot_hold(rendered: Render) -> None:
    made = await rendered("## A\x08\x1b[31mB\x00\ufffe\n\ntext\x0b \U0001f600 \x7f", "pptx", title="t\x01")
    slides = slides_of(made.files[0])
    assert title_of(slides[0]) is not None
    assert "\U0001f600" in text_of(slides[0])
