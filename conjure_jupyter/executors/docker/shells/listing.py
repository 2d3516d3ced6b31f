"""What ``stat`` in the container says, as ``Stat``; GNU's and busybox's."""

from __future__ import annotations

import os
import re
import stat
from typing import Literal

from ...contract import Stat
from ..link import LinkLostError
from .shell import NO_ANSWER

Kind = Literal["file", "dir", "link", "other"]

#: Mode in hexadecimal, size, seconds, and the time in words, for its fraction; then the name after ``./``.
_RECORD = re.compile(rb"([0-9a-f]{1,8}) (\d{1,20}) (-?\d{1,20}) ([^/]{0,60})/\./(.*)", re.DOTALL)
_FRACTION = re.compile(rb":\d\d\.(\d{9})")


def parse(data: bytes, end: bytes) -> list[Stat]:
    """The entries in ``data``, each of which ends with a slash, ``end`` and a new line.

    Raises:
        LinkLostError: it is something else.
    """
    *records, rest = data.split(b"/" + end + b"\n")
    if rest:
        raise LinkLostError(NO_ANSWER)
    return [_entry(record) for record in records]


def _entry(record: bytes) -> Stat:
    found = _RECORD.fullmatch(record)
    if found is None:
        raise LinkLostError(NO_ANSWER)
    mode, size, seconds, words, name = found.groups()
    bits = int(mode, 16)
    kind = _kind(bits)
    fraction = _FRACTION.search(words)
    return Stat(
        path=os.fsdecode(name),
        kind=kind,
        size=0 if kind == "dir" else int(size),
        mtime_ns=int(seconds) * 1_000_000_000 + (int(fraction[1]) if fraction else 0),
        mode=stat.S_IMODE(bits),
    )


def _kind(mode: int) -> Kind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "dir"
    return "link" if stat.S_ISLNK(mode) else "other"
