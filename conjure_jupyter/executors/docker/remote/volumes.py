"""The session's folders on an engine that does not see this machine's: in volumes, kept alike."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ...contract import ExecutionContext
from ..link import Link
from ..mounts import Mount
from .listing import Inside
from .moved import Moved, together
from .pulling import pull
from .pushing import push
from .share import MOST_WRITABLE, Share, shares_of
from .store import Store

if TYPE_CHECKING:
    from ..connection import Engine


class VolumeFiles:
    """The folders of one session. One push or pull runs at a time; the others wait.

    Made by ``create``.

    Attributes:
        mounts: what the session's container is to have mounted.
    """

    def __init__(
        self, store: Store, shares: Sequence[Share], mounts: tuple[Mount, ...], owner: tuple[int, int]
    ) -> None:
        self.mounts = mounts
        self._store = store
        self._shares = shares
        self._owner = owner
        self._lock = asyncio.Lock()

    @classmethod
    async def create(
        cls,
        engine: Engine,
        session: str,
        mounts: Sequence[Mount],
        *,
        user: str,
        image: str,
        labels: Mapping[str, str],
    ) -> VolumeFiles:
        """Make the volumes, empty, and the helper that archives go through.

        Args:
            session: for the volumes' names.
            mounts: what the container would have mounted here.
            user: ``UID:GID``, whom all in the volumes belongs to.
            image: the session's image.
            labels: of all that is made.

        Raises:
            ExecutorError: the engine refuses, or is gone.
        """
        name = f"conjure-{session}-{secrets.token_hex(3)}"
        shares, converted = await asyncio.to_thread(shares_of, mounts, name)
        volumes = {share.inner: share.volume for share in shares}
        store = await Store.create(engine, volumes, name=f"{name}-files", image=image, labels=labels)
        uid, _, gid = user.partition(":")
        return cls(store, shares, converted, (int(uid), int(gid or uid)))

    async def push(self, link: Link | None = None, context: ExecutionContext | None = None) -> Moved:
        """Send what changed here since the last time, and remove there what was removed here.

        What the container changed meanwhile is not touched: the next pull settles it.

        Args:
            link: into the session's container, when it runs. Without it, removals in folders that tools may
                write wait.
            context: the container's.

        Raises:
            LinkLostError: the container is gone.
            ExecutorError: the engine refuses, or is gone.
        """
        inside = None if link is None or context is None else Inside(link, context)
        async with self._lock:
            done = []
            for share in self._shares:
                if share.unfinished:
                    done.append(await pull(self._store, share, inside, limit=MOST_WRITABLE))
                done.append(await push(self._store, share, inside, self._owner))
            return together(done)

    async def pull(
        self,
        link: Link | None = None,
        context: ExecutionContext | None = None,
        *,
        limit: int = MOST_WRITABLE,
    ) -> Moved:
        """Bring what tools changed to this machine; one that failed is gone on with.

        Without a link, and where the image has no GNU ``find``, everything is fetched and compared.

        Args:
            link: into the session's container, when it runs.
            context: the container's.
            limit: bytes to bring at most; what does not fit stays in its volume.

        Raises:
            LinkLostError: the container is gone.
            ExecutorError: the engine is gone, or this machine is at fault, such as by a full disk. What was
                brought stays, and so do the volumes.
        """
        inside = None if link is None or context is None else Inside(link, context)
        async with self._lock:
            return together(
                [
                    await pull(self._store, share, inside, limit=limit)
                    for share in self._shares
                    if share.writable
                ]
            )

    async def close(self, *, keep: bool = False) -> bool:
        """Remove the helper and the volumes; the last pull is the caller's. Never raises.

        Args:
            keep: leave the volumes.

        Returns:
            Whether the volumes are gone. They stay as well when they hold what this machine has not.
        """
        async with self._lock:
            needed = any(share.unfinished or share.stays for share in self._shares)
            return await self._store.close(keep=keep or needed)
