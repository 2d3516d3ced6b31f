"""Pages of a PDF as PNG images, by PDFium. Runs in the child."""

from __future__ import annotations

import io
import math
from typing import Any

from . import limits

#: Pixels of an image for each point of a page: 144 to an inch.
SCALE = 2.0


def images(pdf: bytes, *, scale: float = SCALE) -> list[bytes]:
    """The first pages as PNG images; a very large page gets fewer pixels for each point."""
    import pypdfium2  # type: ignore[import-untyped]  # it ships none

    document = pypdfium2.PdfDocument(pdf)
    try:
        return [_image(document[index], scale) for index in range(min(len(document), limits.PNG_PAGES))]
    finally:
        document.close()


def _image(page: Any, scale: float) -> bytes:
    width, height = page.get_size()
    scale = min(scale, math.sqrt(limits.PAGE_PIXELS / max(width * height, 1.0)))
    out = io.BytesIO()
    page.render(scale=scale).to_pil().save(out, "PNG")
    return out.getvalue()
