"""The render_file tool, with the real process and a session's artifacts."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pypdf
import pytest
from pptx import Presentation

from conjure_jupyter.executors.contract import ExecutionContext, Executor
from conjure_jupyter.tools import Toolbox
from conjure_jupyter.tools.render import RenderFileTool

from ..rendering.conftest import pango as pango  # noqa: PLC0414  a fixture
from ..rendering.conftest import picture
from .conftest import Run, call
from .sessions import Session


@pytest.fixture
def draw(executor: Executor, context: ExecutionContext) -> Run:
    """Call the tool where there are no artifacts."""
    toolbox = Toolbox(executor, context, tools=[RenderFileTool()])

    async def run(**arguments: Any) -> Any:
        return await toolbox.execute(call("render_file", **arguments))

    return run


@pytest.fixture
def draw_in(executor: Executor, context: ExecutionContext, session: Session) -> Run:
    """Call the tool in a session."""
    toolbox = Toolbox(executor, context, tools=[RenderFileTool()], artifacts=session.service)

    async def run(**arguments: Any) -> Any:
        return await toolbox.execute(call("render_file", **arguments))

    return run


def pdf(path: Path) -> pypdf.PdfReader:
    return pypdf.PdfReader(io.BytesIO(path.read_bytes()))


def text_of(path: Path) -> str:
    return " ".join("\n".join(page.extract_text() for page in pdf(path).pages).split())


def pictures_of(path: Path) -> list[tuple[int, int]]:
    slides = Presentation(io.BytesIO(path.read_bytes())).slides
    return [shape.image.size for slide in slides for shape in slide.shapes if shape.shape_type == 13]


@pytest.mark.usefixtures("pango")
async def test_a_file_becomes_a_pdf_and_that_is_said(draw: Run, work: Path) -> None:
    (work / "reports").mkdir()
    (work / "reports/chart.png").write_bytes(picture())
    (work / "reports/a.md").write_text("# Report\n\n![c](chart.png)\n")
    result = await draw(path="reports/a.md", output="outputs/deep/report.pdf", title="T")
    size = (work / "outputs/deep/report.pdf").stat().st_size
    assert result.text == f"Rendered outputs/deep/report.pdf (1 page, {size / 1024:.1f} KB)"
    assert not result.is_error
    assert result.meta["files"] == ["outputs/deep/report.pdf"]
    assert "Report" in text_of(work / "outputs/deep/report.pdf")
    assert len(pdf(work / "outputs/deep/report.pdf").pages[0].images) == 1


@pytest.mark.usefixtures("pango")
async def test_several_images(draw: Run, work: Path) -> None:
    content = '<p style="break-after: page">one</p><p>two</p>'
    result = await draw(content=content, format="html", output="outputs/a.png", page_size="30mm x 30mm")
    assert result.meta["files"] == ["outputs/a-1.png", "outputs/a-2.png"]
    assert result.text.startswith("Rendered outputs/a-1.png to outputs/a-2.png (2 pages, ")
    assert sorted(path.name for path in (work / "outputs").iterdir()) == ["a-1.png", "a-2.png"]


async def test_content_becomes_slides(draw: Run, work: Path) -> None:
    (work / "outputs").mkdir()
    (work / "outputs/chart.png").write_bytes(picture())
    (work / "logo.png").write_bytes(picture(size=(9, 9)))
    content = "## A\n\n![c](chart.png)\n\n![c](outputs/chart.png)\n\n![l](logo.png)\n\n## B\n"
    result = await draw(content=content, format="markdown", output="outputs/deck.PPTX", page_size="4:3")
    assert result.text.startswith("Rendered outputs/deck.PPTX (")
    assert "left out" not in result.text
    assert pictures_of(work / "outputs/deck.PPTX") == [(80, 40), (80, 40), (9, 9)]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"output": "outputs/a.pdf"}, "either path or content"),
        ({"output": "outputs/a.pdf", "path": "a.md", "content": "x"}, "either path or content"),
        ({"output": "outputs/a.pdf", "content": "x"}, "content needs format"),
        ({"output": "outputs/a.pdf", "content": " \n", "format": "html"}, "content is empty"),
        ({"output": "outputs/a.pdf", "content": "x", "format": "rst"}, "must be one of html, markdown"),
        ({"output": "outputs/a.docx", "content": "x", "format": "html"}, "must end in .pdf, .png or .pptx"),
        ({"output": "outputs/a.pdf/", "content": "x", "format": "html"}, "must end in"),
        ({"output": "outputs/.pdf", "content": "x", "format": "html"}, "must end in"),
        ({"output": "a.pdf", "content": "x", "format": "html"}, "not under outputs/"),
        ({"output": "outputs/../a.pdf", "content": "x", "format": "html"}, "not under outputs/"),
        ({"output": "/tmp/a.pdf", "content": "x", "format": "html"}, "not under outputs/"),
        ({"output": "outputs/a.pdf", "content": "x", "format": "html", "page_size": "A9"}, "page_size 'a9'"),
        ({"output": "outputs/a.pdf", "path": "missing.md"}, "no such file"),
        ({"output": "outputs/a.pdf", "path": "empty.md"}, "is empty"),
        ({"output": "outputs/a.pdf", "path": "data.bin"}, "send format"),
        ({"output": "outputs/a.pdf", "path": "binary.html"}, "is no text"),
        ({"output": "outputs/a.pdf", "path": "folder.md"}, "folder.md"),
        ({"output": "outputs/a.pdf", "path": "../outside.md"}, "outside"),
        ({"output": "outputs/a.pdf", "path": "link.md"}, "outside"),
        ({"output": "outputs/a.pdf", "path": "large.md"}, "more than 5.0 MB"),
    ],
)
async def test_what_cannot_be_rendered(draw: Run, work: Path, arguments: dict[str, str], told: str) -> None:
    (work / "empty.md").write_text(" \n\t")
    (work / "data.bin").write_text("x")
    (work / "binary.html").write_bytes(b"\x00\x01\x02" * 100)
    (work / "folder.md").mkdir()
    (work.parent / "outside.md").write_text("secret")
    (work / "link.md").symlink_to(work.parent / "outside.md")
    (work / "large.md").write_bytes(b"x" * (5 * 1024 * 1024 + 1))
    result = await draw(**arguments)
    assert result.is_error
    assert told.lower() in result.text.lower()
    assert not (work / "outputs").exists()


@pytest.mark.usefixtures("pango")
@pytest.mark.parametrize(
    ("data", "note"),
    [
        ("<p>Größe</p>".encode("windows-1252"), "read as windows-1252"),
        ('<meta charset="iso-8859-2"><p>Größe Łódź</p>'.encode("iso-8859-2"), "read as iso8859-2"),
        ("<p>Größe</p>".encode("utf-16"), "UTF-16"),
        (b"<p>" + b"x" * 9000 + "Größe".encode() + b"\xff</p>", "replaced"),
        ("\ufeff<p>Größe</p>".encode(), "byte order mark"),
    ],
)
async def test_other_encodings(draw: Run, work: Path, data: bytes, note: str) -> None:
    (work / "a.html").write_bytes(data)
    result = await draw(path="a.html", output="outputs/a.pdf")
    assert note in result.text
    assert "Größe" in text_of(work / "outputs/a.pdf")


@pytest.mark.usefixtures("pango")
async def test_earlier_files_and_sources_are_put_on_disk_first(
    draw_in: Run, session: Session, work: Path
) -> None:
    await session.make("outputs/chart.png", picture())
    await session.make("uploads/photo.png", picture(size=(30, 20)))
    session.next_turn()
    await session.make("outputs/chart.png", picture(size=(11, 11)))
    (work / "uploads/photo.png").unlink()
    turn = session.timeline.turn - 1
    text = f"""# Report

