"""How a file looks in a notebook.

Whatever a file says stays text. Pictures are shown when their bytes are those of a picture that cannot
carry script; tables and text are shown as their first part, escaped, with characters that hide or turn
text written out. HTML and SVG are shown as their source: even in a frame that runs nothing, a page can make
the browser look up a host of its author's choosing. Everything else is a card.
"""

from __future__ import annotations

import base64
import codecs
import csv
import io
from collections.abc import Sequence
from html import escape
from typing import Any

from ..wording import size_text
from .tables import table_format

#: Most bytes of a picture that is put into the notebook.
IMAGE_LIMIT = 5 * 1024 * 1024
#: Bytes of other files that are looked at.
HEAD = 256 * 1024
#: Characters of a text; rows, columns and characters of a cell of a table; characters of a name.
MOST_TEXT, ROWS, COLUMNS, CELL, NAME = 10_000, 20, 20, 100, 200

_PICTURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_TEXTS = frozenset(
    {
        "application/json",
        "application/jsonl",
        "application/x-ndjson",
        "application/xml",
        "application/yaml",
        "application/toml",
        "application/javascript",
        "application/sql",
        "application/x-sh",
        "application/x-ipynb+json",
        "image/svg+xml",
    }
)
_DELIMITERS = {"csv": ",", "tsv": "\t"}


def room(content_type: str) -> int:
    """How many bytes of a file are looked at for its preview; 0 when the type alone decides."""
    if content_type.startswith("image/") and content_type != "image/svg+xml":
        return IMAGE_LIMIT
    return HEAD if is_text(content_type) else 0


def is_text(content_type: str) -> bool:
    """Whether files of a type are shown as text."""
    return content_type.startswith("text/") or content_type in _TEXTS or content_type.endswith("+xml")


def preview(name: str, content_type: str, size: int, head: bytes | None, note: str = "") -> dict[str, str]:
    """A file as MIME bundle, without ``text/plain``.

    Args:
        name: its name.
        content_type: its MIME type.
        size: bytes of the whole file.
        head: its first bytes, as many as ``room`` says; None when there are none to be had.
        note: what else to say on the card.
    """
    if head is not None and size <= IMAGE_LIMIT and len(head) == size:
        kind = _picture(head)
        if kind is not None:
            return {kind: base64.b64encode(head).decode()}
    body = ""
    if head and is_text(content_type):
        form = table_format(name, content_type)
        text = decoded(head)
        body = _table(text, _DELIMITERS[form], len(head) < size) if form in _DELIMITERS else ""
        body = body or _text(text, len(head) < size)
    elif table_format(name, content_type) is not None and head is not None:
        note = note or ".to_dataframe() reads it"
    return {"text/html": f"<div>{_card(name, content_type, size, note)}{body}</div>"}


def decoded(data: bytes) -> str:
    """Text of bytes that may be cut in the middle of a character; what is no text is replaced."""
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    return data.decode("utf-8", "replace")


def visible(text: str) -> str:
    """``text`` with line ends and tabs, and every other character that cannot be seen written out."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in "\n\t" else _written_out(char)
        for char in text.replace("\r\n", "\n").replace("\r", "\n")
    )


def one_line(text: str, limit: int) -> str:
    """The first ``limit`` characters of a text, on one line."""
    line = " ".join(visible(text[: limit * 2]).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _picture(data: bytes) -> str | None:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _PICTURES if data.startswith(magic)), None)


def _written_out(char: str) -> str:
    if char.isspace():
        return " "  # a space of another width, or a line end of another kind
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _card(name: str, content_type: str, size: int, note: str) -> str:
    facts = f"{one_line(content_type, 100)}, {size_text(size)}"
    more = f"<br><em>{escape(one_line(note, 500))}</em>" if note else ""
    return f"<p><strong>{escape(one_line(name, NAME))}</strong> ({escape(facts)}){more}</p>"


def _text(text: str, cut: bool) -> str:
    shown = visible(text[:MOST_TEXT])
    more = "\n…" if cut or len(text) > MOST_TEXT else ""
    return f"<pre>{escape(shown)}{more}</pre>"


def _table(text: str, delimiter: str, cut: bool) -> str:
    """The first rows as an HTML table; empty when the text is no table."""
    rows: list[list[str]] = []
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            rows.append(row)
            if len(rows) > ROWS + 1:
                break
    except csv.Error:
        return ""
    more = len(rows) > ROWS + 1
    if not more and cut and len(rows) > 1:
        rows.pop()  # it may be cut in its middle
        more = True
    rows = rows[: ROWS + 1]
    wide = max(map(len, rows), default=0)
    if not wide:
        return ""
    head, *body = rows
    lines = [f"<thead>{_row(head, 'th', wide)}</thead>", "<tbody>"]
    lines += [_row(row, "td", wide) for row in body]
    lines.append("</tbody>")
    told = [f"the first {len(body)} rows"] if more else []
    told += [f"{COLUMNS} of {wide} columns"] if wide > COLUMNS else []
    note = f"<p><small>{', '.join(told)}; .to_dataframe() has them all</small></p>" if told else ""
    return f"<table>{''.join(lines)}</table>{note}"


def _row(cells: Sequence[str], tag: str, wide: int) -> str:
    shown = [*cells[:COLUMNS], *[""] * (min(wide, COLUMNS) - len(cells))]
    return f"<tr>{''.join(f'<{tag}>{escape(one_line(cell, CELL))}</{tag}>' for cell in shown)}</tr>"


def card_text(name: str, facts: Sequence[Any]) -> str:
    """A file on one line, as text."""
    return f"{one_line(name, NAME)} ({', '.join(str(fact) for fact in facts)})"
