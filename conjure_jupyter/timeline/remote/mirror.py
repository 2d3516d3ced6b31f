"""A session's log and blobs on a remote storage, while the session runs.

The log on this machine is the truth and the queue at once: what is remote is always a prefix of it, so
that after any crash the remote listing and the local log say together what is still to be sent. Nothing else
is kept about it here.

Lines go in numbered pieces that are made once and never replaced; the blobs that a piece names go before it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable

from ...errors import ConjureError, StorageConflictError, StorageError, StorageUnavailableError, ToolError
from ...types import Block
from ..log import Timeline
from .contents import Mirrored
from .holder import introduce, own_token
from .lease import LIFETIME, Lease
from .naming import BlobsOf, blobs_of
from .pieces import measure
from .sending import LogSender

logger = logging.getLogger(__name__)

#: Seconds after which what was said is sent, also while a turn runs.
INTERVAL = 5.0

#: Bytes of new lines that are sent at once.
PLENTY = 1024 * 1024

#: Most seconds between two tries while the service is away.
LONGEST_PAUSE = 60.0


class LogMirror:
    """Sends a session's log and blobs to a remote storage: at turn ends, and now and then while one runs.

    All methods but ``flush`` run on the engine's loop. Close it before the timeline.

    Args:
        timeline: the session's log, open for writing.
        storage: where it goes.
        blobs_of: says which blobs a block names.
        kernel: the notebook's name for the lease; by default from the front end's variable.
        interval: seconds after which new lines are sent while a turn runs.
        lifetime: seconds that the lease lasts unless renewed.
        tell: hears, once for each, what the user should know: a service that is away, a lease that was
            lost, a storage that does not keep writers apart. By default it is logged.
    """

    def __init__(
        self,
        timeline: Timeline,
        storage: Mirrored,
        *,
        blobs_of: BlobsOf = blobs_of,
        kernel: str | None = None,
        interval: float = INTERVAL,
        lifetime: float = LIFETIME,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self._timeline = timeline
        self._bucket = storage.bucket
        self._ask = blobs_of
        self._kernel = kernel
        self._interval = interval
        self._lifetime = lifetime
        self._tell = tell or logger.warning
        self._written = 0  # bytes of the local log
        self._failures = 0
        self._ended: ConjureError | None = None
        self._end_told = False
        self._wake = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._unsubscribe: Callable[[], None] = lambda: None
        self._sender: LogSender | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def pending(self) -> int:
        """Bytes of the log that are not remote yet."""
        return max(0, self._written - (self._sender.sent if self._sender else 0))

    @property
    def url(self) -> str:
        """Where the session is remote; what ``Session.resume`` takes on another machine."""
        return self._bucket.url.rstrip("/")

    async def start(self, *, force: bool = False) -> bool:
        """Take the lease, find out what is missing there, and begin to send it.

        Args:
            force: take the lease from a holder that still lives.

        Returns:
            False when the service cannot be reached now: that is told, work goes on here, and what waits
            is sent when the service is back.

        Raises:
            StorageConflictError: somebody else writes to the session, or the logs differ; says what to do.
            StorageError: the remote log is damaged, or the service refuses.
            TimelineError: the session's folder cannot be read or written.
        """
        self._loop = asyncio.get_running_loop()
        try:
            me = introduce(await asyncio.to_thread(own_token, self._timeline.folder), self._kernel)
        except ToolError as error:
            raise StorageError(str(self._timeline.folder), f"cannot be written ({error})") from error
        lease = Lease(self._bucket, me, lifetime=self._lifetime, on_lost=self._end)
        sender = LogSender(self._timeline, self._bucket, lease, self._ask, self._tell)
        self._unsubscribe = self._timeline.subscribe(self._heard)
        try:
            local = await asyncio.to_thread(measure, self._timeline.path)
            self._written = max(self._written, local.size)
            await self._connect(sender, lease, force=force)
        except StorageUnavailableError as error:
            self._put_off(error)
        except BaseException:
            self._unsubscribe()
            await lease.release()
            raise
        self._sender = sender
        self._task = asyncio.create_task(self._run(sender, lease))
        self._wake.set()
        return sender.connected

    def flush(self) -> None:
        """Send all that is in the log by now, soon. Safe from any thread; what fails is tried again."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake.set)

    async def synced(self) -> bool:
        """Wait until all that is in the log by now is remote.

        Returns:
            False when nothing is sent from here any more and that was told already.

        Raises:
            StorageUnavailableError: the service does not answer; what waits is tried again later.
            StorageConflictError: somebody else writes to the session. Raised once; local work is whole.
            StorageError: any other failure.
            TimelineError: the local disk refused.
        """
        wanted = self._written
        while self._ended is None:
            if self._sender is None or self._task is None:
                return False
            if self._sender.connected and self._sender.sent >= wanted:
                return True
            future = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            self.flush()
            await future
        return self._tell_end()

    async def close(self, timeout: float = 5.0) -> bool:
        """Try to send what waits, for at most ``timeout`` seconds, and let the lease go. Never raises.

        Returns:
            Whether all is remote. If not, the next ``start`` sends it.
        """
        done = False
        with contextlib.suppress(TimeoutError, ConjureError):
            async with asyncio.timeout(timeout):
                done = await self.synced()
        task, self._task = self._task, None
        self._unsubscribe()
        if task is not None:
            task.cancel()
            _, stuck = await asyncio.wait({task}, timeout=timeout)
            for hanging in stuck:
                hanging.cancel()  # the lease then runs out by itself
        self._answer(None)
        return done

    def _heard(self, block: Block) -> None:
        """Take note of a new block; on the thread that appended it."""
        with contextlib.suppress(OSError):  # it was deleted; the timeline says so when it is synced
            self._written = self._timeline.path.stat().st_size
        if block.kind == "turn_end" or self.pending > PLENTY:
            self.flush()

    async def _connect(self, sender: LogSender, lease: Lease, *, force: bool = False) -> None:
        await sender.connect(self._written, force=force)
        if not lease.enforced:
            self._tell(
                f"{self.url} does not keep to conditional writes: two writers at once may be noticed only "
                "when both have written"
            )

    async def _run(self, sender: LogSender, lease: Lease) -> None:
        try:
            while self._ended is None:
                await self._due()
                if self._ended is None:
                    await self._send(sender, lease)
        finally:
            await lease.release()

    async def _due(self) -> None:
        """Wait until something is to be sent, or is to be tried again."""
        pause = min(LONGEST_PAUSE, self._interval * 2**self._failures)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._wake.wait()
        self._wake.clear()

    async def _send(self, sender: LogSender, lease: Lease) -> None:
        try:
            if not sender.connected:
                await self._connect(sender, lease)
            await sender.send(self._written, lambda: self._answer(None))
        except StorageConflictError as error:
            self._end(error)
        except StorageError as error:
            self._put_off(error)
        except ConjureError as error:  # the local log is closed, or its disk fails
            self._end(error)
        except Exception as error:
            logger.exception("The mirror of %s failed", self.url)
            self._end(StorageError(self.url, f"nothing more is sent from here ({error})"))
        else:
            self._failures = 0
            self._answer(None)

    def _put_off(self, error: StorageError) -> None:
        """The service is away: tell it at the first failure, and try again later."""
        self._failures = min(self._failures + 1, 16)
        if self._failures == 1:
            self._tell(f"{error}. The session is whole on this machine; the rest is sent later")
        self._answer(error)

    def _end(self, error: ConjureError) -> None:
        """Send nothing more from here."""
        if self._ended is not None:
            return
        self._ended = error
        self._tell(str(error))
        self._end_told = any(not future.done() for future in self._waiting)
        self._answer(error)
        self._wake.set()

    def _tell_end(self) -> bool:
        if self._end_told or self._ended is None:
            return False
        self._end_told = True
        raise self._ended

    def _answer(self, error: ConjureError | None) -> None:
        """Let all who wait look again, or tell them why they wait in vain."""
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if future.done():
                continue
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)
