"""One line of ``timeline.jsonl``: how a block becomes bytes, and how bytes are known to be whole.

::

    {"v":1,"seq":7,"turn":2,"kind":"notice","time":"…","data":{…},"crc":"9f0c1a2b"}

The checksum is the CRC-32 of everything before ``,"crc"``, so a line is checked without parsing it. Keys
stand in this order, which lets a listing read the head of a line and skip the rest. The version is on
every line, because a log may be continued by a later version of this package.
"""

from __future__ import annotations

import json
import re
import zlib
from typing import Any

from ..types import Block

#: Version of the format that this package writes and knows.
VERSION = 1

#: Longest line in bytes, written or read. The API takes requests of up to 32 MB; a line holds one message.
MAX_LINE = 64 * 1024 * 1024

#: What every line starts with; the groups are version, seq, turn, kind and time.
HEAD = re.compile(
    rb'\{"v":(\d{1,9}),"seq":(\d{1,15}),"turn":(\d{1,9}),"kind":"([^"\\]{1,200})","time":"([^"\\]{0,64})",'
)

_CHECK = re.compile(rb',"crc":"([0-9a-f]{8})"\}\Z')
_CHECK_LENGTH = 18
_ATOMS = frozenset({str, int, float, bool, type(None)})
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_encode_ascii = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode


class BadLineError(ValueError):
    """A line cannot be used; the text says why. Never leaves the timeline."""


class NewerLineError(BadLineError):
    """A line of a later format that this version cannot read."""

    def __init__(self, version: int) -> None:
        super().__init__(f"format {version}, and this version reads up to {VERSION}")
        self.version = version


def plain(value: Any) -> Any:
    """A deep copy of ``value`` as JSON would give it back: lists for tuples, no subclasses.

    Strings are shared, so large texts and images are not copied. What is in memory is then equal to what a
    reopened log holds, and does not change when the caller goes on using its own objects.

    Raises:
        TypeError: a value or key has no JSON form.
    """
    if type(value) in _ATOMS:
        return value
    if isinstance(value, dict):
        copy = {}
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"the key {key!r} is not a string")
            copy[str.__str__(key)] = plain(item)
        return copy
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    for base in (str, int, float):
        if isinstance(value, base):
            return base.__str__(value) if base is str else base(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def encode(block: Block) -> bytes:
    """The line of a block, with its line end.

    Raises:
        TypeError: the data has no JSON form.
        ValueError: it has one that cannot be written (an endless structure, for example).
    """
    head = f'{{"v":{VERSION},"seq":{block.seq},"turn":{block.turn},"kind":{_encode(block.kind)}'
    head += f',"time":{_encode(block.time)},"data":'
    try:
        body = (head + _encode(block.data)).encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which UTF-8 cannot hold but JSON can escape
        body = (head + _encode_ascii(block.data)).encode()
    return b'%b,"crc":"%08x"}\n' % (body, zlib.crc32(body))


def decode(line: bytes) -> tuple[Block, int]:
    """The block of a line, given without its line end, and its format version.

    Keys that this version does not know are passed over.

    Raises:
        NewerLineError: the line is of a later format and has another shape.
        BadLineError: the line is damaged.
    """
    check = _CHECK.search(line, max(0, len(line) - _CHECK_LENGTH))
    whole = check is not None and zlib.crc32(line[:-_CHECK_LENGTH]) == int(check[1], 16)
    if check and not whole:
        raise BadLineError("the checksum does not match")
    try:
        record = json.loads(line.decode())
    except (ValueError, RecursionError):
        raise BadLineError("not whole" if not whole else "not JSON") from None
    if not isinstance(record, dict):
        raise BadLineError("not an object")
    said = record.get("v")
    version = said if isinstance(said, int) else 0
    newer = version > VERSION
    if newer or whole:
        block = _block(record)
        if block is not None:
            return block, version
    if newer:
        raise NewerLineError(version)
    raise BadLineError("no checksum" if not whole else "no block")


def _block(record: dict[str, Any]) -> Block | None:
    get = record.get
    seq, turn, kind, time, data = get("seq"), get("turn"), get("kind"), get("time"), get("data")
    if type(seq) is not int or type(turn) is not int or seq < 0 or turn < 0:
        return None
    if not isinstance(kind, str) or not isinstance(time, str) or not isinstance(data, dict):
        return None
    return Block(seq, turn, kind, data, time)
