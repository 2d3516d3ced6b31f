"""What a presentation is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Style = Literal["text", "bullet", "number", "heading", "code", "quote", "caption"]


@dataclass(frozen=True, slots=True)
class Run:
    """A piece of text with one look; a line feed in it breaks the line.

    Attributes:
        text: what it says.
        link: where it leads, on the web.
        raised: how a citation stands.
    """

    text: str
    bold: bool = False
    italic: bool = False
    code: bool = False
    struck: bool = False
    raised: bool = False
    link: str | None = None


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph.

    Attributes:
        runs: what it says.
        style: what it is.
        level: how deep in lists, from 0.
        number: of a ``number`` item.
    """

    runs: tuple[Run, ...]
    style: Style = "text"
    level: int = 0
    number: int = 1

    @property
    def plain(self) -> str:
        """The text alone."""
        return "".join(run.text for run in self.runs)


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading that begins a slide: 1 a title slide, 2 an ordinary one."""

    text: str
    level: int


@dataclass(frozen=True, slots=True)
class Picture:
    """An image of a kind that PowerPoint knows, with its size in pixels."""

    data: bytes
    width: float
    height: float
    alt: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table; it stretches over ``span`` columns."""

    text: str
    bold: bool = False
    right: bool = False
    span: int = 1


@dataclass(frozen=True, slots=True)
class Table:
    """A table; the first ``heads`` rows are its head."""

    rows: list[list[Cell]] = field(default_factory=list)
    heads: int = 0


@dataclass(frozen=True, slots=True)
class Break:
    """A line across: what follows goes to the next slide."""


Block: TypeAlias = Text | Heading | Picture | Table | Break
