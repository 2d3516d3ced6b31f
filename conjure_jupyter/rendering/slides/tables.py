"""Tables, as rows of cells with text alone."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from ..document import text_of
from .blocks import Cell, Table

#: Columns and rows that are shown; a slide with more can be read by nobody.
COLUMNS, ROWS = 20, 1000


def table(element: Element) -> Table:
    """The rows of a table, filled up to the same number of columns; nested tables are text of their cell.

    A cell over several rows is filled in where it begins.
    """
    rows: list[list[Cell]] = []
    heads = 0
    hanging: dict[int, int] = {}
    for row, in_head in _rows(element):
        if len(rows) == ROWS:
            rows.append([Cell(f"… more than {ROWS} rows")])
            break
        cells, all_heads = _cells(row, hanging, in_head=in_head)
        if heads == len(rows) and cells and (in_head or all_heads):
            heads += 1
        rows.append(cells)
    width = min(max((sum(cell.span for cell in row) for row in rows), default=0), COLUMNS)
    filled = [_filled(row, width) for row in rows] if width else []
    return Table(filled, heads if heads < len(filled) else min(heads, 1))


def _rows(element: Element) -> Iterator[tuple[Element, bool]]:
    for child in element:
        if child.tag == "tr":
            yield child, False
        elif child.tag in ("thead", "tbody", "tfoot"):
            for row in child:
                if row.tag == "tr":
                    yield row, child.tag == "thead"


def _cells(row: Element, hanging: dict[int, int], *, in_head: bool) -> tuple[list[Cell], bool]:
    """Cells of a row; ``hanging`` counts the rows that cells from above still take, by column."""
    cells: list[Cell] = []
    column, all_heads = 0, True
    for cell in row:
        if cell.tag not in ("td", "th"):
            continue
        while hanging.get(column, 0):
            hanging[column] -= 1
            cells.append(Cell(""))
            column += 1
        span, down = _count(cell.get("colspan")), _count(cell.get("rowspan"))
        for index in range(column, column + span):
            if down > 1:
                hanging[index] = down - 1
        all_heads = all_heads and cell.tag == "th"
        bold = in_head or cell.tag == "th"
        cells.append(Cell(text_of(cell), bold, _is_right(cell), span))
        column += span
    return cells, all_heads and bool(cells)


def _filled(row: list[Cell], width: int) -> list[Cell]:
    """A row of exactly so many columns."""
    filled: list[Cell] = []
    room = width
    for cell in row:
        if room <= 0:
            break
        span = min(cell.span, room)
        filled.append(Cell(cell.text, cell.bold, cell.right, span))
        room -= span
    return filled + [Cell("")] * room


def _is_right(cell: Element) -> bool:
    style = (cell.get("style") or "").replace(" ", "").lower()
    return (cell.get("align") or "").lower() == "right" or "text-align:right" in style


def _count(text: str | None) -> int:
    return min(int(text), COLUMNS) if text and text.isascii() and text.isdecimal() and int(text[:3]) else 1
