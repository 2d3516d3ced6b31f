"""Text files: finding out how one is encoded, numbering its lines, and writing it back the same way."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

#: Bytes of the beginning that decide whether a file is text, and in which encoding.
SAMPLE = 8_192

_BOMS = (
    (codecs.BOM_UTF8, "utf-8", "UTF-8 with a byte order mark"),
    (codecs.BOM_UTF32_LE, "utf-32-le", "UTF-32"),
    (codecs.BOM_UTF32_BE, "utf-32-be", "UTF-32"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "UTF-16"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "UTF-16"),
)
# What text files hold below the space: tab, line feed, form feed, carriage return, ESC of coloured logs.
_CONTROL = re.compile(rb"[\x00-\x07\x0b\x0e-\x1a\x1c-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a text file is encoded.

    Attributes:
        codec: Python's name of it.
        bom: bytes before the text.
        note: what Claude should know of it; empty for plain UTF-8.
    """

    codec: str = "utf-8"
    bom: bytes = b""
    note: str = ""

    def decode(self, data: bytes) -> str:
        """The text of a whole file; bytes that fit nothing become surrogates and are written back as is."""
        return data[len(self.bom) :].decode(self.codec, self.errors)

    def encode(self, text: str) -> bytes:
        """The bytes of a whole file.

        Raises:
            UnicodeEncodeError: the encoding has no such character.
        """
        return self.bom + text.encode(self.codec, self.errors)

    @property
    def errors(self) -> str:
        """Only UTF-8 can carry foreign bytes through."""
        return "surrogateescape" if self.codec == "utf-8" else "strict"


def detect(sample: bytes, *, whole: bool) -> Encoding | None:
    """The encoding of a text file, or None for a file that is no text.

    Args:
        sample: the beginning of the file.
        whole: whether that is the whole file; else its last character may be cut.
    """
    for bom, codec, note in _BOMS:
        if sample.startswith(bom):
            return Encoding(codec, bom, note)
    if b"\x00" in sample or len(_CONTROL.findall(sample)) > len(sample) / 20:
        return None
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        decoder.decode(sample, final=whole)
    except UnicodeDecodeError:
        return Encoding("latin-1", b"", "not UTF-8; shown as Latin-1")
    return Encoding()


def split_lines(text: str) -> list[str]:
    """Lines without their ends; a last line end starts no new line. Only line feeds end lines, as in bash."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def numbered(lines: list[str], start: int) -> str:
    """Lines with their numbers, in the form of ``cat -n``."""
    return "\n".join(f"{start + index:>6}\t{line}" for index, line in enumerate(lines))


def line_of(text: str, position: int) -> int:
    """The number, from 1, of the line that holds a position."""
    return text.count("\n", 0, position) + 1
