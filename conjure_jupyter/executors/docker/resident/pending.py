"""Calls that wait for the container's answer, and what of it is believed.

A command may have got hold of the resident and answer in its place. So nothing is taken but what was asked
for, of the type and size it can have; all else is a ``FrameError``, after which the link is closed.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any, ClassVar, Literal, cast

from ....errors import ExecutorError, PathNotFoundError, PermissionDeniedError, ToolError
from ....settings import MB
from ....wording import size_text
from ...contract import CommandResult, Stat
from .frames import FrameError

_log = logging.getLogger(__name__)

#: Most bytes of a file that are read when the caller gives no limit.
MAX_READ = 1024 * MB
#: Most bytes of names and facts in the answer to ``list``.
MAX_LISTING = 64 * MB
#: Bytes by which the line that tells of a cut lengthens a command's output.
CUT_LINE = 64
#: Most notes of a command's end, and characters in each and in an error's words.
MAX_NOTES, MAX_NOTE, MAX_WORDS = 8, 300, 2000
_MOST = 1 << 63
_LONGEST = 1e9
_KINDS = ("file", "dir", "link", "other")


class Pending:
    """A call that waits.

    Args:
        subject: the path it is about, for errors.

    Attributes:
        answered: whether the other side has said its last of it.
        cancelled: whether it was told to end the call.
        heard: frames that came.
        future: the answer.
    """

    #: Whether a caller that is cancelled waits until the other side has ended the call.
    ends: ClassVar[bool] = False

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._data = bytearray()
        self.answered = False
        self.cancelled = False
        self.heard = 0
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def take(self, header: dict[str, Any], data: bytes) -> None:
        """A frame of the other side.

        Raises:
            FrameError: it is none that the call can have.
        """
        if self.answered:
            raise FrameError("a frame after the last")
        self.heard += 1
        if "done" in header:
            facts = header["done"]
            if not isinstance(facts, dict):
                raise FrameError("an answer without facts")
            self._last(self.done(facts, data))
        elif "fail" in header:
            self._last(self._error(header["fail"], header.get("words")))
        elif not data:
            raise FrameError("an empty frame")
        elif header.get("out") is True:
            self.out(data)
        elif header.get("data") is True:
            self.more(data)
        else:
            raise FrameError("a frame of no kind")

    def out(self, data: bytes) -> None:  # noqa: ARG002  commands have it
        """A piece of a command's output."""
        raise FrameError("output that nobody asked for")

    def more(self, data: bytes) -> None:  # noqa: ARG002  files and folders have it
        """A piece of the answer's data."""
        raise FrameError("data that nobody asked for")

    def done(self, facts: dict[str, Any], data: bytes) -> Any:
        """What the caller gets."""
        if facts or data:
            raise FrameError("an answer that nobody asked for")

    def lose(self, error: Exception) -> None:
        """There will be no answer."""
        if not self.future.done():
            self.future.set_exception(error)

    def _last(self, answer: Any) -> None:
        self.answered = True
        if self.future.done():
            return
        if isinstance(answer, Exception):
            self.future.set_exception(answer)
        else:
            self.future.set_result(answer)

    def _gather(self, data: bytes, limit: int) -> None:
        self._data += data
        if len(self._data) > limit:
            raise FrameError("more data than was asked for")

    def _error(self, kind: object, words: object) -> Exception:
        """Errors are made of a fixed table, whatever the other side calls them."""
        told = cleaned(words if isinstance(words, str) else "", MAX_WORDS)
        if kind == "missing":
            return PathNotFoundError(self._subject, told)
        if kind == "denied":
            return PermissionDeniedError(self._subject, told)
        if kind == "tool":
            return ToolError(told)
        if kind == "executor":
            return ExecutorError(told)
        if kind == "cancelled" and self.cancelled:
            return ExecutorError("the call was ended in the container")
        raise FrameError("a failure of no kind")


