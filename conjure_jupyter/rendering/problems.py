"""Why a document, or a part of it, cannot be rendered: words for Claude, made in the child."""

from __future__ import annotations


class RenderProblem(Exception):  # noqa: N818  it ends a rendering or a part of one, as its text says
    """The document cannot be rendered; the text says why and what to do."""


class ResourceProblem(Exception):  # noqa: N818
    """Something that the document refers to cannot be used; the text is the reason."""
