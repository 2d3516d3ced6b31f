"""The files of a session's turns, as the session takes note of them and goes back to them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from ...artifacts.blobs import BlobStore
from ...artifacts.layout import Layout
from ...errors import SessionError
from ...executors import ExecutionContext
from ...timeline import BaseTimeline
from ...tools.references import reference
from ...types import ToolCall, ToolResult
from . import ledger
from .carrying_out import Undone, undo
from .edits import Edits
from .manifest import When
from .plan import UndoPlan
from .restoring import Restored, checkout_all, latest_snapshot
from .search import plan_undo
from .snapshot import Snapshots


class Past:
    """Takes note of what turns do to files, so that they can be undone. Work on files is done in threads.

    Args:
        timeline: gives the log; called when something is to be written.
        blobs: where earlier bytes are kept.
        layout: the session's folders.
        context: gives what tools may write.
        limit: most bytes of ``work/`` that are kept for a turn.
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
        self._layout = layout
        self._context = context
        self._snapshots = Snapshots(layout.root, blobs, limit)
        self._edits = Edits(timeline, blobs, layout, context, limit)

    async def turn_begins(self) -> list[str]:
        """Take note before a turn's first block; what the user should be told.

        Raises:
            TimelineError: the log cannot be written.
        """
        told = await asyncio.to_thread(self._note, "start")
        await asyncio.to_thread(self._edits.turn_begins)
        return told

    async def turn_ends(self) -> list[str]:
        """Take note after a turn's last call; what the user should be told.

        Raises:
            TimelineError: the log cannot be written.
        """
        told = await asyncio.to_thread(self._note, "end")
        await asyncio.to_thread(self._edits.turn_ends)
        return told

    def _note(self, when: When) -> list[str]:
        try:
            snapshot = self._snapshots.take()
        except SessionError as error:
            ledger.note_failure(self._timeline(), when, str(error))
            return [f"This turn cannot be undone: {error}"]
        if ledger.note(self._timeline(), snapshot, when) is None or not snapshot.skipped:
            return []
        named = ", ".join(skipped.path for skipped in snapshot.skipped[:3])
        more = f" and {len(snapshot.skipped) - 3} more" if len(snapshot.skipped) > 3 else ""
        return [f"Not kept for an undo (undo_limit): {named}{more}"]

    async def before(self, call: ToolCall) -> None:
        """A call is about to run."""
        path = call.input.get("path") if isinstance(call.input, dict) else None
        meant = reference(path, self._context(), write=True) if isinstance(path, str) else None
        if meant is not None and meant.path is not None:
            call = replace(call, input={**call.input, "path": meant.path})
        await self._edits.before(call)

    async def after(self, call: ToolCall, result: ToolResult) -> None:
        """A call ended."""
        await self._edits.after(call, result)

    def plan(self, turn: int | None) -> UndoPlan:
        """What undoing a turn and those after it will and will not put back; changes nothing. Blocks.

        Raises:
            SessionError: there is no such turn.
        """
        return plan_undo(self._timeline(), self._snapshots, self._layout, turn, context=self._context())

    def undo(self, plan: UndoPlan) -> Undone:
        """Carry a plan out. Blocks.

        Raises:
            SessionError: the session went on since, or the disk failed; done again, it does the rest.
            TimelineError: the log cannot be written.
        """
        return undo(plan, self._timeline(), self._snapshots, self._layout, context=self._context())

    def check_out(self) -> Restored | None:
        """Fill an empty ``work`` folder as the log last knew it; None when it says nothing of that. Blocks.

        Raises:
            SessionError: what was kept of it is damaged.
        """
        snapshot = latest_snapshot(self._timeline(), self._snapshots)
        return None if snapshot is None else checkout_all(snapshot, self._snapshots)
