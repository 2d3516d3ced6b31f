"""The right to write to a session's remote log: one writer at a time, on whichever machine.

A lease is a small object that its holder renews. Whoever finds one that is expired, or its own, takes it over
by replacing just what it read. Storages that take conditional writes without keeping to them are found out
by trying; there every step is checked by reading before and after, and the rest is told.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from ...errors import StorageConflictError, StorageError, StorageUnavailableError
from ...storage.bucket import Bucket
from .holder import Holder
from .lease_object import LeaseObject

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: Seconds that a lease lasts; it is renewed after a third of them.
LIFETIME = 60.0

_TRIES = 3


class Lease:
    """The right to write to one session's remote log.

    Args:
        bucket: the session's keys.
        me: who asks; its token tells the own lease from others'.
        lifetime: seconds.
        on_lost: called once, when somebody else turns out to have the lease.

    Attributes:
        enforced: whether the storage keeps to conditional writes; known once the lease is taken.
        lost: the error that says who has it now.
    """

    def __init__(
        self,
        bucket: Bucket,
        me: Holder,
        *,
        lifetime: float = LIFETIME,
        on_lost: Callable[[StorageConflictError], None] = lambda _: None,
    ) -> None:
        self.enforced = True
        self.lost: StorageConflictError | None = None
        self._object = LeaseObject(bucket)
        self._me = me
        self._lifetime = lifetime
        self._on_lost = on_lost
        self._etag = ""
        self._ends: tuple[float, float] = (0.0, 0.0)
        self._busy = asyncio.Lock()
        self._renewing: asyncio.Task[None] | None = None

    @property
    def held(self) -> bool:
        """Whether the lease is ours, as far as is known here, and has not run out."""
        return self.lost is None and all(now < end for now, end in zip(_now(), self._ends, strict=True))

    async def take(self, *, force: bool = False) -> None:
        """Take the lease and keep it renewed.

        Args:
            force: take it from a holder that still lives, who is told and stops.

        Raises:
            StorageConflictError: somebody else holds it; the message says who and until when.
            StorageUnavailableError: the service did not answer.
            StorageError: any other failure.
        """
        async with self._busy:
            for _ in range(_TRIES):
                if await self._try(force=force):
                    break
            else:
                raise StorageConflictError(
                    self._object.where, "several others take the lease at once; try again"
                )
            self.enforced = await self._object.refuses(self._mine())
            if not self.enforced:
                self._etag = await self._must_be_ours()
        if self._renewing is None:
            self._renewing = asyncio.create_task(self._keep())

    async def hold(self) -> None:
        """Make sure, right before a write, that the lease is still ours; renew it when it has run out.

        Raises:
            StorageConflictError: somebody else has it.
            StorageUnavailableError: it has run out, and the service does not answer.
        """
        if self.lost is not None:
            raise self.lost
        if not self.held:
            await self.renew()
        elif not self.enforced:
            async with self._busy:
                self._etag = await self._must_be_ours()

    async def during(self, work: Coroutine[Any, Any, T]) -> T:
        """Do ``work``, and give it up when the lease runs out before it is done.

        Raises:
            StorageUnavailableError: the lease has run out: the service does not answer.
        """
        task = asyncio.create_task(work)
        try:
            while not (await asyncio.wait({task}, timeout=self._remaining))[0]:
                if not self.held:
                    raise StorageUnavailableError(
                        self._object.where, "the lease ran out before the answer came"
                    )
            return task.result()
        finally:
            task.cancel()

    @property
    def _remaining(self) -> float:
        return max(0.01, min(end - now for now, end in zip(_now(), self._ends, strict=True)))

    async def renew(self) -> None:
        """Make the lease last for its whole lifetime again.

        Raises:
            StorageConflictError: somebody else has it.
            StorageUnavailableError: the service did not answer.
            StorageError: any other failure.
        """
        async with self._busy:
            if not self.enforced:
                self._etag = await self._must_be_ours()
            try:
                await self._replace()
            except StorageConflictError:
                # Our own write may have arrived although its answer was lost.
                self._etag = await self._must_be_ours()
                await self._replace()

    async def release(self) -> None:
        """Let go, so that others need not wait until the lease runs out. Never raises."""
        await self._stop()
        async with self._busy:
            if self.lost is not None or not self._etag:
                return
            with contextlib.suppress(StorageError):
                if not self.enforced:
                    self._etag = await self._must_be_ours()
                await self._object.write(dataclasses.replace(self._me, expires=0.0), self._etag)
            self._etag, self._ends = "", (0.0, 0.0)

    async def remove(self) -> None:
        """Delete the lease, as the last of a session that was erased.

        Raises:
            StorageConflictError: somebody else has it.
            StorageError: any other failure.
        """
        await self._stop()
        async with self._busy:
            await self._must_be_ours()
            await self._object.delete()
            self._etag, self._ends = "", (0.0, 0.0)

    async def _stop(self) -> None:
        task, self._renewing = self._renewing, None
        if task is not None and task is not asyncio.current_task():
            task.cancel()
            await asyncio.wait({task})

    async def _try(self, *, force: bool) -> bool:
        """Take the lease from nobody, from ourselves or from one whose time is over; False: look again."""
        began = _now()
        mine = self._mine()
        holder, etag = await self._object.read()
        if etag:
            self._must_be_free(holder, force=force)
        try:
            await self._object.write(mine, etag)
        except StorageConflictError:
            return False
        holder, etag = await self._object.read()
        if not self._is_ours(holder):
            return False
        self._etag = etag
        self._set_end(began)
        return True

    def _must_be_free(self, holder: Holder | None, *, force: bool) -> None:
        if force:
            return
        if holder is None:
            raise StorageConflictError(
                self._object.where,
                "this is no lease that Conjure can read; if nobody uses the session, delete it",
            )
        if holder.token != self._me.token and not holder.expired(time.time()):
            raise StorageConflictError(
                self._object.where,
                f"the session is in use by {holder.told()}. Close it there, wait until then, or start one of "
                "your own",
            )

    async def _replace(self) -> None:
        began = _now()
        self._etag = await self._object.write(self._mine(), self._etag)
        if not self.enforced:
            self._etag = await self._must_be_ours()
        self._set_end(began)

    async def _must_be_ours(self) -> str:
        """The lease's etag.

        Raises:
            StorageConflictError: it is not ours any more.
        """
        if self.lost is not None:
            raise self.lost
        holder, etag = await self._object.read()
        if self._is_ours(holder):
            return etag
        reason = "the session was deleted there" if not etag else "the lease was replaced"
        if holder is not None:
            reason = f"the session was taken over by {holder.told()}"
        self.lost = StorageConflictError(
            self._object.where,
            f"{reason}. Nothing more is sent from here, and nothing here is lost: copy what you need from "
            "this session's folder, and resume the remote one elsewhere or under another name",
        )
        self._ends = (0.0, 0.0)
        self._on_lost(self.lost)
        raise self.lost

    def _is_ours(self, holder: Holder | None) -> bool:
        return holder is not None and holder.token == self._me.token and holder.pid == self._me.pid

    def _mine(self) -> Holder:
        return dataclasses.replace(self._me, expires=time.time() + self._lifetime)

    def _set_end(self, began: tuple[float, float]) -> None:
        wall, steady = began
        self._ends = (wall + self._lifetime, steady + self._lifetime)

    async def _keep(self) -> None:
        """Renew until somebody else has the lease. While the service is away, try more often."""
        while self.lost is None:
            await asyncio.sleep(self._lifetime / (3 if self.held else 6))
            try:
                await self.renew()
            except StorageConflictError:
                return
            except StorageError as error:
                logger.debug("%s could not be renewed: %s", self._object.where, error)


def _now() -> tuple[float, float]:
    # A sleeping machine's steady clock may stand still, and a wall clock may be set back.
    return time.time(), time.monotonic()
