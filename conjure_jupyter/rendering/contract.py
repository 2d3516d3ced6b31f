"""What is rendered, and what comes of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from .pages import Page

Format: TypeAlias = Literal["html", "markdown"]
Target: TypeAlias = Literal["pdf", "png", "pptx"]

#: Gives the bytes of what a document refers to, by its URL (see ``assets``); raises ``ToolError`` with the
#: reason when there are none to be had.
Fetch: TypeAlias = Callable[[str], Awaitable[bytes]]


@dataclass(frozen=True, slots=True)
class CitedSource:
    """A source that a document cites as ``[[S:3]]``.

    Attributes:
        title: what the list of sources calls it.
        detail: where it is, as people read it; empty when the title says it.
        url: where it was fetched from; None for a file.
        is_file: whether its bytes can be had, as those of an image.
    """

    title: str
    detail: str = ""
    url: str | None = None
    is_file: bool = False


@dataclass(frozen=True, slots=True)
class Job:
    """A document and what to make of it.

    Attributes:
        text: HTML or Markdown.
        format: which of them.
        target: what to make.
        folder: what relative references start from: a folder relative to the working directory, or empty.
        title: the title in the result's properties; None takes the document's own.
        page: the size of a page or slide; None leaves it to the document.
        sources: what its citations stand for, by number; a number that is missing here has no source.
    """

    text: str
    format: Format
    target: Target
    folder: str = ""
    title: str | None = None
    page: Page | None = None
    sources: Mapping[int, CitedSource] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rendering:
    """The result.

    Attributes:
        files: the bytes of each file: one, or as many PNG images as there are pages.
        pages: pages or slides that the document has.
        notices: what was left out, each a sentence.
    """

    files: list[bytes]
    pages: int
    notices: list[str]
