"""From a document to the bytes of a presentation."""

from __future__ import annotations

from ..contract import Job
from ..document import base_of, parse, prepare
from ..pages import SLIDE
from ..problems import RenderProblem
from ..resources import Resources
from .blocks import Heading
from .deck import draw
from .extract import blocks
from .flow import Flow
from .pictures import Pictures

_POINTS = 72 / 25.4


def render(html: str, job: Job, resources: Resources) -> tuple[bytes, int, list[str]]:
    """A document as a presentation, its number of slides, and what was left out.

    Raises:
        RenderProblem: there is nothing in it, or too much.
    """
    root = parse(html)
    prepare(root, base=base_of(job.folder), resources=resources, sources=job.sources, title=job.title)
    body = root.find("body")
    pictures = Pictures(resources)
    found = [] if body is None else list(blocks(body, pictures))
    if not found:
        raise RenderProblem("there is nothing to show in it")
    element = root.find("head/title")
    title = " ".join((element.text or "").split()) if element is not None else ""
    heading = next((block.text for block in found if isinstance(block, Heading)), "")
    page = job.page or SLIDE
    flow = Flow(page.width * _POINTS, page.height * _POINTS, title)
    slides = flow.add_all(found)
    return draw(slides, flow, title or heading), len(slides), pictures.notices
