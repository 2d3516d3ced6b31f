"""What every timeline does, wherever its blocks are kept."""

from __future__ import annotations

import datetime as dt
import logging
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ..errors import SessionClosedError, TimelineError
from ..types import Block
from .line import VERSION, plain

logger = logging.getLogger(__name__)

#: Hears each block once it is in the log, on the thread that appended it.
Subscriber = Callable[[Block], None]


class BaseTimeline(ABC):
    """The blocks of a session, in the order in which things happened. Nothing ever leaves it.

    Attributes:
        id: the session's identifier.
        problems: what was found wrong when the log was opened, a sentence each.
    """

    def __init__(self, id_: str) -> None:
        self.id: Final = id_
        self.problems: list[str] = []
        self._blocks: list[Block] = []
        self._turn = 0
        self._next_seq = 0
        self._closed = False
        self._lock = threading.RLock()
        self._subscribers: list[Subscriber] = []
        self._undelivered: deque[Block] = deque()
        self._delivering = False

    @property
    def blocks(self) -> Sequence[Block]:
        """All blocks so far. It grows; it never changes otherwise."""
        return self._blocks

    @property
    def turn(self) -> int:
        """The current turn's number, 0 before the first."""
        return self._turn

    @property
    def closed(self) -> bool:
        """Whether nothing can be appended any more."""
        return self._closed

    def begin_turn(self) -> int:
        """The next turn's number; blocks appended from here on carry it. No number is used twice."""
        with self._lock:
            self._turn += 1
            return self._turn

    def append(self, kind: str, data: Mapping[str, Any], *, turn: int | None = None) -> Block:
        """Write a block; when this returns, a crash of the process cannot lose it. Safe from any thread.

        Args:
            kind: one of ``BlockKind``, or a kind of the caller's own.
            data: JSON values. They are copied.
            turn: the turn it belongs to; the current one when not given.

        Raises:
            SessionClosedError: the timeline is closed.
            TimelineError: the block could not be written; the log is as it was before.
        """
        with self._lock:
            if self._closed:
                raise SessionClosedError(self.id)
            turn = self._turn if turn is None else turn
            time = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
            try:
                if turn < 0 or not isinstance(kind, str):
                    raise ValueError(f"turn {turn}, kind {kind!r}")  # noqa: TRY301  told like all that does not fit
                block = Block(self._next_seq, turn, kind, plain(dict(data)), time)
                self._write(block)
            except (TypeError, ValueError, RecursionError) as error:
                raise TimelineError(self._where, f"a {kind} block cannot be written: {error}") from error
            self._next_seq = block.seq + 1
            self._turn = max(self._turn, turn)
            self._blocks.append(block)
            self._undelivered.append(block)
            self._deliver()
            return block

    def subscribe(self, fn: Subscriber, *, replay: bool = False) -> Callable[[], None]:
        """Call ``fn`` with every block from here on, in order; with ``replay``, with all earlier ones first.

        It is called before ``append`` returns, must return at once, and may append. What it raises is
        logged and goes no further: the block is in the log already.

        Returns:
            A function that ends the subscription.
        """
        with self._lock:
            if replay:
                for block in self._blocks[: len(self._blocks) - len(self._undelivered)]:
                    fn(block)
            self._subscribers.append(fn)

        def unsubscribe() -> None:
            with self._lock:
                if fn in self._subscribers:
                    self._subscribers.remove(fn)

        return unsubscribe

    def _deliver(self) -> None:
        # A subscriber that appends comes here again; its block waits until everybody has seen this one.
        if self._delivering:
            return
        self._delivering = True
        try:
            while self._undelivered:
                block = self._undelivered.popleft()
                for fn in tuple(self._subscribers):
                    try:
                        fn(block)
                    except Exception:
                        logger.exception("A subscriber of session %s failed at block %d", self.id, block.seq)
        finally:
            self._delivering = False

    @property
    @abstractmethod
    def _where(self) -> Path:
        """The log's path, for messages."""

    @abstractmethod
    def _write(self, block: Block) -> None:
        """Keep the block.

        Raises:
            TimelineError: it could not be kept; nothing of it was.
            TypeError, ValueError, RecursionError: it has no JSON form.
        """

    @property
    @abstractmethod
    def durable(self) -> int:
        """How many blocks are known to be on disk."""

    @abstractmethod
    def sync(self) -> bool:
        """Put all blocks appended so far on disk and wait for it.

        Returns:
            True when they are; False when this timeline keeps nothing on disk.

        Raises:
            TimelineError: the disk refused, now or earlier. Nothing is claimed of it any more.
            SessionClosedError: the timeline is closed.
        """

    @abstractmethod
    async def synced(self) -> bool:
        """``sync`` without holding up the event loop. Calls overlap: one flush serves all who wait."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the log, without another flush to disk. Doing so twice is harmless."""


class MemoryTimeline(BaseTimeline):
    """A timeline that is gone with the process: for library calls that need no session on disk.

    Args:
        meta: what the ``session`` block says besides ``id``, ``format`` and ``created``.
    """

    def __init__(self, meta: Mapping[str, Any] | None = None) -> None:
        meta = meta or {}
        super().__init__(str(meta.get("id", "memory")))
        self.append("session", session_data(self.id, meta))

    @property
    def _where(self) -> Path:
        return Path(self.id)

    def _write(self, block: Block) -> None:
        pass

    @property
    def durable(self) -> int:
        """Always 0."""
        return 0

    def sync(self) -> bool:
        """There is no disk: False.

        Raises:
            SessionClosedError: the timeline is closed.
        """
        if self._closed:
            raise SessionClosedError(self.id)
        return False

    async def synced(self) -> bool:
        """There is no disk: False."""
        return self.sync()

    def close(self) -> None:
        """Take no more blocks."""
        with self._lock:
            self._closed = True


def session_data(id_: str, meta: Mapping[str, Any]) -> dict[str, Any]:
    """What the first block of a session says."""
    created = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
    return {"id": id_, "format": VERSION, "created": created, **meta}
