"""Drawing slides with python-pptx. The same slides give the same bytes."""

from __future__ import annotations

import datetime as dt
import io
import re
import zipfile
from typing import Any

from . import measure
from .blocks import Run, Text
from .flow import Flow, PlacedPicture, PlacedTable, Slide, TextBox
from .grid import MARGIN_X, MARGIN_Y

_INK, _TITLE_INK, _ACCENT, _QUIET = "1F2328", "14202E", "2F5D8A", "57606A"
_CODE_BACK, _CODE_EDGE = "F6F8FA", "E1E5EA"
_CODE_FONT = "Consolas"
_COVER, _CONTENT, _TITLE_ONLY = 0, 1, 5
#: A date that never changes, in place of the moment of writing; the format has no time zone.
_EPOCH = dt.datetime(2000, 1, 1)
_ZIP_EPOCH = (2000, 1, 1, 0, 0, 0)
#: What XML cannot hold.
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def draw(slides: list[Slide], flow: Flow, title: str) -> bytes:
    """A presentation.

    Args:
        slides: what to draw.
        flow: the measures they were made for.
        title: of the file's properties.
    """
    from pptx import Presentation
    from pptx.util import Pt

    presentation = Presentation()
    _fit_template(presentation, Pt(flow.width), Pt(flow.height))
    properties = presentation.core_properties
    properties.title = legal(title)[:255]
    properties.author = properties.last_modified_by = ""
    properties.created = properties.modified = _EPOCH
    properties.revision = 1
    painter = _Painter(presentation, flow)
    for slide in slides:
        painter.slide(slide)
    out = io.BytesIO()
    presentation.save(out)
    return _undated(out.getvalue())


def legal(text: str) -> str:
    """Text without what XML cannot hold."""
    return _ILLEGAL.sub("", text)


def _fit_template(presentation: Any, width: int, height: int) -> None:
    """Stretch the template, whose slides are 4:3, to the size that is asked for."""
    across, down = width / presentation.slide_width, height / presentation.slide_height
    presentation.slide_width, presentation.slide_height = width, height
    master = presentation.slide_master
    for holder in (master, *presentation.slide_layouts):
        for shape in holder.shapes:
            place = shape.left, shape.top, shape.width, shape.height
            if None in place or shape.element.xpath("./p:spPr[not(a:xfrm)]"):
                continue  # it takes its place from the master
            shape.left, shape.width = int(place[0] * across), int(place[2] * across)
            shape.top, shape.height = int(place[1] * down), int(place[3] * down)


