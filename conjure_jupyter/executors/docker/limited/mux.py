"""The host's end of the relay's stream: frames to channels, and channels to frames, each in its turn."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

from ....errors import ContainerError
from ..link import LinkLostError, Stream
from .channels import Channel, FrameError
from .relay import CLOSE, MOST, NUMBER, OPEN, PIECE, READY, Decoder

#: Frames after which other work of the loop gets its turn.
_FRAMES = 64
#: Seconds between two looks for what does not move.
_LOOK = 5.0
#: Most characters kept of what the relay says besides frames.
_SAID = 300


class Mux:
    """Serves the channels of one relay.

    Args:
        stream: the relay's input and output.
        serve: called with each new channel, in a task of its own; the channel is closed when it returns.
        idle: seconds after which a channel on which nothing moves is ended.
    """

    def __init__(
        self, stream: Stream, serve: Callable[[Channel], Coroutine[Any, Any, None]], *, idle: float
    ) -> None:
        self.sent = 0
        self.received = 0
        self._stream = stream
        self._serve = serve
        self._idle = idle
        self._channels: dict[int, Channel] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._turns: dict[int, Channel] = {}
        self._wake = asyncio.Event()
        self._said = b""
        self._port: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def port(self) -> int:
        """Where the relay listens, once it does.

        Raises:
            ContainerError: it ended before.
        """
        return await asyncio.shield(self._port)

    async def run(self) -> None:
        """Serve until the stream ends; then every channel is closed and its task has ended.

        Raises:
            FrameError: the relay sent what no relay sends.
        """
        helpers = [asyncio.create_task(self._write()), asyncio.create_task(self._look())]
        for helper in helpers:
            helper.add_done_callback(lambda _: self._stream.close())  # none can go on without the others
        try:
            await self._read()
        finally:
            self._stream.close()
            tasks = [*helpers, *self._tasks.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for channel in list(self._channels.values()):
                self._forget(channel)
            if not self._port.done():
                said = ascii(self._said.decode(errors="replace").strip())
                self._port.set_exception(ContainerError(f"the relay did not start: {said}"))
                self._port.exception()  # marks it as seen: nobody may have asked

    async def _read(self) -> None:
        decoder = Decoder()
        count = 0
        with contextlib.suppress(LinkLostError):
            while (piece := await self._stream.read()) is not None:
                source, data = piece
                if not self._port.done():
                    self._said = (self._said + data)[-_SAID:]
                if source != "stdout":
                    continue
                try:
                    for kind, number, payload in decoder.feed(data):
                        self._take(kind, number, payload)
                        count += 1
                        if count % _FRAMES == 0:
                            await asyncio.sleep(0)
                except ValueError as error:
                    raise FrameError(str(error)) from error

    def _take(self, kind: int, number: int, payload: bytes) -> None:
        if kind == READY or not self._port.done():
            if kind != READY or self._port.done():
                raise FrameError("the relay is not what began")
            self._port.set_result(NUMBER.unpack(payload)[0])
        elif kind == OPEN:
            if number in self._channels or len(self._channels) >= MOST:
                raise FrameError("a channel too many")
            self._open(number)
        elif (channel := self._channels.get(number)) is not None:
            channel.take(kind, payload)
            if kind == CLOSE and channel.over:
                self._forget(channel)

    def _open(self, number: int) -> None:
        channel = self._channels[number] = Channel(number, self._turn)
        task = self._tasks[number] = asyncio.create_task(self._serve(channel))

        def ended(task: asyncio.Task[None]) -> None:
            del self._tasks[number]
            channel.close()
            if not task.cancelled():
                task.exception()  # the server of a channel tells its own troubles

        task.add_done_callback(ended)

    def _turn(self, channel: Channel) -> None:
        self._turns.setdefault(channel.number, channel)
        self._wake.set()

    async def _write(self) -> None:
        """Send what channels have, a piece of each in turn."""
        with contextlib.suppress(LinkLostError):
            while True:
                await self._wake.wait()
                self._wake.clear()
                while self._turns:
                    if data := self._batch():
                        await self._stream.write(data)

    def _batch(self) -> bytes:
        found: list[bytes] = []
        size = 0
        while self._turns and size < 2 * PIECE:
            number = next(iter(self._turns))
            channel = self._turns.pop(number)
            data, more = channel.give()
            found.append(data)
            size += len(data)
            if more:
                self._turns[number] = channel
            if channel.over:
                self._forget(channel)
        return b"".join(found)

    def _forget(self, channel: Channel) -> None:
        if self._channels.pop(channel.number, None) is not None:
            self.sent += channel.sent
            self.received += channel.received

    async def _look(self) -> None:
        """End what does not move."""
        while True:
            await asyncio.sleep(min(_LOOK, self._idle))
            before = asyncio.get_running_loop().time() - self._idle
            for channel in list(self._channels.values()):
                if channel.moved < before:
                    if (task := self._tasks.get(channel.number)) is not None:
                        task.cancel()
                    channel.abort()
