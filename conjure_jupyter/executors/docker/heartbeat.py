"""The guard: the container's main process, which ends it when this process falls silent.

The guard reads a line every few seconds and answers with one. At the end of its input, or after a silence, it
exits, and the engine removes the container. It runs as a user of its own: tools can neither signal it nor
open its input. What ends a container is therefore: the death of this process (the connection closes),
a network that stays away, an engine that was stopped, and ``Container.remove``.
"""

from __future__ import annotations

import asyncio
import contextlib

from .streams import EngineStream
from .wire import Wire

#: Seconds between two lines, and of silence after which the guard exits.
BEAT = 3.0
SILENCE = 12
#: Seconds a guard may take to answer the first line.
FIRST_ANSWER = 30.0

#: User and group of the guard, and what it uses where tools run as that user.
NOBODY = 65534
NOT_NOBODY = 65533


def command() -> list[str]:
    """What the guard runs. ``-p``: no file or function that the image's environment names is loaded."""
    return ["bash", "-p", "-c", f"while read -r -t {SILENCE} _; do echo; done"]


def guard_user(tools: str) -> str:
    """Whom the guard runs as, given whom tools run as.

    Args:
        tools: ``UID:GID``.
    """
    uid = NOT_NOBODY if tools.partition(":")[0] == str(NOBODY) else NOBODY
    return f"{uid}:{uid}"


class Heartbeat:
    """Keeps one guard content, on the loop that made it.

    Args:
        wire: the main process's input and output.

    Attributes:
        said: the last it printed that was no answer: why it could not start.
    """

    def __init__(self, wire: Wire) -> None:
        self.said = ""
        self._stream = EngineStream(wire, "")
        self._answered = asyncio.Event()
        self._gone = asyncio.Event()
        self._tasks = [asyncio.ensure_future(self._beat()), asyncio.ensure_future(self._listen())]

    @property
    def gone(self) -> bool:
        """Whether the guard, or the way to it, has ended."""
        return self._gone.is_set()

    async def ready(self) -> bool:
        """Wait for the guard's first answer; False when it ended before, or does not answer."""
        waits = [asyncio.ensure_future(event.wait()) for event in (self._answered, self._gone)]
        try:
            await asyncio.wait(waits, timeout=FIRST_ANSWER, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        return self._answered.is_set() and not self.gone

    async def ended(self) -> None:
        """Wait until the guard has ended."""
        await self._gone.wait()

    def stop(self) -> None:
        """Let the guard go, which ends it. Never raises."""
        for task in self._tasks:
            task.cancel()
        self._stream.end()
        self._gone.set()

    async def _beat(self) -> None:
        with contextlib.suppress(Exception):  # whatever ends the writing is seen by the reader
            while True:
                await self._stream.write(b"\n")
                await asyncio.sleep(BEAT)

    async def _listen(self) -> None:
        try:
            while (piece := await self._stream.read()) is not None:
                text = piece[1].decode(errors="replace").strip()
                self.said = f"{self.said} {text}".strip()[-500:]
                if piece[0] == "stdout" and not text:
                    self._answered.set()
        finally:
            self._gone.set()
            self._tasks[0].cancel()
            self._stream.end()
