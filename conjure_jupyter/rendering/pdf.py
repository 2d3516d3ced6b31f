"""PDF by WeasyPrint, whose every look outside goes through ``Resources``. Runs in the child."""

from __future__ import annotations

import logging
from importlib.resources import files
from typing import Any

from . import limits
from .contract import Job
from .document import base_of, prepare
from .pages import Page
from .problems import RenderProblem, ResourceProblem
from .resources import Resources


def render(html: str, job: Job, resources: Resources) -> tuple[bytes, int]:
    """A document as PDF, and its number of pages; the same document gives the same bytes.

    Raises:
        RenderProblem: it has too many pages.
    """
    from weasyprint import HTML  # type: ignore[import-untyped]  # it ships none

    fetcher = _fetcher(resources)
    document = HTML(string=html, base_url=base_of(job.folder), url_fetcher=fetcher)
    document.base_url = prepare(
        document.etree_element,
        base=base_of(job.folder),
        resources=resources,
        sources=job.sources,
        title=job.title,
    )
    return _laid_out(document, fetcher, _stylesheet(job.page))


def svg_page(url: str, width: float, height: float, resources: Resources) -> bytes:
    """An SVG image as a PDF page of its own, in CSS pixels."""
    from weasyprint import HTML

    fetcher = _fetcher(resources)
    style = f"@page {{ size: {width:.2f}px {height:.2f}px; margin: 0 }} html, body {{ margin: 0 }}"
    document = HTML(string="<img>", base_url=base_of(""), url_fetcher=fetcher)
    for image in document.etree_element.iter("img"):
        image.set("src", url)
        image.set("style", f"display: block; width: {width:.2f}px; height: {height:.2f}px")
    return _laid_out(document, fetcher, style)[0]


def _laid_out(document: Any, fetcher: Any, style: str) -> tuple[bytes, int]:
    from weasyprint import CSS
    from weasyprint.text.fonts import FontConfiguration  # type: ignore[import-untyped]  # as above
    from weasyprint.urls import URLFetchingError  # type: ignore[import-untyped]  # as above

    fonts = FontConfiguration()
    progress = logging.getLogger("weasyprint.progress")
    progress.setLevel(logging.INFO)
    stop = _StopAtPage()
    progress.addFilter(stop)
    try:
        sheet = CSS(string=style, url_fetcher=fetcher, font_config=fonts)
        laid_out = document.render(font_config=fonts, stylesheets=[sheet], presentational_hints=True)
        if len(laid_out.pages) > limits.PAGES:
            raise stop.problem()
        # No date and no identifier are written unless the document has one: both would be of this moment.
        return laid_out.write_pdf(), len(laid_out.pages)
    except URLFetchingError as error:
        # Most of what cannot be had is left out; of this (a colour profile) WeasyPrint makes a failure.
        reason = str(error).partition(": ")[2]
        raise RenderProblem(f"it does not work without a file that it refers to: {reason}") from error
    finally:
        progress.removeFilter(stop)


class _StopAtPage(logging.Filter):
    """Ends a layout at a page too many.

    WeasyPrint has no limit and no hook for one, but it logs each page as it begins it; what a log's filter
    raises goes up to whoever logged.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Look at what is logged."""
        if "Page %d" in str(record.msg) and isinstance(record.args, tuple) and record.args:
            page = record.args[0]
            if isinstance(page, int) and page > limits.PAGES:
                raise self.problem()
        return True

    def problem(self) -> RenderProblem:
        """What is said then."""
        return RenderProblem(
            f"the document has more than {limits.PAGES} pages; split it, or make its text smaller"
        )


def _stylesheet(page: Page | None) -> str:
    text = files(__package__).joinpath("default.css").read_text(encoding="utf-8")
    if page is None:
        return text
    # Asked for in the call: it wins over what the document says.
    return text + f"@page {{ size: {page.width:.2f}mm {page.height:.2f}mm !important }}\n"


def _fetcher(resources: Resources) -> Any:
    from weasyprint.urls import URLFetcher, URLFetcherResponse

    class Fetcher(URLFetcher):  # type: ignore[misc]  # WeasyPrint has no types
        """Serves what the parent gives and knows no protocol itself."""

        def fetch(self, url: str, headers: object = None) -> Any:  # noqa: ARG002  WeasyPrint's signature
            """The response for a URL; WeasyPrint goes on without what raises."""
            try:
                found = resources.get(url)
            except ResourceProblem as problem:
                raise ValueError(str(problem)) from problem
            # WeasyPrint opens the file of a file: URL by itself, later and without asking.
            url = "workspace:" + url[5:] if url[:5].lower() == "file:" else url
            return URLFetcherResponse(url, found.data, {"Content-Type": found.mime})

    return Fetcher()
