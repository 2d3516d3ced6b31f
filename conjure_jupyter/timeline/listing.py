"""What a list of sessions shows of one, read without building its history."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import SessionNotFoundError, TimelineError
from ..types import Block
from .line import HEAD, BadLineError, decode
from .log import LOG
from .projections import TurnsProjection, prompt_text
from .recovery import Line, lines

#: Longest line, in bytes, that is parsed for its prompt; a larger one holds images or files.
_PARSED = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A session in a list.

    Attributes:
        id: its identifier.
        folder: where it lies.
        created: ISO 8601, None when its first block is lost.
        notebook: what the session says it belongs to.
        turns: how many turns were begun, undone ones included.
        first_prompt: one line, shortened.
        last_time: when its last block was written, ISO 8601.
        cost: USD of all turns whose cost is known, None when none is.
        size: bytes of the log.
    """

    id: str
    folder: Path
    created: str | None
    notebook: Any
    turns: int
    first_prompt: str
    last_time: str | None
    cost: float | None
    size: int


def read_session(folder: Path) -> SessionInfo:
    """Summarise a session; takes no lock, and a damaged log gives what it still says.

    Only the heads of lines are looked at, and the few lines that tell something here are parsed.

    Raises:
        SessionNotFoundError: there is no log in the folder, or nothing in it yet.
        TimelineError: it cannot be read.
    """
    summary = _Summary()
    with _open(folder) as file:
        for line in lines(file):
            summary.take(line)
    if not summary.size:
        raise SessionNotFoundError(folder.name, folder.parent)
    return summary.info(folder)


class _Summary:
    """Takes the lines of a log one by one."""

    def __init__(self) -> None:
        self.size = 0
        self._session: dict[str, Any] = {}
        self._ends = TurnsProjection()
        self._prompt: str | None = None
        self._begun: set[int] = set()
        self._last: bytes | None = None

    def take(self, line: Line) -> None:
        """Take the next line."""
        self.size += line.length
        head = HEAD.match(line.data) if line.data and line.ended else None
        if head is None or line.data is None:
            return
        kind, self._last = head[4], head[5]
        if kind == b"user":
            self._begun.add(int(head[3]))
            if self._prompt is None and len(line.data) <= _PARSED and (block := _read(line.data)):
                self._prompt = prompt_text(block.data.get("prompt") or block.data.get("content"))
        elif kind == b"turn_end" and (block := _read(line.data)):
            self._ends.feed(block)
        elif kind == b"session" and not self._session and (block := _read(line.data)):
            self._session = block.data

    def info(self, folder: Path) -> SessionInfo:
        """What the lines say."""
        created = self._session.get("created")
        return SessionInfo(
            id=folder.name,
            folder=folder,
            created=created if isinstance(created, str) else None,
            notebook=self._session.get("notebook"),
            turns=len(self._begun),
            first_prompt=self._prompt or "",
            last_time=self._last.decode(errors="replace") if self._last else None,
            cost=self._ends.cost,
            size=self.size,
        )


def _open(folder: Path) -> BinaryIO:
    path = folder / LOG
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        return os.fdopen(fd, "rb", buffering=1024 * 1024)
    except (FileNotFoundError, NotADirectoryError):
        raise SessionNotFoundError(folder.name, folder.parent) from None
    except OSError as error:
        raise TimelineError(path, f"cannot be read ({error.strerror})") from error


def _read(line: bytes) -> Block | None:
    try:
        return decode(line)[0]
    except BadLineError:
        return None
