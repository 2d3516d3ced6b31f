"""A file of records that is only appended to: each is there whole or not at all.

A record is a line with two lengths and a checksum, then JSON, then bytes. A crash leaves at most a torn end,
which is cut off; a bad record with a good one behind it is damage, and is told.
"""

from __future__ import annotations

import json
import mmap
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

_MARK = b"conjure1 "
_HEAD = len(_MARK) + 8 + 1 + 10 + 1 + 8 + 1


class Record(NamedTuple):
    """One record: its JSON, and where its bytes lie."""

    values: dict[str, Any]
    offset: int
    size: int


def pack(line: bytes, data: bytes = b"") -> bytes:
    """A record of a line of JSON and bytes."""
    checksum = zlib.crc32(data, zlib.crc32(line))
    return b"%s%08x %010x %08x\n%b%b" % (_MARK, len(line), len(data), checksum, line, data)


def data_offset(line: bytes) -> int:
    """How far from the start of a record its bytes begin."""
    return _HEAD + len(line)


class Damaged(ValueError):  # noqa: N818  a state of a file; its reader raises the error
    """A record in the middle cannot be read."""


def scan(path: Path) -> tuple[list[Record], int]:
    """The records of a file, and where the good part ends; a file that is not there has none.

    Raises:
        Damaged: what follows a bad record is good.
        OSError: it cannot be read.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _scan(data)
    except (FileNotFoundError, ValueError) as error:
        if isinstance(error, Damaged):
            raise
        return [], 0  # an empty file cannot be mapped


def _scan(data: mmap.mmap) -> tuple[list[Record], int]:
    found = [*_records(data, 0)]
    end = found[-1].offset + found[-1].size if found else 0
    after = data.find(_MARK, end + 1)
    while after >= 0:
        if next(_records(data, after), None) is not None:
            raise Damaged(f"a record at byte {end} is damaged")
        after = data.find(_MARK, after + 1)
    return found, end


def _records(data: mmap.mmap, start: int) -> Iterator[Record]:
    while data[start : start + len(_MARK)] == _MARK:
        try:
            line_size, size, checksum = (
                int(each, 16) for each in data[start + len(_MARK) : start + _HEAD].split()
            )
        except ValueError:
            return
        line_end = start + _HEAD + line_size
        line, body = data[start + _HEAD : line_end], data[line_end : line_end + size]
        if len(body) != size or zlib.crc32(body, zlib.crc32(line)) != checksum:
            return
        yield Record(json.loads(line), line_end, size)
        start = line_end + size


def append(fd: int, data: bytes, *, sync: bool) -> int:
    """Append to an open file; returns where it begins. What could not be appended whole is cut off again.

    Raises:
        OSError: it is full.
    """
    start = os.lseek(fd, 0, os.SEEK_END)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        if sync:
            os.fsync(fd)
    except OSError:
        os.ftruncate(fd, start)
        raise
    return start
