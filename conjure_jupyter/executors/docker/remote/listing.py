"""What a folder of the container holds, asked by one command over the link.

The engine itself does not tell what changed in a volume, and its archive of everything costs as much as
everything. GNU ``find`` tells it in one go, with the times that programs cannot set. Where an image has none
there is no listing, and the whole folder is fetched.
"""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from ....errors import ToolError
from ...contract import ExecutionContext
from ..link import Link
from .entries import MOST_ENTRIES, UNFINISHED, Below, Entry, is_plain

#: Bytes of a listing, and seconds it may take.
MOST_OUTPUT, PATIENCE = 64 << 20, 60.0
#: Nanoseconds in which a second change may leave the time of the first: a tick of the kernel, twice.
TICK = 20_000_000

_FORMAT = r"%y %m %s %i %T@ %C@ %P\0%l\0"


@dataclass(slots=True)
class Listing:
    """What a folder held at one moment.

    Attributes:
        entries: by relative path, holders before what they hold; links wherever they lead.
        unknown: folders whose inside could not be looked at; "" when something else may be missing.
        fresh: files that changed so shortly before that a further change would not show.
    """

    entries: dict[str, Entry] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    fresh: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Inside:
    """The session's container as it runs.

    Attributes:
        link: into it.
        context: its own; the working directory must exist.
    """

    link: Link
    context: ExecutionContext

    async def listing(self, folder: PurePosixPath, skip: Below) -> Listing | None:
        """Ask what a folder holds.

        Args:
            skip: what to leave aside.

        Returns:
            None when the image has no ``find`` that can tell.

        Raises:
            LinkLostError: the container is gone.
        """
        context = self.context.with_(output_limit=MOST_OUTPUT, environment={})
        command = _command(folder, sorted(skip.tops), MOST_ENTRIES)
        result = await self.link.run(command, context, timeout=PATIENCE)
        if result.exit_code != 0 or result.truncated_bytes:
            return None
        return parse(result.output, MOST_ENTRIES)

    async def delete(self, path: PurePosixPath) -> None:
        """Remove a file, a link, or a folder that is empty; what cannot be removed stays.

        Raises:
            LinkLostError: the container is gone.
        """
        with contextlib.suppress(ToolError):
            await self.link.delete(str(path), self.context)


def _command(folder: PurePosixPath, skip: Iterable[str], most: int) -> str:
    pruned = " -o ".join(f"-path {shlex.quote('./' + _literal(path))}" for path in skip)
    prune = rf"\( {pruned} \) -prune -o " if pruned else ""
    # What does not fit is cut at an even number of fields; the last one tells how find ended.
    return (
        f"cd -- {shlex.quote(str(folder))} && export LC_ALL=C && printf '%s\\0' \"$EPOCHREALTIME\" && "
        f"{{ find . {prune}-printf '{_FORMAT}' 2>/dev/null; printf 'end\\0%s\\0' $?; }}"
        f" | head -z -n {2 * most + 4}"
    )


def _literal(path: str) -> str:
    return "".join("\\" + letter if letter in "*?[\\" else letter for letter in path)


def parse(output: bytes, most: int) -> Listing | None:
    """Read what the command printed; None when it is no listing."""
    now, *fields = output.split(b"\0")
    found = Listing()
    failed = True
    try:
        taken = _nanoseconds(now)
        for shown, target in zip(fields[::2], fields[1::2], strict=False):
            if shown == b"end":
                failed = target != b"0"
                break
            _add(found, shown, target, taken)
    except ValueError:
        return None
    if "" not in found.entries:
        return None
    del found.entries[""]
    if len(found.entries) > most or (failed and not found.unknown):
        found.unknown.add("")
    return found


def _add(found: Listing, shown: bytes, target: bytes, taken: int) -> None:
    kind, mode, size, inode, mtime, ctime, name = shown.split(b" ", 6)
    path, bits = os.fsdecode(name), int(mode, 8)
    if path and not is_plain(path):
        found.unknown.add(path)
    elif path.rpartition("/")[2].startswith(UNFINISHED):
        return
    elif kind == b"d":
        found.entries[path] = Entry("dir", mode=bits & 0o777)
        if bits & 0o500 != 0o500:
            found.unknown.add(path)
    elif kind == b"l":
        found.entries[path] = Entry("link", target=os.fsdecode(target))
    elif kind == b"f":
        changed = _nanoseconds(ctime)
        if changed > taken - TICK:
            found.fresh.add(path)
        found.entries[path] = Entry(
            "file", int(size), _nanoseconds(mtime), bits & 0o777, mark=(int(inode), changed)
        )


def _nanoseconds(text: bytes) -> int:
    whole, _, part = text.partition(b".")
    return int(whole) * 10**9 + int(part[:9].ljust(9, b"0") or 0)
