"""What a file is, by its content first and its name second.

Binary content is told by its first bytes; a name only decides between what the bytes leave open (which of
the Office formats a zip archive is). Text has no such marks, apart from HTML, SVG and XML, which are told
wherever they are: a ``.png`` that is a web page is ``text/html``. Other text is what its name says when that
is a kind of text, and else what it looks like.
"""

from __future__ import annotations

import csv
import json
import re

from .kinds import BINARY, PLAIN, canonical, has_mark, is_text, is_zip, suffix_of, type_by_name

#: Bytes of a file that are enough to tell what it is.
HEAD = 4096

_MARKS = (
    (b"PAR1", "application/vnd.apache.parquet"),
    (b"ARROW1\0\0", "application/vnd.apache.arrow.file"),
    (b"\x93NUMPY", "application/x-npy"),
    (b"SQLite format 3\0", "application/vnd.sqlite3"),
    (b"\x7fELF", "application/x-executable"),
    (b"\0asm", "application/wasm"),
    (b"ID3", "audio/mpeg"),
    (b"%PDF-", "application/pdf"),
)
_OLE = bytes.fromhex("d0cf11e0a1b11ae1")
_OLE_TYPES = frozenset({"application/msword", "application/vnd.ms-excel", "application/vnd.ms-powerpoint"})
_OOXML = "application/vnd.openxmlformats-officedocument."
_OFFICE = {
    b"word/": f"{_OOXML}wordprocessingml.document",
    b"xl/": f"{_OOXML}spreadsheetml.sheet",
    b"ppt/": f"{_OOXML}presentationml.presentation",
}
_LOCAL_HEADER = re.compile(rb"PK\x03\x04.{22}(..)(..)", re.DOTALL)

_BOMS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
# Everything below a blank but tab, line ends, form feed, backspace and escape; what text never holds.
_CONTROLS = re.compile(rb"[\x00-\x07\x0b\x0e-\x1a\x1c-\x1f]")

_PROLOGUE = re.compile(r"(?:\s|<\?[^>]*\?>|<!--.*?-->)*", re.DOTALL)
_HTML = re.compile(
    r"<(?:!doctype\s+html|(?:html|head|body|script|iframe|title|style|meta|link|table|div|img|h1)\b)",
    re.IGNORECASE,
)
_SVG = re.compile(r"(?:<!doctype\s+svg[^>]*>\s*)?<svg\b", re.IGNORECASE)
#: Text in which markup is nothing out of the ordinary: what its name says is believed.
_MIXED = frozenset(
    {".md", ".markdown", ".rst", ".py", ".js", ".mjs", ".jsx", ".ts", ".tsx", ".php", ".vue", ".svelte"}
    | {".j2", ".jinja", ".jinja2", ".tmpl", ".ipynb", ".csv", ".tsv", ".json", ".jsonl", ".r", ".sh"}
)
_STRONG = re.compile(r"<(?:!doctype\s+html|html\b)", re.IGNORECASE)
_JSON_START = re.compile(r"\s*(?:\{\s*(?:\"|\}|$)|\[\s*(?:[\[\]{\"\-\d]|true|false|null|$))")


def content_type(name: str, head: bytes) -> str:
    """The MIME type of a file.

    Args:
        name: its name; only the extension counts. May be empty.
        head: its first bytes, ``HEAD`` of them or all when it is shorter.
    """
    claimed = type_by_name(name)
    if not head:
        return claimed or PLAIN
    marked = _by_marks(head, claimed)
    if marked is not None:
        return marked
    if _looks_like_text(head, claimed):
        return _text_type(name, _decoded(head), len(head) < HEAD, claimed)
    return _by_library(head, claimed)


def _by_marks(head: bytes, claimed: str | None) -> str | None:
    """What the library for this tells less exactly, or not at all."""
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _zip_type(head, claimed)
    if head.startswith(_OLE):
        return claimed if claimed in _OLE_TYPES else "application/x-ole-storage"
    return next((kind for mark, kind in _MARKS if head.startswith(mark)), None)


