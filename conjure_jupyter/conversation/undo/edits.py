"""What file tools edit outside ``work/``: the earlier bytes are kept, so that they can be put back.

``work/`` has its snapshots. Elsewhere, as in the notebook's folder when tools work there, nothing is looked
at but the files that a file tool writes. Each is followed by ``edit`` blocks:

========== ==================================================================================================
path       absolute, links followed
before     digest of its bytes; empty when they were not kept; None when there was no file
after      the same of what it became; absent while the call is about to run
mode       permission bits before, None when there was no file
made       the outermost folder that the call had to make, if it did
by         ``tool``; ``turn``: something else in the turn, as a command; ``user``: between two turns; ``undo``
========== ==================================================================================================
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ...artifacts.blobs import BlobStore
from ...artifacts.layout import Layout
from ...errors import ConjureError, ToolError
from ...executors import ExecutionContext
from ...paths import validate_path
from ...timeline import BaseTimeline
from ...types import Block, ToolCall, ToolResult
from ..trees import Signature, signature
from . import worktree

EDIT = "edit"

#: The tools that write the file named in ``path``.
_WRITERS = frozenset({"create_file", "str_replace"})

#: Most files that are looked at again at each turn's start and end: those edited last.
_FOLLOWED = 500


class Outside(NamedTuple):
    """What lies at a path outside ``work/``.

    Attributes:
        sha256: digest of a file's bytes; empty for what is no file, or larger than the limit; None when
            there is nothing.
        mode: permission bits.
        size: bytes.
    """

    sha256: str | None
    mode: int = 0
    size: int = 0


class Edits:
    """Takes note of edits outside ``work/``.

    Args:
        timeline: gives the log.
        blobs: where earlier bytes are kept.
        layout: the session's folders.
        context: gives what tools may write.
        limit: most bytes of a file that are kept.
    """

    def __init__(
        self,
        timeline: Callable[[], BaseTimeline],
        blobs: BlobStore,
        layout: Layout,
        context: Callable[[], ExecutionContext],
        limit: int,
    ) -> None:
        self._timeline = timeline
        self._blobs = blobs
        self._layout = layout
        self._context = context
        self._limit = limit
        self._pending: dict[str, tuple[str, dict[str, Any]]] = {}
        self._digests: dict[str, tuple[Signature, Outside]] = {}

    async def before(self, call: ToolCall) -> None:
        """A call is about to run, with the path that it will write.

        Raises:
            TimelineError: the log cannot be written.
        """
        if call.name in _WRITERS:
            await asyncio.to_thread(self._before, call)

    async def after(self, call: ToolCall, result: ToolResult) -> None:  # noqa: ARG002  the toolbox's hook
        """A call ended, whatever it gave.

        Raises:
            TimelineError: the log cannot be written.
        """
        if call.id in self._pending:
            await asyncio.to_thread(self._after, call)

    def turn_begins(self) -> None:
        """Before a turn's first block: what changed since the last turn is the user's. Blocks.

        Raises:
            TimelineError: the log cannot be written.
        """
        self._follow("user")

    def turn_ends(self) -> None:
        """After a turn's last call: what changed besides the calls is the turn's. Blocks.

        Raises:
            TimelineError: the log cannot be written.
        """
        self._pending.clear()
        self._follow("turn")

    def _before(self, call: ToolCall) -> None:
        path = self._target(call.input.get("path"))
        if path is None:
            return
        # What cannot be kept is told when the turn is undone; the edit itself is what the user asked for.
        found = look(path, self._limit, keep=self._blobs)
        data = {
            "path": str(path),
            "before": found.sha256,
            "mode": None if found.sha256 is None else found.mode,
            "made": _missing_folder(path),
            "by": "tool",
            "tool_call_id": call.id,
        }
        self._pending[call.id] = (str(path), data)
        self._timeline().append(EDIT, data)

    def _after(self, call: ToolCall) -> None:
        path, data = self._pending.pop(call.id)
        found = look(Path(path), self._limit)
        if found.sha256 != data["before"]:
            self._timeline().append(EDIT, {**data, "after": found.sha256})

    def _target(self, asked: object) -> Path | None:
        """The file outside ``work/`` that a call will write, when it may."""
        if not isinstance(asked, str) or not asked or asked.endswith("/"):
            return None
        context = self._context()
        try:
            folders = (context.working_directory, *context.writable_paths)
            path = validate_path(context.working_directory / asked, folders)
        except ToolError:
            return None  # the tool will say so
        return None if path.is_relative_to(os.path.realpath(self._layout.root)) else path

    def _follow(self, by: Literal["user", "turn"]) -> None:
        timeline = self._timeline()
        for path, last in list(followed(timeline.blocks).items())[-_FOLLOWED:]:
            now = self._look(path)
            known = last["after"] if "after" in last else last.get("before")
            if now.sha256 not in left_by(last):
                timeline.append(EDIT, {**undone(path, known, now.sha256), "by": by})

    def _look(self, path: str) -> Outside:
        try:
            status = os.lstat(path)
        except OSError:
            return Outside(None)
        known = self._digests.get(path)
        if known is not None and known[0] == signature(status):
            return known[1]
        # Kept, because a command of the next turn may change it.
        found = look(Path(path), self._limit, keep=self._blobs)
        if worktree.settled(status):
            self._digests[path] = (signature(status), found)
        return found


def followed(blocks: Iterable[Block]) -> dict[str, dict[str, Any]]:
    """The last ``edit`` of each path; the path edited last comes last."""
    last: dict[str, dict[str, Any]] = {}
    for block in blocks:
        if block.kind == EDIT and isinstance(path := block.data.get("path"), str):
            last.pop(path, None)
            last[path] = block.data
    return last


def left_by(edit: Mapping[str, Any]) -> tuple[str | None, ...]:
    """The digests that a file may have after an edit; more than one when it may have been cut short."""
    if "after" not in edit:
        return (edit.get("before"),)
    return (edit["after"], edit.get("before")) if edit.get("by") == "undo" else (edit["after"],)


def undone(path: str, before: str | None, after: str | None) -> dict[str, Any]:
    """The ``edit`` block of an undo that puts a file back."""
    return {"path": path, "before": before, "after": after, "mode": None, "made": None, "by": "undo"}


def look(path: Path, limit: int, *, keep: BlobStore | None = None) -> Outside:
    """What lies at a path; no link is followed, and nothing above ``limit`` bytes is read.

    Args:
        path: absolute.
        limit: bytes.
        keep: where to keep the bytes; ``sha256`` is empty when they cannot be.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return Outside(None)
    except OSError:
        return Outside("")
    with os.fdopen(fd, "rb", buffering=0) as stream:
        status = os.fstat(fd)
        mode = stat.S_IMODE(status.st_mode) & 0o777
        if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
            return Outside("", mode, status.st_size)
        try:
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
            if keep is not None and not keep.has(sha256):
                stream.seek(0)
                sha256, _ = keep.put_file(fd, limit=limit)
        except (ConjureError, OSError):
            sha256 = ""
        return Outside(sha256, mode, status.st_size)


def _missing_folder(path: Path) -> str | None:
    """The outermost folder of a path that does not exist."""
    missing = None
    for folder in path.parents:
        if os.path.lexists(folder):
            break
        missing = folder
    return str(missing) if missing is not None else None
