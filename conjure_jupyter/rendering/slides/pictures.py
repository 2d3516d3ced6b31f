"""Images as PowerPoint takes them: what it does not know is made a PNG."""

from __future__ import annotations

import io
import re
from xml.etree.ElementTree import Element, tostring

from ..problems import ResourceProblem
from ..resources import Resource, Resources, shown
from .blocks import Picture

_TAKEN = frozenset({"image/png", "image/jpeg", "image/gif", "image/bmp", "image/tiff"})
_LENGTH = re.compile(r"\s*([\d.]{1,9})\s*(px|pt|mm|cm|in|)\s*")
_UNITS = {"px": 1.0, "": 1.0, "pt": 96 / 72, "mm": 96 / 25.4, "cm": 96 / 2.54, "in": 96.0}
#: Pixels of the longer side of a drawing.
_DRAWN = 1600
_NO_PANGO = "SVG drawings were left out: on slides they need the Pango library, which is not on this machine"


class Pictures:
    """The images of a document.

    Args:
        resources: gives the bytes.
    """

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self.notices: list[str] = []

    def image(self, element: Element) -> Picture | None:
        """The image of an ``img`` element; None when there is none."""
        url, alt = element.get("src") or "", element.get("alt") or ""
        try:
            found = self._resources.get(url)
        except ResourceProblem:
            return None
        if found.kind == "svg":
            return self._drawing(found.data, url, alt)
        if found.kind != "image":
            return None
        width, height = found.size
        data = found.data if found.mime in _TAKEN else _as_png(found)
        if data is None:
            self._tell(f"{shown(url)} was left out: it cannot be read")
            return None
        return Picture(data, width, height, alt)

    def drawn(self, element: Element) -> Picture | None:
        """The image of an ``svg`` element in the document."""
        import base64

        data = tostring(element)
        url = f"data:image/svg+xml;base64,{base64.b64encode(data).decode()}"
        try:
            self._resources.get(url)
        except ResourceProblem:
            return None
        return self._drawing(data, url, element.get("aria-label") or "")

    def _drawing(self, data: bytes, url: str, alt: str) -> Picture | None:
        try:
            from .. import pdf, png
        except (ImportError, OSError):
            self._tell(_NO_PANGO)
            return None
        width, height = _svg_size(data)
        try:
            page = pdf.svg_page(url, width, height, self._resources)
            image = png.images(page, scale=_DRAWN / max(width, height) * 96 / 72)[0]
        except (ImportError, OSError):
            self._tell(_NO_PANGO)
            return None
        return Picture(image, width, height, alt)

    def _tell(self, text: str) -> None:
        if text not in self.notices:
            self.notices.append(text)


def _as_png(found: Resource) -> bytes | None:
    from PIL import Image

    out = io.BytesIO()
    try:
        with Image.open(io.BytesIO(found.data)) as image:
            image.save(out, "PNG")
    except Exception:  # noqa: BLE001  a decoder may fail in any way on bytes made for that
        return None
    return out.getvalue()


def _svg_size(data: bytes) -> tuple[float, float]:
    """Width and height in CSS pixels, within reason."""
    from xml.etree import ElementTree

    try:
        root = ElementTree.fromstring(data)  # noqa: S314  entities were refused, and this process is bounded
    except ElementTree.ParseError:
        return 400.0, 300.0
    box = [
        float(part) for part in re.findall(r"-?[\d.]+", root.get("viewBox") or "")[:4] if part.count(".") < 2
    ]
    width, height = _length(root.get("width")), _length(root.get("height"))
    if len(box) == 4 and box[2] > 0 and box[3] > 0:
        ratio = box[2] / box[3]
        width = width or (height * ratio if height else box[2])
        height = height or width / ratio
    width, height = width or 400.0, height or 300.0
    return min(max(width, 8.0), 4000.0), min(max(height, 8.0), 4000.0)


def _length(text: str | None) -> float:
    match = _LENGTH.fullmatch(text or "")
    try:
        return float(match[1]) * _UNITS[match[2]] if match else 0.0
    except ValueError:
        return 0.0
