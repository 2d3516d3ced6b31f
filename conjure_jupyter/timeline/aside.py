"""Damaged bytes of a log are copied to ``timeline.damaged`` before anything else happens to them.

Each record there is a JSON line with the bytes in base64 and where they stood. Bad lines in the middle of a
log stay in it as well; only its torn end, after the last line end, is cut once its bytes are kept here.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import os
import zlib
from collections.abc import Iterable
from pathlib import Path

from .durable import flush_file
from .recovery import Line, lines

#: The copy's name in a session's folder.
DAMAGED = "timeline.damaged"

#: Most bytes in one record.
PIECE = 1024 * 1024


def keep_aside(folder: Path, log: int, damage: Iterable[Line]) -> None:
    """Copy damaged bytes to ``timeline.damaged`` and put them on disk; what is there already is not repeated.

    Args:
        folder: the session's folder.
        log: the log's file descriptor.
        damage: where the bytes are. Trailing NUL bytes are counted rather than copied.

    Raises:
        OSError: they cannot be copied.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    fd = os.open(folder / DAMAGED, flags, 0o600)
    try:
        os.fchmod(fd, 0o600)
        known = _known(fd)
        out = bytearray()
        for line in damage:
            for offset in range(line.offset, line.offset + line.length, PIECE):
                data = os.pread(log, min(PIECE, line.offset + line.length - offset), offset)
                mark = (offset, len(data), zlib.crc32(data))
                if mark not in known:
                    out += _record(mark, data)
                if len(out) > PIECE:
                    _write_all(fd, out)
                    out.clear()
        _write_all(fd, out)
        flush_file(fd)
    finally:
        os.close(fd)


def _record(mark: tuple[int, int, int], data: bytes) -> bytes:
    body = data.rstrip(b"\0")
    record = {
        "found": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "offset": mark[0],
        "length": mark[1],
        "crc": mark[2],
        "nul": len(data) - len(body),
        "base64": base64.b64encode(body).decode(),
    }
    return json.dumps(record).encode() + b"\n"


def _known(fd: int) -> set[tuple[int, int, int]]:
    known = set()
    with os.fdopen(os.dup(fd), "rb") as file:
        ended = True
        for line in lines(file):
            ended = line.ended
            try:
                said = json.loads(line.data or b"")
                known.add((int(said["offset"]), int(said["length"]), int(said["crc"])))
            except (ValueError, KeyError, TypeError, RecursionError):
                continue  # torn by an earlier crash; the bytes are copied again
    if not ended:
        _write_all(fd, b"\n")
    return known


def _write_all(fd: int, data: bytes | bytearray) -> None:
    view = memoryview(bytes(data))
    while view:
        view = view[os.write(fd, view) :]
