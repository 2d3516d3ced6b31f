"""The sandboxes of one executor: made when they are needed, made again when the folders changed.

A context with other folders or another network than that of the start gets a sandbox of its own.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Hashable
from typing import NamedTuple

from ...errors import ExecutorError, UnsupportedSettingError
from ..commands import Way
from ..contract import ExecutionContext
from .box import Box
from .choice import choose, dismiss
from .confinement import Confinement, Kind, Wish
from .scratch import Scratch

_log = logging.getLogger(__name__)
#: Sandboxes kept, besides the first, that no command runs in.
MAX_IDLE = 2
#: Reasons that were told already.
_told: set[str] = set()


class Entered(NamedTuple):
    """A sandbox that a command may start in, and those not needed any more, to be closed."""

    box: Box
    outdated: tuple[Box, ...]


class Boxes:
    """Every method that is no coroutine blocks, and may be called from any thread.

    Args:
        wish: which kind of sandbox; not ``off``.
        way: how the processes of a command are found.
    """

    def __init__(self, wish: Wish, way: Way | None) -> None:
        self._wish = wish
        self._way = way
        self._lock = threading.Lock()
        self._boxes: dict[Hashable, Box] = {}
        self._scratch: Scratch | None = None
        self._first: Box | None = None
        self.confinement = Confinement()

    def start(self, context: ExecutionContext) -> Box | None:
        """Make the sandbox of a context; None where nothing on this machine can confine, told once.

        Raises:
            ExecutorError: what was asked for by name does not work here.
            UnsupportedSettingError: no network is asked for, and nothing can confine.
        """
        with self._lock:
            return self._start(context)

    def _start(self, context: ExecutionContext) -> Box | None:
        kind, why = choose(self._wish, network=context.network_access != "none")
        if kind is None:
            if context.network_access == "none":
                raise UnsupportedSettingError(
                    "network_access=none", "local", f"{why}; leave it unset, or run the tools in Docker"
                )
            self.confinement = Confinement(reason=why)
            if why not in _told:
                _told.add(why)
                _log.warning("local commands are not confined: %s", why)
            return None
        box = self._make(kind, context)
        if self._first is None:
            self._first = box
            self.confinement = box.confinement
        return box

    def _make(self, kind: Kind, context: ExecutionContext) -> Box:
        if self._scratch is None or self._scratch.owner != os.getpid():
            self._scratch = Scratch()
        box = self._boxes[bounds(context)] = Box(kind, context, self._way, self._scratch)
        return box

    def failed(self, box: Box) -> ExecutorError | None:
        """A sandbox does not start: say why, or None when there is another kind to try."""
        said = box.complaint()
        with self._lock:
            self._boxes.pop(bounds(box.context), None)
            self._first = None
        if self._wish != "auto":
            return ExecutorError(f"the sandbox ({box.kind}) cannot be started: {said}")
        dismiss(box.kind, f"{box.kind} cannot be started: {said}")
        return None

    def enter(self, context: ExecutionContext) -> Entered | None:
        """Get the sandbox for a command, which ``leave`` must be called for; None when not confined.

        Raises:
            ExecutorError: it cannot be made.
        """
        with self._lock:
            key = bounds(context)
            box = self._boxes.pop(key, None)
            outdated = []
            if box is not None and not (box.running or (box.owner == os.getpid() and box.fresh())):
                outdated.append(box)
                fresh = self._make(box.kind, box.context)
                self._first = fresh if box is self._first else self._first
                box = fresh
            if box is None:
                box = self._start(context)
            if box is None:
                return None
            self._boxes[key] = box  # the last used comes last
            box.enter()
            outdated += self._superfluous()
            return Entered(box, tuple(outdated))

    def _superfluous(self) -> list[Box]:
        idle = [key for key, box in self._boxes.items() if not box.running and box is not self._first]
        return [self._boxes.pop(key) for key in idle[: max(0, len(idle) - MAX_IDLE)]]

    def leave(self, box: Box) -> list[str]:
        """A command has ended; what was put back, a sentence each."""
        with self._lock:
            return box.leave()

    def find(self, context: ExecutionContext) -> Box | None:
        """The sandbox of a context; made when there is none, None when not confined.

        Raises:
            ExecutorError: it cannot be made.
        """
        with self._lock:
            return self._boxes.get(bounds(context)) or self._start(context)

    async def close(self) -> None:
        """End all. Never raises."""
        boxes = list(self._boxes.values())
        self._boxes.clear()
        for box in boxes:
            await box.close()
        scratch, self._scratch, self._first = self._scratch, None, None
        if scratch is not None:
            await asyncio.to_thread(scratch.close)


def bounds(context: ExecutionContext) -> Hashable:
    """What of a context a sandbox is made from."""
    return (
        context.working_directory,
        context.skills_root,
        context.artifacts_root,
        context.allowed_paths,
        context.writable_paths,
        context.read_only_paths,
        context.network_access == "none",
    )