def _undated(data: bytes) -> bytes:
    """The same archive without the time of writing."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            info = zipfile.ZipInfo(name, _ZIP_EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(info, old.read(name))
    return out.getvalue()


class _Painter:
    def __init__(self, presentation: Any, flow: Flow) -> None:
        self._presentation = presentation
        self._flow = flow
        self._scale = flow.scale

    def slide(self, slide: Slide) -> None:
        if slide.cover:
            self._cover(slide)
            return
        has_text = any(isinstance(item, TextBox) and not item.code for item in slide.items)
        drawn = self._add(_CONTENT if has_text else _TITLE_ONLY)
        self._title(drawn, slide.title)
        body = drawn.placeholders[1] if has_text else None
        for item in slide.items:
            match item:
                case TextBox(code=True):
                    self._code(drawn, item)
                case TextBox():
                    # The first goes where the outline view looks for a slide's text.
                    self._text(drawn, item, body)
                    body = None
                case PlacedPicture():
                    self._picture(drawn, item)
                case PlacedTable():
                    self._table(drawn, item)

    def _add(self, layout: int) -> Any:
        return self._presentation.slides.add_slide(self._presentation.slide_layouts[layout])

    def _points(self, *values: float) -> list[Any]:
        from pptx.util import Pt

        return [Pt(value) for value in values]

    def _cover(self, slide: Slide) -> None:
        flow, scale = self._flow, self._scale
        drawn = self._add(_COVER)
        title, subtitle = drawn.shapes.title, drawn.placeholders[1]
        size = 44 if len(slide.title) <= 60 else 34 if len(slide.title) <= 120 else 26
        half = flow.height / 2
        self._place(title, flow.left, half - 140 * scale, flow.body, 130 * scale)
        title.text_frame.text = legal(slide.title)
        self._frame(title.text_frame, anchor="bottom")
        self._title_look(title.text_frame, size * scale)
        self._rule(drawn, half + 4 * scale, 120 * scale)
        if slide.subtitle is None:
            subtitle.element.getparent().remove(subtitle.element)
            return
        self._place(subtitle, flow.left, half + 18 * scale, flow.body, 130 * scale)
        self._frame(subtitle.text_frame, anchor="top")
        paragraph = subtitle.text_frame.paragraphs[0]
        self._left(paragraph)
        for run in slide.subtitle.runs:
            self._run(paragraph, run, 20 * scale, _QUIET)

    def _title(self, drawn: Any, text: str) -> None:
        flow, scale = self._flow, self._scale
        title = drawn.shapes.title
        if not text:
            title.element.getparent().remove(title.element)
            return
        lines = measure.plain_lines(text, flow.body, 28 * scale)
        size = 28 if lines == 1 else 22 if lines == 2 else 16
        self._place(title, flow.left, 28 * scale, flow.body, 58 * scale)
        title.text_frame.text = legal(text)
        self._frame(title.text_frame, anchor="bottom")
        self._title_look(title.text_frame, size * scale)
        self._rule(drawn, 90 * scale, flow.body)

    def _title_look(self, frame: Any, size: float) -> None:
        from pptx.util import Pt

        for paragraph in frame.paragraphs:
            self._left(paragraph)
            paragraph.font.size = Pt(size)
            paragraph.font.bold = True
            paragraph.font.color.rgb = _colour(_TITLE_INK)

    def _left(self, paragraph: Any) -> None:
        from pptx.enum.text import PP_ALIGN

        paragraph.alignment = PP_ALIGN.LEFT

    def _rule(self, drawn: Any, top: float, width: float) -> None:
        from pptx.enum.shapes import MSO_SHAPE

        place = self._points(self._flow.left, top, width, 2 * self._scale)
        line = drawn.shapes.add_shape(MSO_SHAPE.RECTANGLE, *place)
        line.name = "Rule"
        line.fill.solid()
        line.fill.fore_color.rgb = _colour(_ACCENT)
        line.line.fill.background()
        line.shadow.inherit = False

    def _place(self, shape: Any, left: float, top: float, width: float, height: float) -> None:
        shape.left, shape.top, shape.width, shape.height = self._points(left, top, width, height)

    def _frame(self, frame: Any, *, anchor: str = "top", padding: float = 0) -> None:
        from pptx.enum.text import MSO_ANCHOR, MSO_AUTO_SIZE

        frame.word_wrap = True
        frame.auto_size = MSO_AUTO_SIZE.NONE
        frame.vertical_anchor = {"top": MSO_ANCHOR.TOP, "bottom": MSO_ANCHOR.BOTTOM}[anchor]
        edge = self._points(padding)[0]
        frame.margin_left = frame.margin_right = frame.margin_top = frame.margin_bottom = edge

    # Contents ---------------------------------------------------------------------------------------

    def _text(self, drawn: Any, box: TextBox, body: Any) -> None:
        flow = self._flow
        if body is None:
            shape = drawn.shapes.add_textbox(*self._points(flow.left, box.top, flow.body, box.height))
        else:
            shape = body
            self._place(shape, flow.left, box.top, flow.body, box.height)
        self._frame(shape.text_frame)
        starts = _sequence_starts(box.texts)
        for index, text in enumerate(box.texts):
            paragraph = shape.text_frame.paragraphs[0] if index == 0 else shape.text_frame.add_paragraph()
            self._paragraph(paragraph, text, starts[index])

    def _code(self, drawn: Any, box: TextBox) -> None:
        from pptx.util import Pt

        flow = self._flow
        shape = drawn.shapes.add_textbox(*self._points(flow.left, box.top, flow.body, box.height))
        shape.name = "Code"
        shape.fill.solid()
        shape.fill.fore_color.rgb = _colour(_CODE_BACK)
        shape.line.color.rgb = _colour(_CODE_EDGE)
        shape.line.width = Pt(0.75)
        self._frame(shape.text_frame, padding=8 * self._scale)
        for text in box.texts:
            size = measure.size_of(text, self._scale)
            for index, line in enumerate(text.plain.split("\n")):
                first = index == 0 and text is box.texts[0]
                paragraph = shape.text_frame.paragraphs[0] if first else shape.text_frame.add_paragraph()
                self._left(paragraph)
                self._run(paragraph, Run(line, code=True), size, _INK)

    def _paragraph(self, paragraph: Any, text: Text, number: int) -> None:
        from pptx.util import Pt

        size = measure.size_of(text, self._scale)
        paragraph.level = min(text.level, 8)
        paragraph.space_before = Pt(0)
        paragraph.space_after = Pt(size * measure.GAP)
        self._left(paragraph)
        _mark(
            paragraph,
            text,
            number,
            Pt(measure.indent_of(text, self._scale)),
            Pt(measure.INDENT * 18 * self._scale),
        )
        ink = _QUIET if text.style in ("quote", "caption") else _INK
        for run in text.runs:
            look = Run(
                run.text,
                run.bold or text.style == "heading",
                run.italic or text.style in ("quote", "caption"),
                run.code,
                run.struck,
                run.raised,
                run.link,
            )
            self._run(paragraph, look, size, _ACCENT if text.style == "heading" else ink)

    def _run(self, paragraph: Any, look: Run, size: float, ink: str) -> None:
        from pptx.util import Pt

        for index, line in enumerate(legal(look.text).split("\n")):
            if index:
                paragraph.add_line_break()
            if not line:
                continue
            run = paragraph.add_run()
            run.text = line
            font = run.font
            font.size = Pt(size)
            font.bold = look.bold or None
            font.italic = look.italic or None
            if look.code:
                font.name = _CODE_FONT
            if look.link:
                run.hyperlink.address = legal(look.link)[:2000]
            else:
                font.color.rgb = _colour(ink)
            properties = run.font._element  # noqa: SLF001  python-pptx has no property for these two
            if look.struck:
                properties.set("strike", "sngStrike")
            if look.raised:
                properties.set("baseline", "30000")

    def _picture(self, drawn: Any, item: PlacedPicture) -> None:
        place = self._points(item.left, item.top, item.width, item.height)
        shape = drawn.shapes.add_picture(io.BytesIO(item.picture.data), *place)
        name = shape.element.xpath("./p:nvPicPr/p:cNvPr")[0]
        name.set("descr", legal(item.picture.alt)[:1000])

    def _table(self, drawn: Any, item: PlacedTable) -> None:
        from pptx.enum.text import MSO_ANCHOR, PP_ALIGN
        from pptx.util import Pt

        size = self._points(item.left, item.top, sum(item.columns), sum(item.heights))
        table = drawn.shapes.add_table(len(item.rows), len(item.columns), *size).table
        table.first_row = item.heads > 0
        for index, width in enumerate(item.columns):
            table.columns[index].width = Pt(width)
        for row, (cells, height) in enumerate(zip(item.rows, item.heights, strict=True)):
            table.rows[row].height = Pt(height)
            column = 0
            for cell in cells:
                drawn_cell = table.cell(row, column)
                if cell.span > 1:
                    drawn_cell.merge(table.cell(row, column + cell.span - 1))
                column += cell.span
                drawn_cell.margin_left = drawn_cell.margin_right = Pt(MARGIN_X / 2 * self._scale)
                drawn_cell.margin_top = drawn_cell.margin_bottom = Pt(MARGIN_Y / 2 * self._scale)
                drawn_cell.vertical_anchor = MSO_ANCHOR.MIDDLE
                drawn_cell.text = legal(cell.text)
                for paragraph in drawn_cell.text_frame.paragraphs:
                    paragraph.font.size = Pt(item.size)
                    paragraph.font.bold = cell.bold or None
                    if cell.right:
                        paragraph.alignment = PP_ALIGN.RIGHT


def _colour(text: str) -> Any:
    from pptx.dml.color import RGBColor

    return RGBColor.from_string(text)  # type: ignore[no-untyped-call]  # python-pptx has no types there


def _sequence_starts(texts: list[Text]) -> list[int]:
    """For each paragraph the number that its list begins with in this box: the viewer counts from there."""
    begun: dict[int, int] = {}
    expected: dict[int, int] = {}
    found = []
    for text in texts:
        for level in [level for level in begun if level > text.level]:
            del begun[level]
        if text.style == "number":
            if begun.get(text.level) is None or expected.get(text.level) != text.number:
                begun[text.level] = text.number
            expected[text.level] = text.number + 1
        found.append(begun.get(text.level, 1))
    return found


def _mark(paragraph: Any, text: Text, number: int, indent: int, hang: int) -> None:
    """Bullet, number or none, and how far the text stands in."""
    from lxml import etree  # type: ignore[import-untyped]  # it ships none

    properties = paragraph._p.get_or_add_pPr()  # noqa: SLF001  python-pptx has no property for bullets
    properties.set("marL", str(int(indent)))
    properties.set("indent", str(-int(hang) if text.style in ("bullet", "number") else 0))
    space = properties.nsmap["a"]
    if text.style == "bullet":
        etree.SubElement(properties, f"{{{space}}}buFont", typeface="Arial")
        etree.SubElement(properties, f"{{{space}}}buChar", char="•" if text.level % 2 == 0 else "◦")
    elif text.style == "number":
        etree.SubElement(properties, f"{{{space}}}buFont", typeface="+mj-lt")
        etree.SubElement(
            properties, f"{{{space}}}buAutoNum", type="arabicPeriod", startAt=str(max(1, number))
        )
    else:
        etree.SubElement(properties, f"{{{space}}}buNone")