class Running(Pending):
    """A command."""

    ends = True

    def __init__(self, limit: int, on_output: Callable[[bytes], None] | None) -> None:
        super().__init__("")
        self._limit = limit
        self._unheard = limit if on_output is not None else 0
        self._on_output = on_output

    def out(self, data: bytes) -> None:
        """Tell the listener."""
        self._unheard -= len(data)
        if self._unheard < 0:
            raise FrameError("more output than was asked for")
        if self._on_output is None or self.future.done():
            return
        try:
            self._on_output(data)
        except Exception:  # noqa: BLE001  a listener's fault must not lose the command's result
            _log.exception("a listener of a command's output failed; it hears no more")
            self._on_output = None

    def more(self, data: bytes) -> None:
        """A piece of what is kept of the output."""
        self._gather(data, self._limit + CUT_LINE)

    def done(self, facts: dict[str, Any], data: bytes) -> CommandResult:
        """How the command ended."""
        self.more(data)
        timed_out = facts.get("timed_out")
        duration = facts.get("duration")
        notes = facts.get("notes")
        if not isinstance(timed_out, bool) or not isinstance(notes, list) or len(notes) > MAX_NOTES:
            raise FrameError("a result of the wrong types")
        if not isinstance(duration, (int, float)) or not 0 <= duration <= _LONGEST:
            raise FrameError("a duration that is none")
        code = facts.get("exit_code")
        return CommandResult(
            output=bytes(self._data),
            exit_code=None if timed_out or code is None else _number(code, 0, 255),
            timed_out=timed_out,
            duration=float(duration),
            total_bytes=_number(facts.get("total_bytes"), 0, _MOST),
            truncated_bytes=_number(facts.get("truncated_bytes"), 0, _MOST),
            leftovers=_number(facts.get("leftovers"), 0, _MOST),
            notes=tuple(cleaned(note, MAX_NOTE) for note in notes if isinstance(note, str)),
        )


class Reading(Pending):
    """Bytes of a file."""

    def __init__(self, subject: str, limit: int | None) -> None:
        super().__init__(subject)
        self._limit = limit

    def more(self, data: bytes) -> None:
        """A piece of the file."""
        if self.future.done():
            return
        if self._limit is None and len(self._data) + len(data) > MAX_READ:
            self._data.clear()
            most = size_text(MAX_READ)
            self.lose(ToolError(f"{self._subject}: is larger than {most}; read it in parts"))
            return
        self._gather(data, MAX_READ if self._limit is None else self._limit)

    def done(self, facts: dict[str, Any], data: bytes) -> bytes:
        """All of it."""
        if facts:
            raise FrameError("an answer that nobody asked for")
        self.more(data)
        return bytes(self._data)


class Listing(Pending):
    """What a folder holds."""

    def __init__(self, subject: str, limit: int) -> None:
        super().__init__(subject)
        self._limit = limit
        self._size = 0
        self._found: list[Stat] = []

    def more(self, data: bytes) -> None:
        """Some rows, as JSON."""
        self._size += len(data)
        if self._size > MAX_LISTING:
            raise FrameError("more data than was asked for")
        try:
            rows = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise FrameError("rows that are no JSON") from error
        if not isinstance(rows, list) or len(self._found) + len(rows) > max(0, self._limit):
            raise FrameError("more rows than were asked for")
        for row in rows:
            found = _stat(row)
            if found.path.startswith("/") or not {"", ".", ".."}.isdisjoint(found.path.split("/")):
                raise FrameError("a name that is not inside the folder")
            self._found.append(found)

    def done(self, facts: dict[str, Any], data: bytes) -> list[Stat]:
        """All entries."""
        if facts:
            raise FrameError("an answer that nobody asked for")
        self.more(data)
        return sorted(self._found, key=lambda entry: entry.path)


class Looking(Pending):
    """What lies at a path."""

    def done(self, facts: dict[str, Any], data: bytes) -> Stat:
        """The one entry."""
        found = _stat(facts.get("stat"))
        if data or found.path != self._subject:
            raise FrameError("an answer that nobody asked for")
        return found


def cleaned(text: str, limit: int) -> str:
    """At most ``limit`` characters of a text, those that control something left out but for line ends."""
    return "".join(char for char in text[: 2 * limit] if char.isprintable() or char == "\n")[:limit]


def _number(value: object, low: int, high: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise FrameError("a number that is none")
    return value


def _stat(row: object) -> Stat:
    if not isinstance(row, list) or len(row) != 5:
        raise FrameError("a row that is none")
    path, kind, size, mtime, mode = row
    if not isinstance(path, str) or "\0" in path or kind not in _KINDS:
        raise FrameError("a row of the wrong types")
    return Stat(
        path=path,
        kind=cast("Literal['file', 'dir', 'link', 'other']", kind),
        size=_number(size, 0, _MOST),
        mtime_ns=_number(mtime, -_MOST, _MOST),
        mode=_number(mode, 0, 0o7777),
    )
