"""Text that shows what it is: nothing in it moves the cursor, hides, or turns the line around.

What Claude, a tool or a file name says is cleaned here before it is shown anywhere. Escape sequences of
terminals are dropped; other characters that cannot be seen are written by code point, so that a name
which tries to look like another one is caught by the eye.
"""

from __future__ import annotations

import re

#: CSI, OSC and two-character escape sequences (ECMA-48), with their 8-bit forms. An unfinished OSC ends at
#: the line's end, so that it cannot swallow the rest of the text.
_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]{0,4096}(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-Z\\^-~]"
)

#: Controls other than tab and line feed; bidi controls; zero-width and tag characters; line separators;
#: lone surrogates.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e"
    "\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
    # Joiners belong to emoji and to several scripts; between ASCII characters they only hide.
    "|(?<![^\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f])"
)


def visible(text: str) -> str:
    """``text`` without terminal sequences, its hidden characters written out, lines ended by line feeds."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _HIDDEN.sub(_written_out, _SEQUENCES.sub("", text))


def _written_out(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def one_line(text: str, limit: int = 100) -> str:
    """The first ``limit`` characters of ``text``, cleaned, on one line."""
    line = " ".join(visible(text[: limit * 4]).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def bounded(text: str, limit: int) -> str:
    """Head and tail of ``text``, cleaned, with a line between them that says how much was left out."""
    if len(text) <= limit:
        return visible(text)
    head, tail = limit * 2 // 3, limit // 3
    cut = len(text) - head - tail
    return f"{visible(text[:head])}\n… {cut:,} characters left out …\n{visible(text[-tail:])}"
