"""Documents as PDF and PNG, made by the real process and read back by other libraries."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pypdf
import pypdfium2
import pytest
from PIL import Image

from conjure_jupyter.rendering import CitedSource, limits, parse_page

from .conftest import BLUE, RED, Render, picture

pytestmark = pytest.mark.usefixtures("pango")

MARKDOWN = """# Sales report

Growth was **strong** in the *north*. See [the site](https://example.org/a) or [figures](#figures),
not [a script](javascript:alert(1)) or [a file](file:///etc/passwd).

## Figures

| Region | Q1 |
|--------|---:|
| North  | 12 |

![chart](outputs/chart.png)

```python
print("hello")
```
"""

HTML = """<!doctype html><html><head><title>From HTML</title>
<link rel="stylesheet" href="style/main.css"></head><body onload="x()">
<h1>Sales report</h1><p>Growth was strong.<script>document.write("scripted")</script></p>
<div class="back"></div><img src="chart.png" alt="chart"><p class="second">Second page</p>
</body></html>"""


def read(data: bytes) -> pypdf.PdfReader:
    return pypdf.PdfReader(io.BytesIO(data))


def text_of(data: bytes) -> str:
    return "\n".join(page.extract_text() for page in read(data).pages)


def links_of(data: bytes) -> list[str]:
    found: list[Any] = [
        annotation.get_object().get("/A", {}).get("/URI")
        for page in read(data).pages
        for annotation in page.get("/Annots", [])
    ]
    return [str(link) for link in found if link]


def colors_of(png: bytes) -> set[tuple[int, ...]]:
    with Image.open(io.BytesIO(png)) as image:
        return {color for _, color in image.convert("RGB").getcolors(1 << 24) or ()}


def near(colors: set[tuple[int, ...]], wanted: tuple[int, int, int]) -> bool:
    return any(all(abs(a - b) < 12 for a, b in zip(color, wanted, strict=True)) for color in colors)


async def test_markdown_becomes_a_pdf(rendered: Render, work: Path) -> None:
    (work / "outputs/chart.png").write_bytes(picture())
    made = await rendered(MARKDOWN, "pdf", title="The title")
    reader = read(made.files[0])
    text = text_of(made.files[0])
    assert (made.pages, len(reader.pages), made.notices) == (1, 1, [])
    for words in ("Sales report", "strong", "Figures", "Region", "North", 'print("hello")'):
        assert words in text
    assert [image.image.size for image in reader.pages[0].images if image.image] == [(80, 40)]
    assert links_of(made.files[0]) == ["https://example.org/a"]
    assert [str(entry.title) for entry in reader.outline if not isinstance(entry, list)] == ["Sales report"]
    assert reader.metadata is not None
    assert reader.metadata.title == "The title"
    assert not {"/CreationDate", "/ModDate"} & set(reader.metadata)


async def test_html_becomes_a_pdf_in_its_own_look(rendered: Render, work: Path) -> None:
    (work / "reports/style").mkdir(parents=True)
    (work / "reports/chart.png").write_bytes(picture())
    (work / "reports/style/back.png").write_bytes(picture(BLUE, (60, 30)))
    (work / "reports/style/main.css").write_text(
        '@import "more.css"; @page { size: 100mm 60mm } .second { break-before: page }'
    )
    (work / "reports/style/more.css").write_text(
        ".back { background: url(back.png); width: 60px; height: 30px }"
    )
    made = await rendered(HTML, "pdf", folder="reports")
    reader = read(made.files[0])
    assert (made.pages, made.notices) == (2, [])
    assert "scripted" not in text_of(made.files[0])
    assert "Second page" in reader.pages[1].extract_text()
    width, height = (float(side) * 25.4 / 72 for side in reader.pages[0].mediabox[2:])
    assert (round(width), round(height)) == (100, 60)
    document = pypdfium2.PdfDocument(made.files[0])
    try:
        image = document[0].render().to_pil().convert("RGB")
        colors = {color for _, color in image.getcolors(1 << 24) or ()}
    finally:
        document.close()
    assert near(colors, RED)
    assert near(colors, BLUE)
    assert reader.metadata is not None
    assert reader.metadata.title == "From HTML"


async def test_the_size_asked_for_wins(rendered: Render) -> None:
    page = parse_page("a5 landscape")
    made = await rendered("<style>@page { size: A3 }</style><p>x</p>", "pdf", page=page)
    width, height = (float(side) * 25.4 / 72 for side in read(made.files[0]).pages[0].mediabox[2:])
    assert (round(width), round(height)) == (210, 148)


async def test_one_page_becomes_one_image(rendered: Render, work: Path) -> None:
    (work / "outputs/chart.png").write_bytes(picture(size=(300, 200)))
    made = await rendered('<p>Text</p><img src="outputs/chart.png">', "png", page=parse_page("10cm x 8cm"))
    with Image.open(io.BytesIO(made.files[0])) as image:
        assert image.format == "PNG"
        assert [round(side * 2.54 / 144) for side in image.size] == [10, 8]
    colors = colors_of(made.files[0])
    assert near(colors, RED)
    assert near(colors, (31, 35, 40))  # the letters
    assert near(colors, (255, 255, 255))


async def test_several_pages_become_as_many_images_within_bounds(
    rendered: Render, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = "".join(f'<p style="break-after: page">{index}</p>' for index in range(limits.PNG_PAGES + 2))
    made = await rendered(pages, "png", page=parse_page("30mm x 30mm"))
    assert len(made.files) == limits.PNG_PAGES
    assert made.pages in (limits.PNG_PAGES + 2, limits.PNG_PAGES + 3)
    assert any("more pages got no image" in notice for notice in made.notices)


async def test_a_vast_page_gets_fewer_pixels(rendered: Render) -> None:
    made = await rendered("<style>@page { size: 5m 5m }</style><p>x", "png")
    with Image.open(io.BytesIO(made.files[0])) as image:
        assert image.size[0] * image.size[1] <= limits.PAGE_PIXELS * 1.01


async def test_citations_and_sources(rendered: Render, work: Path) -> None:
    (work / "uploads").mkdir()
    (work / "uploads/photo of it.png").write_bytes(picture(BLUE))
    text = """Growth [[S:1]] and more [[S:2-3]]. Code `[[S:1]]` stays. Gone: [[S:9]].

![photo]([[S:1]])

<div style="background: url([[S:1]]); width: 20px; height: 20px"></div>

[The paper]([[S:2]])
"""
    made = await rendered(
        text,
        "pdf",
        sources={
            1: CitedSource("photo of it.png", "uploads/photo of it.png", None, True),
            2: CitedSource("A <b>paper</b>", "https://example.org/paper", "https://example.org/paper"),
            3: CitedSource("Notes", "uploads/notes.txt"),
        },
        files={1: "uploads/photo of it.png"},
    )
    out = " ".join(text_of(made.files[0]).split())
    assert "Growth [1] and more [2] [3]" in out.replace("][", "] [")
    assert "Code [[S:1]] stays" in out
    assert "[9?]" in out
    assert "Sources" in out
    assert "A <b>paper</b> — https://example.org/paper" in out
    assert links_of(made.files[0]) == ["https://example.org/paper"] * 2
    assert [image.image.size for image in read(made.files[0]).pages[0].images if image.image]
    assert made.notices == []


async def test_what_is_missing_is_shown_and_told(rendered: Render) -> None:
    made = await rendered("![the chart](nowhere.png) and text\n\n![](turn_0001/files/old.png)", "pdf")
    text = " ".join(text_of(made.files[0]).split())
    assert text == "[image not available: the chart] and text [image not available: old.png]"
    assert made.notices[0] == "nowhere.png was left out: there is no such file in the working directory"
    assert len(made.notices) == 2


@pytest.mark.parametrize(
    "reference", ["a%20b%23%3F.png", "./x/../a b%23%3F.png", "outputs/../a%20b%23%3F.png"]
)
async def test_names_with_odd_characters(rendered: Render, work: Path, reference: str) -> None:
    (work / "a b#?.png").write_bytes(picture())
    made = await rendered(f'<img src="{reference}">', "pdf")
    assert made.notices == []


async def test_an_absolute_path_inside_and_a_url_that_was_fetched(rendered: Render, work: Path) -> None:
    (work / "outputs/chart.png").write_bytes(picture())
    (work / "uploads").mkdir()
    (work / "uploads/fetched.svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect width="9" height="9"/></svg>'
    )
    made = await rendered(
        f'<img src="{work}/outputs/chart.png"><img src="file://{work}/outputs/chart.png">'
        '<img src="/outputs/chart.png"><img src="https://example.org/a.svg?size=1">',
        "pdf",
        urls={"https://example.org/a.svg": "uploads/fetched.svg"},
    )
    assert made.notices == []


@pytest.mark.parametrize("target", ["pdf", "png", "pptx"])
async def test_the_same_document_gives_the_same_bytes(rendered: Render, work: Path, target: str) -> None:
    (work / "outputs/chart.png").write_bytes(picture())
    first = await rendered(MARKDOWN, target)
    second = await rendered(MARKDOWN, target)
    assert first.files == second.files


async def test_pdfium_reads_what_was_made(rendered: Render) -> None:
    made = await rendered("# Größe: 東京 →", "pdf")
    document = pypdfium2.PdfDocument(made.files[0])
    try:
        assert "Größe" in document[0].get_textpage().get_text_range()
    finally:
        document.close()
