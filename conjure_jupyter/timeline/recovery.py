"""Reading a log as it is found: whole, torn, or damaged, without ever failing on its content.

A line is good when its checksum says so. Bad lines stay where they are and are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, NamedTuple

from ..types import Block
from .line import HEAD, MAX_LINE, VERSION, BadLineError, NewerLineError, decode

#: Bytes read at a time of a line that is too long to be one.
PIECE = 1024 * 1024

#: How many problems are told one by one; the rest is counted.
TOLD = 20

_BOM = b"\xef\xbb\xbf"


class Line(NamedTuple):
    """A stretch of the log up to a line end or the file's end.

    Attributes:
        offset: where it starts, in bytes.
        length: bytes, line end included.
        data: its bytes without line end, BOM and NUL padding; None when it is longer than a line may be.
        ended: whether it has its line end.
    """

    offset: int
    length: int
    data: bytes | None
    ended: bool


@dataclass(slots=True)
class Scan:
    """What a log holds.

    Attributes:
        blocks: the good ones, in file order.
        problems: what is wrong, a sentence each.
        bad: lines that were passed over; their ``data`` is None or emptied.
        tail: what follows the last line end, when anything does.
        tail_is_block: whether the tail is a good line that lacks only its line end.
        size: bytes in the file.
        newer: the highest later format found, or None.
        next_seq: the position that the next block gets.
        turn: the highest turn in use.
    """

    blocks: list[Block] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    bad: list[Line] = field(default_factory=list)
    tail: Line | None = None
    tail_is_block: bool = False
    size: int = 0
    newer: int | None = None
    next_seq: int = 0
    turn: int = 0


def lines(file: BinaryIO) -> Iterator[Line]:
    """The lines of a log; memory stays bounded whatever the file holds."""
    offset = 0
    while data := file.readline(MAX_LINE + 1):
        length, ended = len(data), data.endswith(b"\n")
        kept: bytes | None = data
        if length > MAX_LINE:
            only_nul = not data.strip(b"\0")
            while not ended and (data := file.readline(PIECE)):
                length, ended = length + len(data), data.endswith(b"\n")
                only_nul = only_nul and not data.strip(b"\0")
            kept = b"" if only_nul else None
        yield Line(offset, length, None if kept is None else _strip(kept, first=offset == 0), ended)
        offset += length


def _strip(data: bytes, *, first: bool) -> bytes:
    data = data.removesuffix(b"\n").removesuffix(b"\r")
    if first:
        data = data.removeprefix(_BOM)
    return data.strip(b"\0") if data[:1] == b"\0" or data[-1:] == b"\0" else data


def scan(file: BinaryIO) -> Scan:
    """Read a whole log from its start.

    Raises:
        OSError: the disk cannot be read. Never anything because of what is read.
    """
    reader = _Reader()
    for number, line in enumerate(lines(file), 1):
        reader.take(number, line)
    return reader.finish()


class _Reader:
    """Takes the lines of a log one by one."""

    def __init__(self) -> None:
        self._found = Scan()
        self._by_seq: dict[int, Block] = {}
        self._skipped = 0  # bad lines since the last good one: each has a position of its own
        self._turn_hint = 0
        self._problems: list[str] = []

    def take(self, number: int, line: Line) -> None:
        """Take the next line; ``number`` counts from 1."""
        self._found.size = line.offset + line.length
        if line.data == b"" and line.ended:
            if line.length > len(b"\r\n"):
                self._problems.append(f"line {number} is {line.length - 1} empty bytes (a power loss?)")
            return
        try:
            block, version = _decode(line)
        except BadLineError as error:
            self._bad(number, line, error)
            return
        if not line.ended:
            self._found.tail, self._found.tail_is_block = line, True
        self._newer(max(version, _format(block)))
        self._good(number, block)

    def finish(self) -> Scan:
        """What was found."""
        found, problems = self._found, self._problems
        found.next_seq += self._skipped
        # A lost line may have begun a turn whose number is used up; a garbled number must not count.
        found.turn = max(found.turn, min(self._turn_hint, found.turn + len(found.bad)))
        if found.size and not found.blocks:
            problems.append("no block could be read")
        found.problems = problems[:TOLD]
        if len(problems) > TOLD:
            found.problems.append(f"{len(problems) - TOLD} more problems of this kind")
        return found

    def _good(self, number: int, block: Block) -> None:
        found = self._found
        earlier = self._by_seq.setdefault(block.seq, block)
        if earlier is not block and earlier == block:
            self._problems.append(f"line {number} repeats block {block.seq}; it is passed over")
            return
        missing = block.seq - found.next_seq - self._skipped
        if block.seq < found.next_seq:
            self._problems.append(f"line {number} is out of order (block {block.seq})")
        elif missing > 0:
            self._problems.append(f"{missing} block(s) are missing before line {number}")
        found.blocks.append(block)
        found.turn = max(found.turn, block.turn)
        found.next_seq = max(found.next_seq, block.seq + 1)
        self._skipped = 0

    def _bad(self, number: int, line: Line, error: BadLineError) -> None:
        found = self._found
        if not line.ended:
            found.tail = line
            self._problems.append(f"the last line was not written to its end ({line.length} bytes)")
            return
        if isinstance(error, NewerLineError):
            self._newer(error.version)
        self._skipped += 1
        found.bad.append(line if line.data is None else line._replace(data=b""))
        self._turn_hint = max(self._turn_hint, _turn_hint(line))
        self._problems.append(f"line {number} cannot be read ({error}); it is passed over")

    def _newer(self, version: int) -> None:
        if version > VERSION:
            self._found.newer = max(self._found.newer or 0, version)


def _decode(line: Line) -> tuple[Block, int]:
    if line.data is None:
        raise BadLineError(f"longer than {MAX_LINE // 2**20} MiB")
    return decode(line.data)


def _format(block: Block) -> int:
    said = block.data.get("format") if block.kind == "session" else None
    return said if isinstance(said, int) else 0


def _turn_hint(line: Line) -> int:
    head = HEAD.match(line.data or b"")
    return int(head[3]) if head else 0