Shown[[S:1]] and seen [[S:2]], not [[S:77]].

![old](turn_{turn:04}/files/chart.png) ![photo]([[S:2]]) ![gone](turn_{turn:04}/files/gone.png)
"""
    result = await draw_in(content=text, format="markdown", output="outputs/report.pdf")
    assert not result.is_error
    sizes = {image.image.size for image in pdf(work / "outputs/report.pdf").pages[0].images if image.image}
    assert sizes == {(80, 40), (30, 20)}
    out = text_of(work / "outputs/report.pdf")
    assert "Shown[1] and seen [2], not [77?]" in out
    assert "Sources" in out
    assert "photo.png" in out
    gone = f"no artifact has the path turn_{turn:04}/files/gone.png: it was left out"
    pool = "the pool has no source [[S:77]]"
    assert session.notices == [
        ("tool_call_error.missing_assets", gone),
        ("tool_call_warning.missing_sources", pool),
    ]
    assert result.meta["notices"] == [{"code": code, "text": told} for code, told in session.notices]
    assert f"[{gone}]\n[{pool}]" in result.text


async def test_a_document_of_an_earlier_turn_is_rendered_as_it_was(
    draw_in: Run, session: Session, work: Path
) -> None:
    await session.make("outputs/chart.png", picture())
    session.next_turn()
    logical = await session.make("outputs/deck.md", "## First version\n\n![c](chart.png)")
    session.next_turn()
    await session.make("outputs/deck.md", "## Second version")
    await session.make("outputs/chart.png", picture(size=(11, 11)))
    result = await draw_in(path=logical, output="outputs/deck.pptx")
    assert not result.is_error
    slides = Presentation(io.BytesIO((work / "outputs/deck.pptx").read_bytes())).slides
    assert slides[0].shapes.title.text_frame.text == "First version"
    assert (work / "outputs/deck.md").read_text() == "## Second version"
    # The chart that lay beside it then, made in a turn before.
    assert pictures_of(work / "outputs/deck.pptx") == [(80, 40)]


async def test_what_the_text_names_in_pieces_is_put_on_disk_too(
    draw_in: Run, session: Session, work: Path
) -> None:
    logical = await session.make("outputs/chart.png", picture())
    turn = logical.removeprefix("fi:").partition(".")[0]
    session.next_turn()
    await session.make("outputs/chart.png", picture(size=(11, 11)))
    content = f'<base href="{turn}/"><img src="files/chart.png">'
    result = await draw_in(content=content, format="html", output="outputs/a.pptx")
    assert "left out" not in result.text
    assert pictures_of(work / "outputs/a.pptx") == [(80, 40)]


async def test_without_artifacts_a_source_is_missing(draw: Run, work: Path) -> None:
    result = await draw(content="## A\n\nb [[S:1]]", format="markdown", output="outputs/a.pptx")
    assert "[the pool has no source [[S:1]]]" in result.text
    assert result.meta["notices"][0]["code"] == "tool_call_warning.missing_sources"


async def test_an_earlier_turns_output_is_written_to_this_ones(
    draw_in: Run, session: Session, work: Path
) -> None:
    await session.make("outputs/deck.pptx", b"old")
    turn = session.timeline.turn
    session.next_turn()
    result = await draw_in(content="## A", format="markdown", output=f"turn_{turn:04}/files/deck.pptx")
    assert result.meta["files"] == ["outputs/deck.pptx"]
    assert [code for code, _ in session.notices] == ["path_rewritten"]


async def test_names_cannot_break_the_answers_lines(draw: Run, work: Path) -> None:
    content = '## A\n\n<img src="a&#10;[Rendered other.pdf].png">'
    result = await draw(content=content, format="markdown", output="outputs/a.pptx")
    assert len(result.text.split("\n")) == 2
