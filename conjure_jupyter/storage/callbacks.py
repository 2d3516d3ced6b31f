"""Telling a program what happened to a session's files, so that it can keep books of its own (ADR-0022)."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Coroutine
from dataclasses import dataclass
from typing import Any

from ..fileref import FileRef
from .contract import FileCallback, FileEvent

log = logging.getLogger(__name__)

#: Those that run now; a task that nobody holds may be lost half way.
_running: set[asyncio.Task[None]] = set()


@dataclass(frozen=True, slots=True)
class FileCallbacks:
    """Who hears of files; each gets the file and the session's id. Coroutine functions may be given, too.

    Attributes:
        on_file_created: a file is there for the first time.
        on_file_modified: it has other bytes.
        on_file_deleted: it is gone.
        on_file_synced: it was brought here from where it was made, or sent to where it is kept.
    """

    on_file_created: FileCallback | None = None
    on_file_modified: FileCallback | None = None
    on_file_deleted: FileCallback | None = None
    on_file_synced: FileCallback | None = None

    def fire(self, event: FileEvent, ref: FileRef, session_id: str) -> None:
        """Tell whoever listens. One that raises is logged and breaks nothing.

        A coroutine is started on the running loop and not waited for; without a loop it is run to its end.
        """
        callback: FileCallback | None = getattr(self, f"on_file_{event}")
        if callback is None:
            return
        try:
            answer = callback(ref, session_id)
            if inspect.isawaitable(answer):
                _start(_finish(answer, event, ref.path))
        except Exception:
            log.exception("on_file_%s failed for %s", event, ref.path)


async def _finish(answer: Awaitable[object], event: str, path: str) -> None:
    try:
        await answer
    except Exception:
        log.exception("on_file_%s failed for %s", event, path)


def _start(work: Coroutine[Any, Any, None]) -> None:
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(work)
        return
    task = loop.create_task(work)
    _running.add(task)
    task.add_done_callback(_running.discard)
