"""Which blobs a log names: they must be remote before the lines that name them are."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

from ...errors import ToolError
from ...paths import read_beneath
from ...types import Block
from ..line import BadLineError, decode
from .keys import is_digest

#: Says which blobs a block names, by digest. Each must be a whole text somewhere in its data.
BlobsOf: TypeAlias = Callable[[Block], Iterable[str]]

#: Most bytes of a snapshot's list of files that is read.
_MANIFEST = 256 * 1024 * 1024

# Lines without a digest need no parsing; the quote in front makes the search a quick one.
_MAYBE = re.compile(rb'"[0-9a-f]{64}"')


def blobs_of(block: Block) -> Iterator[str]:
    """The digests that a block of this version names: an artifact's, a registered value's, a snapshot's."""
    data = block.data
    if block.kind in ("artifact", "register") and data.get("kept", True):
        digest = data.get("sha256")
    elif block.kind == "snapshot":
        digest = data.get("manifest")
    else:
        return
    if isinstance(digest, str) and is_digest(digest):
        yield digest


def named_in(lines: bytes, ask: BlobsOf) -> tuple[set[str], set[str]]:
    """The blobs that whole lines of a log name, and those of them that are lists of further blobs.

    Lines that cannot be read are passed over, as everywhere else.
    """
    named: set[str] = set()
    lists: set[str] = set()
    for line in lines.splitlines():
        if not _MAYBE.search(line):
            continue
        try:
            block, _ = decode(line)
        except BadLineError:
            continue
        digests = {digest for digest in ask(block) if is_digest(digest)}
        named |= digests
        if block.kind == "snapshot" and block.data.get("manifest") in digests:
            lists.add(block.data["manifest"])
    return named, lists


def listed_in(folder: Path, digest: str) -> set[str]:
    """The blobs that a snapshot's list of files names; none when the list is not here or is no list.

    Args:
        folder: of the blobs.
        digest: the list's own.
    """
    try:
        entries = json.loads(read_beneath(folder, digest, limit=_MANIFEST))
    except (ToolError, ValueError, RecursionError):
        return set()
    if not isinstance(entries, dict):
        return set()
    firsts = (entry[0] for entry in entries.values() if isinstance(entry, list) and entry)
    return {first for first in firsts if is_digest(first)}
