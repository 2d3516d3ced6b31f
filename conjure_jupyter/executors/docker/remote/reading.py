"""Reads the archives that an engine sends, of which nothing is believed.

The standard library's reader holds headers of any announced size in memory and knows formats that no engine
writes; this one knows the five kinds of header that engines do write, each within a limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

_BLOCK = 512
#: Bytes of the headers that carry a long name.
MOST_HEADER = 64 << 10
#: Such headers before one entry.
MOST_HEADERS = 8
#: Bytes that may follow the end.
_MOST_PADDING = 1 << 20
_END = bytes(_BLOCK)

MemberKind = Literal["file", "dir", "link", "hard", "other"]


class BadArchiveError(Exception):
    """An archive that is cut off, larger than allowed, or none at all."""


@dataclass(frozen=True, slots=True)
class Member:
    """An entry of an archive.

    Attributes:
        name: as the archive has it.
        kind: ``hard`` is a file that an earlier entry holds the bytes of, named by ``target``.
        size: bytes that follow.
        mtime_ns: nanoseconds since the epoch.
        mode: permission bits, without setuid and its like.
        target: of links.
    """

    name: bytes
    kind: MemberKind
    size: int
    mtime_ns: int
    mode: int
    target: bytes


_KINDS: dict[bytes, MemberKind] = {
    b"0": "file",
    b"\0": "file",
    b"7": "file",
    b"5": "dir",
    b"2": "link",
    b"1": "hard",
}


class Archive:
    """The entries of a tar archive, one after the other.

    Args:
        pieces: its bytes, as they arrive.
        most_bytes: how many are read at most.
        most_entries: entries, at most.
    """

    def __init__(self, pieces: Iterable[bytes], *, most_bytes: int, most_entries: int) -> None:
        self._pieces = iter(pieces)
        self._buffer = memoryview(b"")
        self._room = most_bytes
        self._entries = most_entries
        self._left = 0
        self._padding = 0

    def __iter__(self) -> Iterator[Member]:
        """Each entry; its bytes are read with ``content`` before the next, or are skipped.

        Raises:
            BadArchiveError: it is cut off, too large, or malformed.
        """
        while (member := self._next()) is not None:
            self._entries -= 1
            if self._entries < 0:
                raise BadArchiveError("it has too many entries")
            yield member
            for _ in self.content():
                pass

    def content(self) -> Iterator[bytes | memoryview]:
        """What is left of the bytes of the current entry.

        Raises:
            BadArchiveError: they are cut off.
        """
        while self._left:
            piece = self._some(self._left)
            self._left -= len(piece)
            yield piece
        while self._padding:
            self._padding -= len(self._some(self._padding))

    def finish(self) -> None:
        """Read the little that follows the last entry, so that the connection can be used again."""
        left = _MOST_PADDING
        while left > 0 and (piece := next(self._pieces, None)) is not None:
            left -= len(piece)

    def _next(self) -> Member | None:
        extra: dict[str, bytes] = {}
        for _ in range(MOST_HEADERS):
            block = self._exactly(_BLOCK)
            if block == _END:
                return None
            _check(block)
            size = _number(block[124:136])
            kind = block[156:157]
            if kind in (b"x", b"g", b"L", b"K"):
                if size > MOST_HEADER:
                    raise BadArchiveError("it has a header of excessive size")
                data = self._exactly(size)
                self._exactly(-size % _BLOCK)
                if kind == b"x":
                    extra.update(_pax(data))
                elif kind != b"g":
                    extra["path" if kind == b"L" else "linkpath"] = data.rstrip(b"\0")
                continue
            return self._member(block, kind, size, extra)
        raise BadArchiveError("it has too many headers")

    def _member(self, block: bytes, kind: bytes, size: int, extra: dict[str, bytes]) -> Member:
        if "size" in extra:
            size = _decimal(extra["size"])
        sparse = any(key.startswith("GNU.sparse") for key in extra)
        found: MemberKind = "other" if sparse else _KINDS.get(kind, "other")
        self._left = size if found in ("file", "other") else 0
        self._padding = -self._left % _BLOCK
        prefix = _text(block[345:500]) if block[257:263] == b"ustar\0" else b""
        name = extra.get("path") or b"/".join(filter(None, (prefix, _text(block[:100]))))
        mtime = extra.get("mtime")
        return Member(
            name=name.rstrip(b"/"),
            kind=found,
            size=self._left,
            mtime_ns=_nanoseconds(mtime) if mtime is not None else _number(block[136:148]) * 10**9,
            mode=_number(block[100:108]) & 0o777,
            target=extra.get("linkpath") or _text(block[157:257]),
        )

    def _exactly(self, size: int) -> bytes:
        found = bytearray()
        while len(found) < size:
            found += self._some(size - len(found))
        return bytes(found)

    def _some(self, most: int) -> memoryview:
        while not self._buffer:
            piece = next(self._pieces, None)
            if piece is None:
                raise BadArchiveError("it is cut off")
            self._room -= len(piece)
            if self._room < 0:
                raise BadArchiveError("it is larger than announced")
            self._buffer = memoryview(piece)
        found, self._buffer = self._buffer[:most], self._buffer[most:]
        return found


def _check(block: bytes) -> None:
    blank = block[:148] + b" " * 8 + block[156:]
    if _number(block[148:156]) != sum(blank):
        raise BadArchiveError("a header is damaged")


def _text(field: bytes) -> bytes:
    return field.partition(b"\0")[0]


def _number(field: bytes) -> int:
    """A number of a header: octal text, or binary with the first bit set."""
    if field[0] & 0x80:
        if field[0] != 0x80:
            raise BadArchiveError("a header has a negative number")
        return int.from_bytes(field[1:], "big")
    text = _text(field).strip()
    try:
        return int(text, 8) if text.isdigit() else _blank(text)
    except ValueError:
        raise BadArchiveError("a header has a malformed number") from None


def _blank(text: bytes) -> int:
    if text:
        raise BadArchiveError("a header has a malformed number")
    return 0


def _decimal(text: bytes) -> int:
    if not text.isdigit() or len(text) > 18:
        raise BadArchiveError("a header has a malformed number")
    return int(text)


def _nanoseconds(text: bytes) -> int:
    whole, _, part = text.lstrip(b"-").partition(b".")
    return _decimal(whole) * 10**9 + (_decimal(part[:9].ljust(9, b"0")) if part else 0)


def _pax(data: bytes) -> dict[str, bytes]:
    """The records of an extended header: ``LENGTH KEY=VALUE``, each a line."""
    found = {}
    while data:
        length, space, _ = data[:12].partition(b" ")
        size = _decimal(length) if space else 0
        key, equals, value = data[len(length) + 1 : size - 1].partition(b"=")
        if not equals or size > len(data) or data[size - 1 : size] != b"\n" or b"\0" in value:
            raise BadArchiveError("an extended header is malformed")
        found[key.decode("utf-8", "replace")] = value
        data = data[size:]
    return found
