"""What was written here and must reach the service: a queue on disk, drained in the background.

A write is acknowledged once its entry is on disk, and its entry goes once the service has confirmed it, so
neither a crash nor a dead network loses one. Operations on one key keep their order; an ordered one waits
for all before it; the others travel many at once. While the service is away one attempt after the other is
made, at growing distances, and no entry is ever given up. A conflict, or a refusal, stops the queue: what
waits stays where it is, and the next write or sync says why.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import itertools
import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..errors import StorageConflictError, StorageError
from ..errors import StorageUnavailableError as Unavailable
from .bucket import Bucket
from .entry import Entry, Mode
from .files import Folder, Signature
from .flush import Flush
from .journal import Journal, hold
from .sending import send

log = logging.getLogger(__name__)

#: Operations that travel at once.
AT_ONCE = 48

#: Bytes of small writes that are kept in memory until they are sent, so as not to be read again.
IN_MEMORY = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long to wait after failures, in seconds: from ``first``, doubled each time, to ``most``."""

    first: float = 0.5
    most: float = 30.0

    def delay(self, failures: int) -> float:
        """After so many failures in a row; a random part keeps many machines from returning as one."""
        part: float = random.uniform(0.5, 1.0)  # noqa: S311  not a secret
        return float(min(self.most, self.first * 2 ** min(failures - 1, 20)) * part)


