"""This side's end of the connection to a resident: frames go out in turn, answers come back to who asked.

Whatever comes from the other side may be a command's forgery: see ``pending``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from ....engine import outlast
from ....errors import ConjureError, ToolError
from ..link import LinkLostError, NoPythonError, Stream
from .boot import OLDEST, says_no_python
from .frames import CHUNK, PING, Frame, FrameError, Frames, encode
from .payload import payload
from .pending import Pending, cleaned

#: Seconds for the resident to start.
BOOT_PATIENCE = 30.0
#: Seconds past a command's cancellation after which the link counts as lost.
CANCEL_OVERDUE = 4.0
#: Seconds without a frame of a call on files after which it does as well.
STALLED = 120.0
#: Unanswered pings in a row that mean the same; a machine that slept does not come near.
MISSED = 5
#: Bytes of a header that the resident may send, and of what it wrote to its standard error that is kept.
MAX_HEADER, MAX_WORDS = 1 << 16, 2000
#: Frames in a row that belong to no call: the late ones of calls that were cancelled.
MAX_STRAYS = 1000


class Channel:
    """The connection to one resident; made by ``open``.

    Args:
        stream: its input and output.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._loop = asyncio.get_running_loop()
        self._frames = Frames(MAX_HEADER)
        self._pending: dict[int, Pending] = {}
        self._calls = 0
        self._strays = 0
        self._unanswered = 0
        self._words = b""
        self._error: LinkLostError | None = None
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()

    @classmethod
    async def open(cls, stream: Stream) -> Channel:
        """Start a resident in the process of a stream, which was started with ``boot.ARGUMENTS``.

        Raises:
            NoPythonError: there is no Python, or one that is too old.
            LinkLostError: it ended, or did not start in time.
        """
        channel = cls(stream)
        try:
            async with asyncio.timeout(BOOT_PATIENCE):
                channel._task(channel._put(await asyncio.to_thread(payload)))
                late = await channel._greeting()
        except BaseException as error:
            channel._lose("The process in the container did not start in time")
            if isinstance(error, TimeoutError) and channel._error is not None:
                raise channel._error from None
            raise
        channel._task(channel._listen(late))
        channel._task(channel._ping())
        return channel

    async def _greeting(self) -> list[Frame]:
        """Wait for the resident's first frame; returns those that came with it."""
        raw = b""
        while (piece := await self._stream.read()) is not None:
            source, data = piece
            if source == "stderr":
                self._hear(data)
                continue
            raw = (raw + data)[:MAX_WORDS]
            try:
                frames = self._frames.feed(data)
            except FrameError:
                break  # an engine's or a shell's words in place of a frame
            if frames:
                return self._greeted(frames)
        self._words += raw
        words = self._words.decode("utf-8", "replace")
        if says_no_python(words):
            raise NoPythonError("The image has no python3")
        raise LinkLostError(self._said("The process in the container did not start"))

    def _greeted(self, frames: list[Frame]) -> list[Frame]:
        header, _ = frames[0]
        if isinstance(old := header.get("old"), str):
            oldest = ".".join(map(str, OLDEST))
            raise NoPythonError(f"The image's Python is {cleaned(old, 20)}; it takes {oldest} or newer")
        if "hello" not in header:
            raise LinkLostError("What answers in the container is not what was started there")
        return frames[1:]

    @property
    def lost(self) -> bool:
        """Whether the other side is gone."""
        return self._error is not None

    async def close(self) -> None:
        """Let go: the resident ends what runs, and itself."""
        self._lose("The link into the container was closed")
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=1)

    async def call(
        self, pending: Pending, header: dict[str, Any], data: bytes = b"", *, within: float | None = None
    ) -> Any:
        """Make a call and wait for its answer.

        Args:
            within: seconds for all of it; None when it may take long while frames come.
        """
        if self._error is not None:
            raise self._error
        self._calls += 1
        call = self._calls
        self._pending[call] = pending
        self._strays = 0
        try:
            await self._request(pending, {"id": call, **header}, data)
            return await self._answer(pending, within)
        except asyncio.CancelledError:
            if pending.ends:
                await outlast(self._task(self._end(call, pending)))
            raise
        finally:
            del self._pending[call]
            if not (pending.ends or pending.answered or self.lost):
                self._task(self._put(encode({"op": "cancel", "id": call})))
            if pending.future.done() and not pending.future.cancelled():
                pending.future.exception()  # heard of, also when the caller has gone

    async def _request(self, pending: Pending, header: dict[str, Any], data: bytes) -> None:
        """Send a call's frames, in turn with those of others, until it is answered or all are sent."""
        view = memoryview(data)
        while not pending.future.done():
            piece, view = view[:CHUNK], view[CHUNK:]
            try:
                frame = encode({**header, "more": True} if view else header, piece)
            except FrameError as error:
                raise ToolError("the paths or variables of the call are too long") from error
            # A frame that is begun is sent to its end, whatever becomes of the caller.
            sending = self._task(self._put(frame))
            if not view:
                return
            await asyncio.wait([sending, pending.future], return_when=asyncio.FIRST_COMPLETED)
            header = {"id": header["id"]}

    async def _answer(self, pending: Pending, within: float | None) -> Any:
        while not pending.future.done():
            heard = pending.heard
            await asyncio.wait([pending.future], timeout=STALLED if within is None else within)
            if not pending.future.done() and (within is not None or heard == pending.heard):
                self._lose("No answer came from the container")
        return pending.future.result()

    async def _end(self, call: int, pending: Pending) -> None:
        """End a command that nobody waits for any more, with all that it started."""
        if pending.future.done():
            return
        pending.cancelled = True
        cancel = self._task(self._put(encode({"op": "cancel", "id": call})))
        end = self._loop.time() + CANCEL_OVERDUE
        await asyncio.wait(
            [cancel, pending.future], timeout=CANCEL_OVERDUE, return_when=asyncio.FIRST_COMPLETED
        )
        await asyncio.wait([pending.future], timeout=max(0.0, end - self._loop.time()))
        if not pending.future.done():
            self._lose("A command could not be ended")

    async def _put(self, frame: bytes) -> None:
        """Send one frame; a failure loses the link, which everyone who waits hears of."""
        async with self._turn:
            if self.lost:
                return
            try:
                await self._stream.write(frame)
            except (ConjureError, OSError) as error:
                if self._calls:  # else it has not started, and its output says why
                    self._lose(str(error))

    async def _ping(self) -> None:
        while True:
            await asyncio.sleep(PING)
            if self._unanswered >= MISSED:
                self._lose("What answers in the container has stopped")
                return
            self._unanswered += 1
            await self._put(encode({"op": "ping"}))

    async def _listen(self, frames: list[Frame]) -> None:
        """Take what comes until the stream ends."""
        try:
            self._take(frames)
            while (piece := await self._stream.read()) is not None:
                source, data = piece
                if source == "stderr":
                    self._hear(data)
                else:
                    self._take(self._frames.feed(data))
        except FrameError as error:
            self._lose(f"What came from the container is no answer: {error}")
        except (ConjureError, OSError) as error:
            self._lose(str(error))
        self._lose("The process that answers in the container has ended")

    def _take(self, frames: list[Frame]) -> None:
        for header, data in frames:
            call = header.get("id")
            pending = self._pending.get(call) if type(call) is int else None
            if pending is not None:
                pending.take(header, data)
            elif header.get("pong") is True and self._unanswered:
                self._unanswered = 0
            else:
                self._strays += 1
                if self._strays > MAX_STRAYS:
                    raise FrameError("answers that nobody waits for")

    def _hear(self, words: bytes) -> None:
        """Keep the end of what the process said of its troubles."""
        self._words = (self._words + words)[-MAX_WORDS:]

    def _said(self, reason: str) -> str:
        words = cleaned(self._words.decode("utf-8", "replace"), MAX_WORDS).strip()
        return f"{reason}: {words}" if words else reason

    def _lose(self, reason: str) -> None:
        """From here on nothing is asked; whoever waits hears why."""
        if self._error is not None:
            return
        self._error = LinkLostError(self._said(reason))
        for pending in self._pending.values():
            pending.lose(LinkLostError(self._error.message))
        self._stream.close()
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel()

    def _task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
