"""What a program prints for a terminal, as plain text: no colours, and progress bars at their last state."""

from __future__ import annotations

import re

# CSI, OSC (ended by BEL or ST), other two-character escapes. Repeats are bounded: output may be hostile.
_ESCAPES = re.compile(
    r"\x1b\[[0-?]{0,64}[ -/]{0,8}[@-~]"
    r"|\x1b\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)"
    r"|\x1b[PX^_][^\x1b]{0,4096}\x1b\\"
    r"|\x1b[ -/]{0,4}[0-~]"
)
_CONTROL = re.compile(r"[\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def plain(text: str) -> str:
    """The text as it would stand on the screen at the end, but for moves of the cursor between lines."""
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    if "\r" in text:
        text = "\n".join(map(_last_state, text.replace("\r\n", "\n").split("\n")))
    if "\b" in text:
        text = _backspace(text)
    return _CONTROL.sub("\ufffd", text)


def _last_state(line: str) -> str:
    states = [state for state in line.split("\r") if state]
    return states[-1] if states else ""


def _backspace(text: str) -> str:
    kept: list[str] = []
    for character in text:
        if character != "\b":
            kept.append(character)
        elif kept and kept[-1] != "\n":
            kept.pop()
    return "".join(kept)
