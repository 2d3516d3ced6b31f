"""Bringing to the disk together what comes together: one sync serves all that waited for it."""

from __future__ import annotations

import asyncio
import logging

from .entry import Entry
from .journal import Journal

log = logging.getLogger(__name__)


class Flush:
    """Writes entries, and notes of what is done, to a journal, in the order of the calls."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._added: list[tuple[Entry, asyncio.Future[None]]] = []
        self._done: list[Entry] = []
        self._task: asyncio.Task[None] | None = None

    async def add(self, entry: Entry) -> None:
        """Write an entry; it is on disk when this returns.

        Raises:
            StorageError: it cannot be.
        """
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._added.append((entry, written))
        self._start()
        await written

    def note(self, entry: Entry) -> None:
        """Write, soon, that an entry is done. Without the note it would be done again, which does no harm."""
        self._done.append(entry)
        self._start()

    async def finished(self) -> None:
        """Wait until all is written."""
        while self._task is not None:
            await asyncio.wait([self._task])

    def _start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._write())

    async def _write(self) -> None:
        try:
            while self._added or self._done:
                added, self._added = self._added, []
                done, self._done = self._done, []
                try:
                    await asyncio.to_thread(self._journal.write, [entry for entry, _ in added], done)
                except Exception as error:  # noqa: BLE001  whoever waits must hear of it, whatever it is
                    self._done = done + self._done
                    for _, written in added:
                        written.set_exception(error)
                    if not added:
                        log.warning("what was sent could not be noted: %s", error)
                        return
                else:
                    for _, written in added:
                        written.set_result(None)
        finally:
            self._task = None
