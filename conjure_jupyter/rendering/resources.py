"""What a document refers to: asked of the parent, looked at, and counted. Runs in the child."""

from __future__ import annotations

import base64
import binascii
import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote, unquote_to_bytes, urljoin, urlsplit

from . import limits
from .problems import ResourceProblem

Kind = Literal["image", "svg", "css", "font"]

_IMAGES = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")
_FONTS = (b"\0\1\0\0", b"OTTO", b"true", b"ttcf", b"wOFF", b"wOF2")
_DATA = re.compile(r"data:([^,]*),(.*)", re.DOTALL | re.IGNORECASE)
_SVG = re.compile(rb"<(?:[\w.-]+:)?svg[\s>/]", re.IGNORECASE)
_MIME = {"svg": "image/svg+xml", "css": "text/css", "font": "font/otf"}


@dataclass(frozen=True, slots=True)
class Resource:
    """Bytes whose kind was told by looking at them.

    Attributes:
        data: the bytes.
        kind: what they are.
        mime: content type.
        size: width and height in pixels of an ``image``; zeros for anything else.
    """

    data: bytes
    kind: Kind
    mime: str
    size: tuple[int, int] = (0, 0)


class Resources:
    """Everything a document refers to, each thing asked for once.

    Args:
        ask: gives the bytes of a URL, or raises ``ResourceProblem``.
    """

    def __init__(self, ask: Callable[[str], bytes]) -> None:
        self._ask = ask
        self._known: dict[str, Resource | str] = {}
        self._bytes = 0
        self._pixels = 0

    def get(self, url: str) -> Resource:
        """An image, stylesheet or font.

        Raises:
            ResourceProblem: there is none, it is none of these, or too much.
        """
        if url not in self._known:
            self._known[url] = self._load(url)
        found = self._known[url]
        if isinstance(found, str):
            raise ResourceProblem(found)
        return found

    def problems(self) -> list[str]:
        """What could not be had, each a sentence; many are counted."""
        told = [
            f"{shown(url)} was left out: {found}"
            for url, found in self._known.items()
            if isinstance(found, str)
        ]
        more = [f"{len(told) - limits.TOLD} more were left out"] if len(told) > limits.TOLD else []
        return told[: limits.TOLD] + more

    def _load(self, url: str) -> Resource | str:
        try:
            if len(self._known) >= limits.RESOURCES:
                return f"a document may refer to {limits.RESOURCES} files"
            data = _embedded(url) if url[:5].lower() == "data:" else self._ask(url)
            self._bytes += len(data)
            if self._bytes > limits.ALL_RESOURCES:
                return f"all that a document refers to may have {limits.ALL_RESOURCES // limits.MB} MB"
            resource = _looked_at(url, data)
            self._pixels += resource.size[0] * resource.size[1]
            if self._pixels > limits.ALL_PIXELS:
                return f"the images of a document may have {limits.ALL_PIXELS // 1_000_000} million pixels"
        except ResourceProblem as problem:
            return str(problem)
        return resource


def absolute(base: str, reference: str) -> str:
    """A reference as a URL; one that cannot be joined is given as it is and found nowhere."""
    try:
        return urljoin(base, reference.strip())
    except ValueError:
        return reference


def shown(url: str) -> str:
    """How a URL is named to people: a file by its path, everything short and on one line."""
    text = unquote(url.partition("?")[0]) if url.startswith("workspace:") else url
    text = text.removeprefix("workspace:").lstrip("/") if text.startswith("workspace:") else text
    text = "".join(char if char.isprintable() else "\ufffd" for char in text)
    return text if len(text) <= 120 else text[:120] + "…"


def _embedded(url: str) -> bytes:
    match = _DATA.fullmatch(url)
    if match is None:
        raise ResourceProblem("it is no data: URL")
    if match[1].rstrip().lower().endswith(";base64"):
        try:
            return base64.b64decode(unquote(match[2]), validate=False)
        except (binascii.Error, ValueError):
            raise ResourceProblem("its base64 is broken") from None
    return unquote_to_bytes(match[2])


def _looked_at(url: str, data: bytes) -> Resource:
    if data.startswith(_FONTS):
        return Resource(data, "font", _MIME["font"])
    if _named_css(url):
        return Resource(data, "css", _MIME["css"])
    if _SVG.search(data[:4096]) and data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        if b"<!ENTITY" in data:
            raise ResourceProblem("an SVG image with entities is not read")
        return Resource(data, "svg", _MIME["svg"])
    return _raster(data)


def _named_css(url: str) -> bool:
    if url[:5].lower() == "data:":
        return url[5:14].lower().startswith("text/css")
    try:
        return urlsplit(url).path.lower().endswith(".css")
    except ValueError:
        return False


def _raster(data: bytes) -> Resource:
    from PIL import Image

    # The size is judged here, by our own limit, before anything is decoded.
    Image.MAX_IMAGE_PIXELS = None
    try:
        with Image.open(io.BytesIO(data), formats=_IMAGES) as image:
            width, height = image.size
            mime = Image.MIME.get(image.format or "", "image/png")
    except Exception:  # noqa: BLE001  a decoder may fail in any way on bytes made for that
        raise ResourceProblem("it is no image, stylesheet or font that can be read") from None
    if width * height > limits.PIXELS:
        raise ResourceProblem(
            f"an image of {width:,} x {height:,} pixels is too large; make a smaller copy "
            f"(at most {limits.PIXELS // 1_000_000} million pixels)"
        )
    return Resource(data, "image", mime, (width, height))
