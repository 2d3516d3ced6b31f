"""Images and PDF documents as content blocks, within what the service takes.

The type is told by the bytes, never by the name. Limits: 5 MB of base64 and 8000 x 8000 pixels for an
image; a request may have 32 MB in all, so a document is kept well below.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass

from ..types import Content

MAX_IMAGE_BASE64 = 5 * 1024 * 1024
MAX_IMAGE_BYTES = MAX_IMAGE_BASE64 // 4 * 3
MAX_IMAGE_SIDE = 8_000
MAX_DOCUMENT_BYTES = 20 * 1024 * 1024

# Start of frame: every JPEG marker C0 to CF but the tables C4, C8 and CC.
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_BARE = frozenset({0x01, *range(0xD0, 0xD9)})


@dataclass(frozen=True, slots=True)
class Image:
    """What the header of an image says; a side is 0 when it cannot be read."""

    media_type: str
    width: int
    height: int


def sniff_image(data: bytes) -> Image | None:
    """The kind and size of a PNG, JPEG, GIF or WebP image; None for anything else.

    Args:
        data: the beginning of the file; a JPEG may carry its size behind long metadata.
    """
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return Image("image/png", *_big_endian(data, 16, 4))
    if data.startswith((b"GIF87a", b"GIF89a")):
        return Image("image/gif", _little(data, 6, 2), _little(data, 8, 2))
    if data.startswith(b"\xff\xd8\xff"):
        return Image("image/jpeg", *_jpeg_size(data))
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return Image("image/webp", *_webp_size(data))
    return None


def is_pdf(data: bytes) -> bool:
    """Whether the bytes begin a PDF document; readers accept its mark within the first kilobyte."""
    return re.match(rb"[\x00-\xff]{0,1019}?%PDF-\d", data[:1024]) is not None


def image_block(data: bytes, media_type: str) -> Content:
    """An image for Claude to see."""
    return {
        "type": "image",
        "source": {"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode()},
    }


def document_block(data: bytes) -> Content:
    """A PDF document for Claude to read."""
    return {
        "type": "document",
        "source": {
            "type": "base64",
            "media_type": "application/pdf",
            "data": base64.b64encode(data).decode(),
        },
    }


def _little(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")


def _big_endian(data: bytes, at: int, size: int) -> tuple[int, int]:
    first, second = data[at : at + size], data[at + size : at + 2 * size]
    return int.from_bytes(first, "big"), int.from_bytes(second, "big")


def _jpeg_size(data: bytes) -> tuple[int, int]:
    at = 2
    while at + 9 <= len(data):
        if data[at] != 0xFF:
            return 0, 0
        marker = data[at + 1]
        if marker == 0xFF:
            at += 1
        elif marker in _JPEG_BARE:
            at += 2
        elif marker in _JPEG_FRAMES:
            height, width = _big_endian(data, at + 5, 2)
            return width, height
        else:
            at += 2 + max(2, int.from_bytes(data[at + 2 : at + 4], "big"))
    return 0, 0


def _webp_size(data: bytes) -> tuple[int, int]:
    chunk = data[12:16]
    if chunk == b"VP8X":
        return 1 + _little(data, 24, 3), 1 + _little(data, 27, 3)
    if chunk == b"VP8L":
        bits = _little(data, 21, 4)
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if chunk == b"VP8 ":
        return _little(data, 26, 2) & 0x3FFF, _little(data, 28, 2) & 0x3FFF
    return 0, 0
