"""HTML and Markdown as PDF, PNG and PowerPoint.

Documents are written by the model and by skills, so they are hostile: they are read and rendered only in a
process of their own (``child``), which is bounded (``limits``), gets no path and no network, and asks its
parent (``process``) for each thing that a document refers to. The parent reads that through the executor
(``assets``), and so from the place where the tools work.

WeasyPrint, PDFium and python-pptx are imported in that process alone.
"""

from __future__ import annotations

from importlib.util import find_spec

from .assets import Assets
from .contract import CitedSource, Fetch, Format, Job, Rendering, Target
from .pages import Page, parse_page
from .process import render

__all__ = [
    "Assets",
    "CitedSource",
    "Fetch",
    "Format",
    "Job",
    "Page",
    "Rendering",
    "Target",
    "can_render",
    "parse_page",
    "render",
]


def can_render() -> bool:
    """Whether the packages are installed; looks for them, loads none."""
    return all(find_spec(name) for name in ("weasyprint", "pypdfium2", "pptx"))
