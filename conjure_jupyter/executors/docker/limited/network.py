"""The network ``limited`` of one container, from the start of its relay to its end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from ....artifacts.fetch.resolving import Resolve, system_resolve
from ....errors import ContainerError, ExecutorError
from ..link import Stream
from .channels import FrameError
from .connecting import Connect, straight
from .guard import Guard
from .hosts import AllowedHosts
from .mux import Mux
from .proxy import Proxy

log = logging.getLogger(__name__)

#: Seconds after which a connection on which nothing moves is ended.
IDLE = 120.0
#: Seconds for the relay to start.
_START = 15.0
#: How often the relay is started again; tools run as the same user and can kill it.
_RESTARTS = 5
#: Most sentences that are told; a program can be refused in as many ways as it likes.
_SENTENCES = 50

#: What reaches the container itself needs no proxy.
_NO_PROXY = "localhost,127.0.0.1,::1"


class Attachable(Protocol):
    """A container, as far as it is needed here."""

    async def attach(self, argv: Sequence[str]) -> Stream:
        """Start a process as the tools' user.

        Raises:
            ContainerError: the container is gone, or has no such program.
        """


class LimitedNetwork:
    """Lets a container without a network reach some hosts, by a proxy that checks what it connects to.

    The proxies of this machine's environment are ignored, as everywhere here, and no credential of the user's
    is sent. A machine that reaches the world by a company's proxy alone passes ``connect=through(PROXY)``.

    Args:
        hosts: names that may be reached, ``*.example.com`` for all below one, or addresses.
        resolve: looks a name up; the system's when None.
        connect: connects to a checked address; straight when None.
        ports: ports that may be reached.
        on_refused: hears, once for each, what was refused and that the network broke down.
        idle: seconds after which a connection on which nothing moves is ended.

    Raises:
        SettingsError: one of the hosts cannot be meant.
    """

    def __init__(
        self,
        hosts: Sequence[str],
        *,
        resolve: Resolve | None = None,
        connect: Connect | None = None,
        ports: Sequence[int] = (80, 443),
        on_refused: Callable[[str], None] | None = None,
        idle: float = IDLE,
    ) -> None:
        guard = Guard(AllowedHosts(hosts), ports, resolve or system_resolve, connect or straight)
        self._proxy = Proxy(guard, self._tell)
        self._on_refused = on_refused
        self._idle = idle
        self._told: set[str] = set()
        self._mux: Mux | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._sent = 0
        self._received = 0

    @property
    def sent(self) -> int:
        """Bytes that programs in the container sent through connections that are over."""
        return self._received + (self._mux.received if self._mux else 0)

    @property
    def received(self) -> int:
        """Bytes that they received."""
        return self._sent + (self._mux.sent if self._mux else 0)

    async def start(self, container: Attachable) -> dict[str, str]:
        """Start the relay in a container; the variables by which programs there find it.

        Raises:
            ContainerError: it does not start, as in an image without Python.
        """
        await self.close()
        port, running = await self._relay(container, 0)
        self._keeper = asyncio.create_task(self._keep(container, port, running))
        proxy = f"http://127.0.0.1:{port}"
        names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
        found = dict.fromkeys(names, proxy) | {"NO_PROXY": _NO_PROXY}
        return found | {name.lower(): value for name, value in found.items()}

    async def close(self) -> None:
        """End every connection and the relay. May be called twice. Never raises."""
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.cancel()
            await asyncio.gather(keeper, return_exceptions=True)

    async def _relay(self, container: Attachable, port: int) -> tuple[int, asyncio.Task[None]]:
        """Start a relay; where it listens, and what serves it."""
        source = await asyncio.to_thread(Path(__file__).with_name("relay.py").read_text, "utf-8")
        stream = await container.attach(["python3", "-I", "-S", "-c", source, str(port)])
        if self._mux is not None:
            self._sent += self._mux.sent
            self._received += self._mux.received
        self._mux = mux = Mux(stream, self._proxy.serve, idle=self._idle)
        running = asyncio.create_task(mux.run())
        try:
            async with asyncio.timeout(_START):
                return await mux.port(), running
        except BaseException as error:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            if isinstance(error, TimeoutError):
                raise ContainerError("the relay of network 'limited' did not start in time") from None
            raise

    async def _keep(self, container: Attachable, port: int, running: asyncio.Task[None]) -> None:
        """Serve, and start the relay again when it was killed; programs know its port."""
        reason = "its relay was killed again and again"
        try:
            for turn in range(1 + _RESTARTS):
                if turn:
                    _, running = await self._relay(container, port)
                await running
        except FrameError:
            reason = "something else than its relay answered"
        except ExecutorError as error:
            reason = f"its relay could not be started again ({error})"
        except Exception:
            log.exception("the network of a container failed")
            reason = "it failed"
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        self._tell(f"the container has no network any more: {reason}")

    def _tell(self, sentence: str) -> None:
        if self._on_refused is None or sentence in self._told or len(self._told) >= _SENTENCES:
            return
        self._told.add(sentence)
        try:
            self._on_refused(sentence)
        except Exception:
            log.exception("a callback failed")
