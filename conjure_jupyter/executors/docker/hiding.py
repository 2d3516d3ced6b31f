"""What is mounted with all that hides something put over it, and whether that still hides it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from .guards import Guards
from .masks import MaskWatch
from .mounts import NOTEBOOK, WORKSPACE, Mount, Places


class Hiding:
    """Covers of one container.

    Args:
        shared: what the container sees of this machine.
        tell: hears what is not shown.
    """

    def __init__(self, shared: Places, tell: Callable[[str], None]) -> None:
        self._shared = shared
        self._tell = tell
        self._masks: MaskWatch | None = None
        self._guards: Guards | None = None

    async def mounts(self) -> list[Mount]:
        """What is mounted, with what must be hidden as it is now; watched from now on."""
        self.close()
        if (folder := self._shared.at_work) is not None:
            self._guards = await asyncio.to_thread(Guards, folder, WORKSPACE)
            return self._with(self._guards.mounts)
        folder = self._shared.notebook
        if folder is None:
            return list(self._shared.mounts)
        self._masks = await asyncio.to_thread(MaskWatch, folder)
        masks = self._masks.masks
        if not masks.complete:
            self._tell(
                f"{folder} is not shown to the container: it is too large to look for dot-files in, "
                "or has one with a name that is no UTF-8."
            )
            return [mount for mount in self._shared.mounts if not mount.target.is_relative_to(NOTEBOOK)]
        if masks.whole:
            named = ", ".join(sorted(masks.whole)[:3])
            self._tell(f"Hidden from the container whole, for the dot-files they hold: {named}.")
        return self._with(masks.mounts(NOTEBOOK))

    def _with(self, covers: Iterable[Mount]) -> list[Mount]:
        own = {mount.target for mount in self._shared.mounts}
        return [*self._shared.mounts, *(cover for cover in covers if cover.target not in own)]

    async def shows_too_much(self) -> bool:
        """Whether something is seen that must not be: it came, or was replaced, since ``mounts``."""
        if self._guards is not None and self._guards.slipped():
            return True
        masks = self._masks
        return masks is not None and (
            masks.slipped() or (masks.is_due() and await asyncio.to_thread(masks.finds_more))
        )

    def close(self) -> None:
        """Watch no more. May be called twice."""
        for watch in (self._masks, self._guards):
            if watch is not None:
                watch.close()
        self._masks = self._guards = None
