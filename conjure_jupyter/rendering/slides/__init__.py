"""Presentations by python-pptx: a document's headings make slides, its blocks fill them. Runs in the child.

``extract`` reads blocks from the tree, ``flow`` puts them on slides and goes on to further ones, ``deck``
draws. The document's CSS has no say: a presentation has a look of its own.
"""

from __future__ import annotations

from .build import render

__all__ = ["render"]
