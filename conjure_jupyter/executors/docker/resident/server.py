"""The resident itself: takes frames from its input, answers them all at once, and ends with its input.

Runs in the container: standard library only.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import fcntl
import os
import sys
from typing import Any

from .answers import Answers
from .frames import CHUNK, SILENCE, Frame, FrameError, Frames
from .outbox import Outbox
from .surroundings import Surroundings

_PR_SET_DUMPABLE = 4
#: Seconds that commands get to end when the link is gone.
PATIENCE = 5.0
_F_SETPIPE_SZ = 1031


class Server:
    """Serves one link.

    Args:
        source: where frames come from; does not block.
        outbox: where they go to.
        answers: what makes the calls.
    """

    def __init__(self, source: int, outbox: Outbox, answers: Answers) -> None:
        self._source = source
        self._outbox = outbox
        self._answers = answers
        self._frames = Frames()
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._heard = self._loop.time()
        self._partial: dict[int, tuple[dict[str, Any], bytearray]] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}

    async def serve(self) -> None:
        """Until the input ends, or is silent for too long; then everything that runs is ended."""
        self._loop.add_reader(self._source, self._readable)
        self._outbox.post({"hello": list(sys.version_info[:3])})
        with contextlib.suppress(Exception):  # the first command tries again, and says what is wrong
            await self._answers.start()
        while not self._ended.done():
            left = self._heard + SILENCE - self._loop.time()
            if left <= 0:
                break
            await asyncio.wait([self._ended], timeout=left)
        self._loop.remove_reader(self._source)
        self._outbox.broken = True  # what ends now ends because the link does, which is what the host hears
        await asyncio.wait([asyncio.ensure_future(self._end())], timeout=PATIENCE)

    async def _end(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks.values())
        await self._answers.close()

    def _readable(self) -> None:
        try:
            data = os.read(self._source, 2 * CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._stop()
            return
        self._heard = self._loop.time()
        try:
            for frame in self._frames.feed(data):
                self._take(frame)
        except FrameError:
            self._stop()

    def _stop(self) -> None:
        if not self._ended.done():
            self._ended.set_result(None)

    def _take(self, frame: Frame) -> None:
        header, data = frame
        operation = header.get("op")
        if operation == "ping":
            self._outbox.post({"pong": True})
            return
        call = header["id"]
        if operation == "cancel":
            self._cancel(call)
            return
        if call in self._partial:
            first, gathered = self._partial[call]
            gathered += data
            if header.get("more"):
                return
            del self._partial[call]
            self._begin(call, first, bytes(gathered))
        elif header.get("more"):
            self._partial[call] = header, bytearray(data)
        else:
            self._begin(call, header, data)

    def _begin(self, call: int, header: dict[str, Any], data: bytes) -> None:
        task = self._loop.create_task(self._answers.answer(call, header, data))
        self._tasks[call] = task
        task.add_done_callback(lambda task: self._finished(call, task))

    def _finished(self, call: int, task: asyncio.Task[None]) -> None:
        del self._tasks[call]
        if task.cancelled():
            self._outbox.post({"id": call, "fail": "cancelled", "words": ""})

    def _cancel(self, call: int) -> None:
        if self._partial.pop(call, None) is not None:
            self._outbox.post({"id": call, "fail": "cancelled", "words": ""})
        elif call in self._tasks:
            self._tasks[call].cancel()


def main(folder: str) -> None:
    """Serve standard input and output, then end this process.

    Args:
        folder: holds this code, and is removed at the end.
    """
    surroundings = Surroundings(None, folder)
    # What this package starts besides speaks UTF-8, whatever the image's language is.
    os.environ["LC_ALL"] = "C.UTF-8"
    source, sink = _pipes()
    # A command of the same user could otherwise open our descriptors and write frames.
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    try:
        # Not ``asyncio.run``, which waits for threads at its end: one may hang in the file system.
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        loop.run_until_complete(_serve(source, sink, surroundings))
    finally:
        _remove(folder)
        os._exit(0)


async def _serve(source: int, sink: int, surroundings: Surroundings) -> None:
    outbox = Outbox(sink)
    await Server(source, outbox, Answers(outbox, surroundings)).serve()


def _pipes() -> tuple[int, int]:
    """Our ends of the pipes, out of the way of whatever prints or is started."""
    source, sink = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.close(null)
    for fd in (source, sink):
        os.set_blocking(fd, False)
        with contextlib.suppress(OSError):  # fewer, larger pieces
            fcntl.fcntl(fd, _F_SETPIPE_SZ, 4 * CHUNK)
    return source, sink


def _remove(folder: str) -> None:
    for path, folders, files in os.walk(folder, topdown=False):
        with contextlib.suppress(OSError):
            for name in files:
                os.unlink(f"{path}/{name}")  # noqa: PTH108
            for name in folders:
                os.rmdir(f"{path}/{name}")  # noqa: PTH106
    with contextlib.suppress(OSError):
        os.rmdir(folder)  # noqa: PTH106
