"""Putting blocks on slides: what does not fit goes on to the next one. Lengths are points."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from .. import limits
from ..problems import RenderProblem
from . import measure
from .blocks import Block, Break, Cell, Heading, Picture, Run, Table, Text
from .grid import Grid, grid

#: A slide as all sizes here were chosen for: 16:9.
WIDTH, HEIGHT = 960.0, 540.0
#: Longest text of a title.
_TITLE = 200
#: Longest paragraph that goes under the title of a title slide.
_SUBTITLE = 220
_PADDING = 8.0


@dataclass(frozen=True, slots=True)
class TextBox:
    """Paragraphs in a box; ``code`` boxes are set off."""

    top: float
    height: float
    texts: list[Text]
    code: bool = False


@dataclass(frozen=True, slots=True)
class PlacedPicture:
    """A picture and where it goes."""

    left: float
    top: float
    width: float
    height: float
    picture: Picture


@dataclass(frozen=True, slots=True)
class PlacedTable:
    """Rows of a table and where they go."""

    left: float
    top: float
    columns: list[float]
    heights: list[float]
    rows: list[list[Cell]]
    heads: int
    size: float


Item: TypeAlias = TextBox | PlacedPicture | PlacedTable


@dataclass(slots=True)
class Slide:
    """A slide; a ``cover`` has a title and the paragraph under it, and nothing else."""

    title: str
    cover: bool = False
    subtitle: Text | None = None
    items: list[Item] = field(default_factory=list)


class Flow:
    """Fills slides, block by block.

    Args:
        width: of a slide.
        height: of a slide.
        title: of what comes before the first heading.
    """

    def __init__(self, width: float, height: float, title: str = "") -> None:
        self.width, self.height = width, height
        self.scale = min(width / WIDTH, height / HEIGHT)
        self.left = 48 * self.scale
        self.body = width - 2 * self.left
        self.top, self.bottom = 108 * self.scale, height - 34 * self.scale
        self.slides: list[Slide] = []
        self._title = title
        self._y = self.top
        self._open: list[Text] = []
        self._open_top = self.top
        self._wants_new = False

    def add_all(self, blocks: Iterable[Block]) -> list[Slide]:
        """The slides of a document.

        Raises:
            RenderProblem: they are too many.
        """
        for block in blocks:
            match block:
                case Heading():
                    self._heading(block)
                case Break():
                    self._wants_new = True
                case Text():
                    self._text(block)
                case Picture():
                    self._picture(block)
                case Table():
                    self._table(block)
        self._close()
        return self.slides

    # Slides -----------------------------------------------------------------------------------------

    def _new(self, title: str, *, cover: bool = False) -> Slide:
        self._close()
        if len(self.slides) >= limits.PAGES:
            raise RenderProblem(f"the document has more than {limits.PAGES} slides; split it or shorten it")
        slide = Slide(title[:_TITLE] + ("…" if len(title) > _TITLE else ""), cover)
        self.slides.append(slide)
        self._y = self.top if title else self.left
        self._wants_new = False
        return slide

    def _heading(self, heading: Heading) -> None:
        self._title = heading.text
        self._new(heading.text, cover=heading.level == 1)

    def _slide(self) -> Slide:
        """The slide that content goes on."""
        last = self.slides[-1] if self.slides else None
        if last is None or last.cover:
            return self._new(self._title)
        return self._new(self._title) if self._wants_new else last

    def _further(self) -> Slide:
        title = self._title
        return self._new(f"{title} (continued)" if title else "")

    def _room(self) -> float:
        return self.bottom - self._y

    # Text -------------------------------------------------------------------------------------------

    def _text(self, text: Text) -> None:
        last = self.slides[-1] if self.slides else None
        if (
            last is not None
            and last.cover
            and last.subtitle is None
            and not self._wants_new
            and text.style in ("text", "quote")
            and len(text.plain) <= _SUBTITLE
        ):
            last.subtitle = text
            return
        self._slide()
        code = text.style == "code"
        if code:
            self._close()
        width = self.body - (2 * _PADDING if code else 0)
        starts = measure.line_starts(text, width, self.scale)
        line = measure.size_of(text, self.scale) * measure.LINE
        extra = 2 * _PADDING if code else measure.height_of(text, 0, self.scale)
        done = 0
        while done < len(starts):
            fits = int((self._room() - extra) / line + 1e-6)
            left = len(starts) - done
            # A heading stays with what follows it; two lines alone are not worth a break.
            needed = min(left, 2) + (2 if text.style == "heading" else 0)
            if fits < needed and self._y > self.top + 1:
                self._further()
                continue
            count = max(min(left, fits), 1)
            part = _part(text, starts, done, done + count)
            self._put(part, measure.height_of(text, count, self.scale) + (2 * _PADDING if code else 0))
            done += count
            if code:
                self._close()

    def _put(self, text: Text, height: float) -> None:
        if not self._open:
            self._open_top = self._y
        self._open.append(text)
        self._y += height

    def _close(self) -> None:
        """Put the paragraphs gathered so far in a box."""
        if not self._open:
            return
        texts, self._open = self._open, []
        code = texts[0].style == "code"
        self.slides[-1].items.append(TextBox(self._open_top, self._y - self._open_top, texts, code))
        self._y += 6 * self.scale if code else 0

    # Pictures and tables ----------------------------------------------------------------------------

    def _picture(self, picture: Picture) -> None:
        self._slide()
        self._close()
        natural = min(self.body / max(picture.width, 1), 0.75 * 1.6)
        if self._y > self.top + 1 and self._room() < min(
            picture.height * natural, 0.45 * (self.bottom - self.top)
        ):
            self._further()
        ratio = min(natural, self._room() / max(picture.height, 1))
        width, height = max(picture.width * ratio, 1), max(picture.height * ratio, 1)
        left = (self.width - width) / 2
        self.slides[-1].items.append(PlacedPicture(left, self._y, width, height, picture))
        self._y += height + 8 * self.scale

    def _table(self, table: Table) -> None:
        if not table.rows:
            return
        self._slide()
        self._close()
        whole = grid(table, self.body, self.bottom - self.top, self.scale)
        head = sum(whole.heights[: table.heads])
        done = table.heads
        if self._y > self.top + 1 and head + sum(whole.heights[done : done + 2]) > self._room():
            self._further()
        while True:
            end, room = done, self._room() - head
            while end < len(table.rows) and (whole.heights[end] <= room or end == done):
                room -= whole.heights[end]
                end += 1
            self._put_table(whole, table.heads, done, end)
            if end >= len(table.rows):
                return
            done = end
            self._further()

    def _put_table(self, whole: Grid, heads: int, start: int, end: int) -> None:
        rows = [*whole.rows[:heads], *whole.rows[start:end]]
        heights = [*whole.heights[:heads], *whole.heights[start:end]]
        item = PlacedTable(self.left, self._y, whole.columns, heights, rows, heads, whole.size)
        self.slides[-1].items.append(item)
        self._y += sum(heights) + 12 * self.scale


def _part(text: Text, starts: list[int], first: int, last: int) -> Text:
    """Some of the lines of a paragraph; what goes on on another slide has no mark of its own."""
    if first == 0 and last >= len(starts):
        return text
    begin = starts[first]
    end = starts[last] if last < len(starts) else len(text.plain)
    runs: list[Run] = []
    position = 0
    for run in text.runs:
        piece = run.text[max(begin - position, 0) : max(end - position, 0)]
        position += len(run.text)
        if piece:
            runs.append(replace(run, text=piece))
    if runs:
        runs[-1] = replace(runs[-1], text=runs[-1].text.rstrip())
    if first and text.style in ("bullet", "number"):
        return replace(text, runs=tuple(runs), style="text", level=text.level + 1)
    return replace(text, runs=tuple(runs))
