"""Columns and rows of a table on slides. Lengths are points."""

from __future__ import annotations

from dataclasses import dataclass, replace

from . import measure
from .blocks import Cell, Table

#: Space in a cell: left and right together, above and below together.
MARGIN_X, MARGIN_Y = 12.0, 6.0
_LONGEST = 60


@dataclass(frozen=True, slots=True)
class Grid:
    """A table with its measures."""

    columns: list[float]
    heights: list[float]
    rows: list[list[Cell]]
    size: float


def grid(table: Table, width: float, height: float, scale: float) -> Grid:
    """Measure a table.

    Args:
        table: its rows, all of as many columns.
        width: it may have.
        height: a row may have; a longer cell is cut.
        scale: of the slide.
    """
    count = sum(cell.span for cell in table.rows[0])
    size = max(6.0, round((14 if count <= 6 else 12 if count <= 10 else 9) * scale * 2) / 2)
    wishes = [2.0] * count
    for row in table.rows:
        column = 0
        for cell in row:
            if cell.span == 1:
                wishes[column] = max(wishes[column], sum(map(measure.letter, cell.text[:_LONGEST])) * 1.1)
            column += cell.span
    natural = [wish * size + MARGIN_X * scale for wish in wishes]
    factor = min(1.0, width / sum(natural))
    if sum(natural) < 0.4 * width:
        factor = 0.4 * width / sum(natural)
    columns = [wish * factor for wish in natural]
    most = max(1, int((height / 2 - MARGIN_Y * scale) / (size * measure.LINE)))
    rows = [_cut(row, columns, size, most, scale) for row in table.rows]
    heights = [_height(row, columns, size, scale) for row in rows]
    return Grid(columns, heights, rows, size)


def _widths(row: list[Cell], columns: list[float], scale: float) -> list[float]:
    """The width for text of each cell of a row."""
    found, column = [], 0
    for cell in row:
        found.append(sum(columns[column : column + cell.span]) - MARGIN_X * scale)
        column += cell.span
    return found


def _height(row: list[Cell], columns: list[float], size: float, scale: float) -> float:
    widths = _widths(row, columns, scale)
    lines = max(measure.plain_lines(cell.text, width, size) for cell, width in zip(row, widths, strict=True))
    return lines * size * measure.LINE + MARGIN_Y * scale


def _cut(row: list[Cell], columns: list[float], size: float, most: int, scale: float) -> list[Cell]:
    found = []
    for cell, width in zip(row, _widths(row, columns, scale), strict=True):
        room = max(1, int(width / (0.55 * size))) * most
        found.append(replace(cell, text=cell.text[: room - 1] + "…") if len(cell.text) > room else cell)
    return found
