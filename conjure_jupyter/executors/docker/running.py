"""The container of one session: started when it is needed, stopped when idle, replaced when it is gone."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ...engine import outlast
from ...errors import ConjureError, ContainerError
from .hiding import Hiding
from .link import Link, LinkLostError
from .making import Maker, Parts
from .mounts import Places
from .options import DockerOptions
from .resident.payload import payload
from .sweep import sweep

_log = logging.getLogger(__name__)

#: Seconds that a start may go on after the end.
CLOSE_LIMIT = 5.0
EMPTY_AGAIN = "what lay in /tmp and in the home folder is gone, the workspace is as it was"

#: Engines that were swept by this process, by id.
_swept: set[str] = set()


class Running:
    """Keeps one container and the link into it.

    Args:
        options: the container's limits.
        shared: what it sees of this machine.
        address: of the engine; found when None.
        session: a name for its labels.
        tell: hears what the user should know.
    """

    def __init__(
        self,
        options: DockerOptions,
        shared: Places,
        *,
        address: str | None,
        session: str | None,
        tell: Callable[[str], None] | None,
    ) -> None:
        self._options = options
        self._shared = shared
        self._address = address
        self._tell = tell or (lambda _: None)
        self._told: set[str] = set()
        self._hiding = Hiding(shared, self._once)
        self._maker = Maker(
            options, shared, self._hiding, session=session or secrets.token_hex(4), tell=self._once
        )
        self._parts: Parts | None = None
        self._starting: asyncio.Task[None] | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._endings: set[asyncio.Task[None]] = set()
        self._door = asyncio.Lock()
        self._users = 0
        self._inside = 0
        self._news: list[str] = []
        self._closed = False

    @property
    def disk(self) -> Path | None:
        """The workspace on this machine's disk; None where the engine keeps it elsewhere."""
        return None if self._maker.apart else self._shared.on_host(".")

    @property
    def environment(self) -> dict[str, str]:
        """What commands get besides their context: the way to the proxy."""
        return {} if self._parts is None else self._parts.environment

    def serves(self, options: DockerOptions, shared: Places) -> bool:
        """Whether it is just what these ask for."""
        return (options, shared.mounts) == (self._options, self._shared.mounts) and not self._closed

    async def connect(self) -> None:
        """Find the engine, and see that it has all that is asked for.

        Raises:
            DockerUnavailableError: no engine answers.
            DockerImageError: the image is not there.
            ContainerError: a folder must not be shared.
            SettingsError: there is no volume of a name that the user gave.
        """
        self._later(asyncio.to_thread(payload))  # what the container is sent is ready when it is
        await self._maker.connect(self._address)
        engine = self._maker.engine
        if engine.id not in _swept:
            _swept.add(engine.id)
            self._later(sweep(engine))

    def warm(self) -> None:
        """Start the container in the background; a failure is told by the call that needs it."""

        async def warm() -> None:
            await self._ready()
            self._rest()

        self._later(warm())

    @asynccontextmanager
    async def use(self) -> AsyncIterator[Link]:
        """The link into the running container, for one call.

        Raises:
            ExecutorError: no container can be had.
        """
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        self._users += 1
        try:
            # One at a time: none gets in while another looks whether the container must be replaced.
            async with self._door:
                await self._hide_more()
                link = await self._ready()
                self._inside += 1
            try:
                await self._maker.push(link)
                try:
                    yield link
                finally:
                    await self._maker.pull(link)
            finally:
                self._inside -= 1
        finally:
            self._users -= 1
            self._rest()

    def take_news(self) -> list[str]:
        """What happened to the container since the last call, for its result."""
        news, self._news = self._news, []
        return news

    async def lost(self, link: Link, error: LinkLostError) -> str:
        """Let go of a link that broke; what happened, in one sentence without its full stop."""
        parts = self._parts
        if parts is not None and link is parts.link:
            parts.link = None
            await link.close()
        if parts is None:
            return error.message.rstrip(".")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.5):  # its end is heard of a moment later
                await parts.container.ended()
        if not parts.container.gone:
            return error.message.rstrip(".")
        reason = (await parts.container.why()).rstrip(".")
        if parts is self._parts:
            await self._drop()
        return f"{reason}; {EMPTY_AGAIN}"

    async def close(self) -> None:
        """Remove everything. Never raises."""
        self._closed = True
        if self._idle is not None:
            self._idle.cancel()
        if self._starting is not None:
            asyncio.get_running_loop().call_later(CLOSE_LIMIT, self._starting.cancel)
            await outlast(self._starting)
        for task in list(self._tasks):
            task.cancel()
            await outlast(task)
        self._let_go()
        for ending in list(self._endings):
            await outlast(ending)
        await self._maker.close()

    async def _hide_more(self) -> None:
        """Replace a container that shows what it must not; none where a call is at work."""
        if self._inside or self._parts is None or self._parts.link is None or self._maker.apart:
            return
        if await self._hiding.shows_too_much():
            await self._drop()
            self._news.append(f"the container was started anew to hide dot-files: {EMPTY_AGAIN}")

    async def _ready(self) -> Link:
        """The link of a container that runs; starts one where there is none."""
        for _ in range(3):
            if self._closed:
                raise ContainerError("the executor was closed")
            if self._parts is not None and (link := self._parts.answers) is not None:
                return link
            if self._starting is None or self._starting.done():
                self._starting = asyncio.ensure_future(self._start())
            # The start goes on when this caller is cancelled: the next one needs it.
            with contextlib.suppress(LinkLostError):  # it ended while it was started
                await asyncio.shield(self._starting)
        raise ContainerError("the container ends as soon as it starts; `conjure docker check` says more")

    async def _start(self) -> None:
        """Bring up what is missing: the container, the link."""
        await self._maker.see_engine()
        if self._parts is not None and self._parts.container.gone:
            reason = (await self._parts.container.why()).rstrip(".")
            self._news.append(f"{reason}; a new one runs: {EMPTY_AGAIN}")
            await self._drop()
        if self._parts is None:
            self._parts = await self._maker.make()
            return
        try:
            await self._maker.enter(self._parts)
        except BaseException:
            await self._drop()
            raise

    async def _drop(self) -> None:
        """Remove the container with all that hangs on it, also when the caller is cancelled meanwhile."""
        if await outlast(self._let_go()):
            raise asyncio.CancelledError

    def _let_go(self) -> asyncio.Task[None]:
        """Let nobody use the container from now on, and remove it with all that hangs on it."""
        parts, self._parts = self._parts, None
        self._hiding.close()
        ending = asyncio.ensure_future(_end(parts))
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)
        return ending

    def _rest(self) -> None:
        """Stop the container after a time without calls."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if self._users == 0 and self._options.idle and not self._closed and self._parts is not None:
            self._idle = asyncio.get_running_loop().call_later(self._options.idle, self._stop_idle)

    def _stop_idle(self) -> None:
        self._idle = None
        if self._users == 0 and self._parts is not None:
            self._news.append(
                f"the container had been stopped after {self._options.idle:g} s without a call: {EMPTY_AGAIN}"
            )
            self._let_go()

    def _once(self, text: str) -> None:
        """Tell the user something, once."""
        if text not in self._told:
            self._told.add(text)
            self._tell(text)

    def _later(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do work in the background; its failure is for the log, or for the call that needs it."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            level = logging.DEBUG if isinstance(error, ConjureError) else logging.ERROR
            _log.log(level, "work on the container failed", exc_info=error)


async def _end(parts: Parts | None) -> None:
    if parts is not None:
        await parts.end()