def _zip_type(head: bytes, claimed: str | None) -> str:
    for match in _LOCAL_HEADER.finditer(head):
        start, length = match.end(), int.from_bytes(match[1], "little")
        name = head[start : start + length]
        for folder, kind in _OFFICE.items():
            if name.startswith(folder):
                return kind
        if name == b"mimetype":  # first in OpenDocument and EPUB, and stored as it is
            start += int.from_bytes(match[2], "little") + length
            said = re.match(rb"[\w.+/-]+?(?=PK\x03\x04|$)", head[start : start + 100])
            kind = canonical(said[0].decode()) if said else ""
            if is_zip(kind):
                return kind
    return claimed if claimed and is_zip(claimed) else "application/zip"


def _looks_like_text(head: bytes, claimed: str | None) -> bool:
    if head.startswith(_BOMS):
        return True
    if _CONTROLS.search(head):
        return False
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        if len(head) >= HEAD and error.start >= len(head) - 3:
            return True  # a character that was cut at the end
        # An older encoding: letters beyond ASCII are a few among many.
        beyond = sum(byte >= 0x80 for byte in head)
        return beyond * 3 < len(head) or bool(claimed and is_text(claimed))
    return True


def _decoded(head: bytes) -> str:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return head.decode("utf-16", "replace")
    return head.decode("utf-8", "replace").removeprefix("\ufeff")


def _text_type(name: str, text: str, whole: bool, claimed: str | None) -> str:
    prologue = _PROLOGUE.match(text)
    start = text[prologue.end() if prologue else 0 :]
    suffix = suffix_of(name)
    if _SVG.match(start) and suffix not in _MIXED:
        return "image/svg+xml"
    believed = claimed if claimed and claimed != BINARY and not has_mark(claimed) else None
    plain = believed in (None, PLAIN)
    if _STRONG.match(start) and suffix not in _MIXED:
        return "text/html"
    if _HTML.match(start) and plain:
        return "text/html"
    if text.lstrip().startswith("<?xml") and plain:
        return "application/xml"
    return believed or _by_look(text, whole)


def _by_look(text: str, whole: bool) -> str:
    """The kind of a text whose name says nothing."""
    if text.startswith("#!"):
        first = text.partition("\n")[0]
        return "text/x-python" if "python" in first else "application/x-sh" if "sh" in first else PLAIN
    if _JSON_START.match(text):
        return _json_type(text, whole)
    for delimiter, kind, least in (("\t", "text/tab-separated-values", 2), (",", "text/csv", 3)):
        if _is_table(text, delimiter, least, whole):
            return kind
    return PLAIN


def _json_type(text: str, whole: bool) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > 1 and all(map(_is_json, lines[:2] if whole or len(lines) > 2 else lines[:1])):
        return "application/jsonl"
    return "application/json" if not whole or _is_json(text) else PLAIN


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _is_table(text: str, delimiter: str, least: int, whole: bool) -> bool:
    """Whether every line has the same number of cells; a comma with a blank after it is prose."""
    lines = text.splitlines()
    lines = (lines if whole else lines[:-1])[:20]
    if len(lines) < 2 or ", " in lines[0]:
        return False
    try:
        rows = [row for row in csv.reader(lines, delimiter=delimiter, strict=True) if row]
    except csv.Error:
        return False
    return len(rows) > 1 and len(rows[0]) >= least and len({len(row) for row in rows}) == 1


def _by_library(head: bytes, claimed: str | None) -> str:
    import puremagic

    try:
        matches = puremagic.magic_string(head)
    except (puremagic.PureError, ValueError):
        matches = []
    found = [(canonical(match.mime_type), match.confidence) for match in matches if match.mime_type]
    if claimed and any(kind == claimed for kind, _ in found):
        return claimed
    # Two bytes that fit are too little unless the name says the same, and text it is not.
    for kind, confidence in found:
        if confidence >= 0.3 and not is_text(kind):
            return kind
    return claimed if claimed and not is_text(claimed) and not has_mark(claimed) else BINARY