class UploadQueue:
    """The operations on one local copy that wait for one bucket. All methods run on one event loop."""

    def __init__(
        self,
        files: Folder,
        bucket: Bucket,
        *,
        on_open: Callable[[list[Entry]], None] | None = None,
        on_sent: Callable[[Entry, str], None] | None = None,
        at_once: int = AT_ONCE,
        backoff: Backoff | None = None,
    ) -> None:
        """Prepare; ``open`` starts it.

        Args:
            files: the local copy; the queue lies in a hidden folder of it.
            bucket: where to.
            on_open: hears what an earlier process left, in a thread, before any of it is sent.
            on_sent: hears each entry that was confirmed, with the etag of what is there now, before it is
                forgotten; after a crash it may hear of one twice.
            at_once: most operations that travel at once.
            backoff: how long to wait after failures.
        """
        self.journal = Journal(files, bucket.url)
        self._bucket = bucket
        self._on_open = on_open
        self._on_sent = on_sent
        self._at_once = at_once
        self._backoff = backoff or Backoff()
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Entry] = {}
        self._chains: dict[str, collections.deque[Entry]] = {}
        self._ready: collections.deque[Entry] = collections.deque()
        self._etags: dict[str, str] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._adding: set[asyncio.Task[None]] = set()
        self._disk = Flush(self.journal)
        self._in_memory = 0
        self._watchers: set[asyncio.Future[None]] = set()
        self._failures = 0
        self._failure: Unavailable | None = None
        self._refusal: StorageError | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._progress = time.monotonic()
        self._open = False
        self._opening = asyncio.Lock()

    @property
    def pending(self) -> int:
        """How many operations wait or travel."""
        return len(self._waiting)

    @property
    def stopped(self) -> StorageError | None:
        """Why nothing is sent any more: a conflict or a refusal."""
        return self._refusal

    def last(self, key: str) -> Entry | None:
        """The last operation on a key that waits."""
        chain = self._chains.get(key)
        return chain[-1] if chain else None

    @property
    def waiting_keys(self) -> list[str]:
        """The keys that operations wait for."""
        return [*self._chains]

    async def open(self) -> bool:
        """Take what an earlier process left, and begin to send; False when another process has it.

        Raises:
            StorageError: the folder cannot be used, or what waits there cannot be read.
        """
        async with self._opening:
            if self._open:
                return True
            if not await asyncio.to_thread(self.journal.acquire):
                return False
            left = await asyncio.to_thread(self.journal.entries)
            if self._on_open is not None:
                await asyncio.to_thread(self._on_open, left)
            self._open = True
            for entry in left:
                self._enter(entry)
            self._numbers = itertools.count(left[-1].seq + 1 if left else 1)
            self._pump()
            return True

    async def check(self) -> None:
        """Whether an operation would be taken.

        Raises:
            StorageConflictError: another process has the queue, or the queue stopped at a conflict.
            StorageError: the queue stopped at a refusal.
        """
        if self._refusal is not None:
            raise _again(self._refusal)
        if not await self.open():
            where = str(self.journal.folder.parent)
            raise StorageConflictError(where, "another process writes to this session's local copy")

    async def put(
        self,
        key: str,
        content: bytes | int | None,
        *,
        mode: Mode = "any",
        ordered: bool = False,
        size: int = 0,
        sha256: str = "",
        content_type: str | None = None,
        etag: str = "",
        replaces: str = "",
        signature: Signature | None = None,
    ) -> Entry:
        """Have bytes put under a key; they are on disk, and so is the order, when this returns.

        Args:
            key: where to.
            content: few bytes, an open file that holds many, or None for the key's own file in the local
                copy, which must then stay as it is.
            mode: replace ``any`` version there, none (``new``), or that which ``etag`` and ``replaces`` name.
            ordered: wait for all before it.
            size: of the bytes, when ``content`` is None.
            sha256: of the bytes, when it is known.
            content_type: MIME type.
            etag: of what is expected there.
            replaces: SHA-256 of what is expected there.
            signature: of the key's file, for ``on_sent`` to find in the entry.

        Raises:
            StorageConflictError: another process has the queue, or it stopped at a conflict.
            StorageError: it stopped at a refusal, or the disk is full.
        """
        await self.check()
        entry = Entry(next(self._numbers), "put", key, ordered, mode, sha256, size, content_type)
        entry.etag, entry.replaces, entry.signature = etag, replaces, signature
        if isinstance(content, bytes):
            hold(entry, content)
        elif content is None:
            entry.held = "file"
        else:
            entry.held = "spool"
        await self._add(entry, content if isinstance(content, int) else None)
        return entry

    async def delete(self, key: str, *, ordered: bool = False, etag: str = "", replaces: str = "") -> None:
        """Have a key deleted; the order is on disk when this returns.

        Raises:
            StorageConflictError: another process has the queue, or it stopped at a conflict.
            StorageError: it stopped at a refusal, or the disk is full.
        """
        await self.check()
        seq = next(self._numbers)
        await self._add(Entry(seq, "delete", key, ordered, etag=etag, replaces=replaces), None)

    async def drained(self, patience: float | None = None) -> None:
        """Wait until nothing waits; starts again at once what stopped or paused.

        Args:
            patience: seconds without any success after which a service that fails is given up on; None
                waits for ever. What waits stays in any case.

        Raises:
            StorageConflictError: somebody else wrote there first.
            StorageUnavailableError: the service cannot be reached.
            StorageError: it refused.
        """
        self._refusal = None
        await self.check()
        self._resume()
        self._progress = time.monotonic()
        while self._waiting:
            if self._refusal is not None:
                raise _again(self._refusal)
            left = None if patience is None else self._progress + patience - time.monotonic()
            if left is not None and left <= 0 and self._failure is not None:
                raise _again(self._failure)
            await self._change(left if self._failure is not None else None)

    async def discard(self) -> list[Entry]:
        """Forget all that waits, after a conflict that was settled in the other's favour; returns it.

        Raises:
            StorageError: an entry cannot be removed.
        """
        await self._stop()
        dropped = [*self._waiting.values()]
        for entry in dropped:
            self._note(entry)
        await self._disk.finished()
        self._waiting.clear()
        self._chains.clear()
        self._ready.clear()
        self._etags.clear()
        self._refusal, self._failure, self._failures = None, None, 0
        self._notify()
        return dropped

    async def close(self) -> None:
        """Stop sending; what is not confirmed stays on disk."""
        await self._stop()
        await self._disk.finished()
        self._open = False
        self._waiting.clear()
        self._chains.clear()
        self._ready.clear()
        await asyncio.to_thread(self.journal.release)

    async def _stop(self) -> None:
        while self._adding:
            await asyncio.wait(self._adding)
        self._cancel_timer()
        was, self._open = self._open, False
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._open = was

    async def _add(self, entry: Entry, source: int | None) -> None:
        """Write an entry. It has its place from the start: others may be quicker on their way to the disk."""
        self._enter(entry)
        task = asyncio.create_task(self._write(entry, source))
        self._adding.add(task)
        task.add_done_callback(self._adding.discard)
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait([task])  # the caller's file must stay open until then
            raise

    async def _write(self, entry: Entry, source: int | None) -> None:
        try:
            if source is not None:
                await asyncio.to_thread(self.journal.spool, entry, source)
            await self._disk.add(entry)
        except BaseException:
            self._leave(entry)
            raise
        entry.durable = True
        if entry.content is not None:
            self._in_memory += entry.size
            if self._in_memory > IN_MEMORY:
                self._drop(entry)
        self._offer(entry)
        self._pump()

    def _drop(self, entry: Entry) -> None:
        """Let go of an entry's bytes in memory; they are on disk."""
        if entry.content is not None:
            self._in_memory -= entry.size
            entry.content = None

    def _enter(self, entry: Entry) -> None:
        self._waiting[entry.seq] = entry
        self._chains.setdefault(entry.key, collections.deque()).append(entry)
        self._offer(entry)

    def _leave(self, entry: Entry) -> None:
        del self._waiting[entry.seq]
        chain = self._chains[entry.key]
        head = chain[0] is entry
        chain.remove(entry)
        if not chain:
            del self._chains[entry.key]
            self._etags.pop(entry.key, None)
        elif head:
            self._offer(chain[0])
        self._notify()
        self._pump()

    def _offer(self, entry: Entry) -> None:
        """Make an entry ready that is on disk, first of its key, and need not wait for others."""
        if entry.durable and not entry.ordered and self._chains[entry.key][0] is entry:
            self._ready.append(entry)

    def _next(self) -> Entry | None:
        first = next(iter(self._waiting.values()), None)
        if first is not None and first.ordered and first.durable and not first.flying:
            return first
        return self._ready.popleft() if self._ready else None

    def _pump(self) -> None:
        """Start what may start. After a failure one goes alone, to see whether the service is back."""
        most = 1 if self._failures else self._at_once
        while self._open and self._refusal is None and self._timer is None and len(self._tasks) < most:
            entry = self._next()
            if entry is None:
                return
            entry.flying = True
            task = asyncio.create_task(self._fly(entry))
            self._tasks.add(task)
            task.add_done_callback(self._landed)

    def _landed(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._notify()
        self._pump()

    async def _fly(self, entry: Entry) -> None:
        try:
            etag = await self._send(entry)
            self._tell(entry, etag)
        except Unavailable as error:
            log.info("%s waits: %s", entry.key, error)
            self._return(entry)
            self._failure = error
            if self._timer is None:  # those that travelled together fail together, and count once
                self._failures += 1
                delay = self._backoff.delay(self._failures)
                self._timer = asyncio.get_running_loop().call_later(delay, self._resume)
        except StorageError as error:
            log.warning("sending stopped at %s: %s", entry.key, error)
            self._return(entry)
            self._refusal = error
        except BaseException:
            self._return(entry)
            raise
        else:
            self._failures, self._failure = 0, None
            self._cancel_timer()
            self._progress = time.monotonic()
            self._etags[entry.key] = etag
            self._note(entry)
            self._leave(entry)

    async def _send(self, entry: Entry) -> str:
        etag = self._etags.get(entry.key, entry.etag)
        chain = self._chains[entry.key]
        later = {each.sha256 for each in chain if each.seq > entry.seq and each.op == "put"}
        if entry.op == "delete":
            return await send(self._bucket, entry, None, etag, later)
        with contextlib.ExitStack() as stack:
            content: bytes | Path | None = entry.content
            if content is None:
                opening = self.journal.content(entry)
                content = await asyncio.to_thread(stack.enter_context, opening)
            return await send(self._bucket, entry, content, etag, later)

    def _note(self, entry: Entry) -> None:
        """An entry is done: its record on disk may go."""
        self._drop(entry)
        self._disk.note(entry)

    def _return(self, entry: Entry) -> None:
        entry.flying = False
        self._offer(entry)

    def _tell(self, entry: Entry, etag: str) -> None:
        if self._on_sent is not None:
            try:
                self._on_sent(entry, etag)
            except Exception:
                log.exception("a listener of the upload queue failed")

    def _resume(self) -> None:
        self._cancel_timer()
        self._pump()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _change(self, timeout: float | None) -> None:
        """Wait until something was confirmed, failed or left; for at most so many seconds."""
        watcher: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._watchers.add(watcher)
        try:
            await asyncio.wait([watcher], timeout=timeout)
        finally:
            self._watchers.discard(watcher)

    def _notify(self) -> None:
        for watcher in self._watchers:
            if not watcher.done():
                watcher.set_result(None)


def _again(error: StorageError) -> StorageError:
    """A fresh one: an error that is raised twice drags its first traceback along."""
    fresh = type(error)(error.where, error.reason)
    fresh.__cause__ = error
    return fresh
