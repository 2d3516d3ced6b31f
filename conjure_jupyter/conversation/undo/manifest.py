"""What a session's ``work`` folder held at one moment, as a value and as the bytes of a blob.

The blob is a JSON object of ``{path: [sha256, mode, size]}``, keys sorted and all of it ASCII, so that an
equal tree gives equal bytes. A byte of a name that is no UTF-8 is written as Python reads it (PEP 383): 0xE9
is the lone surrogate U+DCE9, in JSON's escape. Two entries are special:

* ``["", mode, size, mtime_ns]``: a file whose bytes were not read; size and time tell whether it changed;
* a key that is empty or ends with ``/``: a folder not seen to its end; what else lay there is unknown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from .worktree import is_work

#: Most files that are named in a block as left out.
_TOLD = 50

_SHA256 = re.compile(r"[0-9a-f]{64}")

#: Whether a snapshot was taken before a turn, or after one.
When = Literal["start", "end"]


class Entry(NamedTuple):
    """A regular file.

    Attributes:
        sha256: hex digest of its bytes; empty when they were not read.
        mode: permission bits.
        size: bytes.
        mtime_ns: time of its last change where ``sha256`` is empty, else 0.
    """

    sha256: str
    mode: int
    size: int
    mtime_ns: int = 0


#: Stands for what may lie in a folder that was not seen to its end.
UNSEEN = Entry("", 0, -1)


class Skipped(NamedTuple):
    """A file or folder whose bytes were not kept, and why."""

    path: str
    size: int
    reason: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the folder held.

    Attributes:
        manifest: SHA-256 of the blob that says so.
        files: each regular file by its relative path, also those whose bytes were not kept.
        unseen: folders that were not seen to their end.
        skipped: what was not kept; known only to whoever took the snapshot.
        kept: how many files were kept.
        size: their bytes.
    """

    manifest: str
    files: Mapping[str, Entry]
    unseen: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    kept: int = field(init=False)
    size: int = field(init=False)

    def __post_init__(self) -> None:
        left_out = {entry.path for entry in self.skipped}
        kept = [e.size for path, e in self.files.items() if e.sha256 and path not in left_out]
        object.__setattr__(self, "kept", len(kept))
        object.__setattr__(self, "size", sum(kept))

    def at(self, path: str) -> Entry | None:
        """The file at a path, None when there is none, ``UNSEEN`` when that is not known."""
        entry = self.files.get(path)
        if entry is None and self.unseen and any(path.startswith(folder) for folder in self.unseen):
            return UNSEEN
        return entry

    def data(self, when: When, *, undoing: str | None = None) -> dict[str, Any]:
        """The ``snapshot`` block of a timeline.

        Args:
            when: before a turn, or after one.
            undoing: the manifest that an undo is about to go back to.
        """
        told = [{"path": s.path, "size": s.size, "reason": s.reason} for s in self.skipped[:_TOLD]]
        more = {} if undoing is None else {"undoing": undoing}
        return {
            "manifest": self.manifest,
            "files": self.kept,
            "size": self.size,
            "skipped": told,
            "when": when,
            **more,
        }


def encode(files: Mapping[str, Entry], unseen: Iterable[str]) -> bytes:
    """The bytes of a manifest."""
    content: dict[str, list[str | int]] = {
        path: list(entry[:3] if entry.sha256 else entry) for path, entry in files.items()
    }
    content |= {folder: ["", 0, 0] for folder in unseen}
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode("ascii")


def decode(manifest: str, data: bytes) -> Snapshot:
    """The snapshot that a manifest's bytes stand for.

    A log may come from anywhere: a path that leads out of the folder, or into what snapshots leave alone, is
    refused with all the rest.

    Raises:
        ValueError: it is no manifest.
    """
    try:
        content = json.loads(data)
    except RecursionError:
        raise ValueError("nested too deep") from None
    if not isinstance(content, dict):
        raise ValueError("not an object")  # noqa: TRY004  one error for whatever is wrong with it
    files: dict[str, Entry] = {}
    unseen: list[str] = []
    for path, values in content.items():
        if not path or path.endswith("/"):
            unseen.append(path)
        else:
            files[_checked(path)] = _entry(values)
    return Snapshot(manifest, files, tuple(unseen))


def _checked(path: str) -> str:
    parts = path.split("/")
    if "\0" in path or not is_work(path) or any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"{path!r} is no path of a work file")
    return path


def _entry(values: Any) -> Entry:
    if not isinstance(values, list) or len(values) not in (3, 4):
        raise ValueError("not an entry")
    sha256, *numbers = values
    if not isinstance(sha256, str) or not all(type(number) is int and number >= 0 for number in numbers):
        raise ValueError("not an entry")
    if sha256 and not _SHA256.fullmatch(sha256):
        raise ValueError("not a digest")
    mode, size, *time = numbers
    return Entry(sha256, mode & 0o777, size, *(() if sha256 else time))


def diff(before: Snapshot, after: Snapshot) -> dict[str, tuple[Entry | None, Entry | None]]:
    """What differs between two snapshots: each path with its file in the one and in the other."""
    if before.manifest == after.manifest:
        return {}
    paths = before.files.keys() | after.files.keys()
    pairs = ((path, before.at(path), after.at(path)) for path in sorted(paths))
    return {path: (old, new) for path, old, new in pairs if old != new}
