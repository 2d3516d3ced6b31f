"""The engine: found, asked, and listened to. All of the SDK's calls and all of its errors pass here."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import socket
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar
from urllib.parse import urlencode

from ...errors import DockerUnavailableError
from .addresses import Address, find
from .ssh import Tunnel
from .translation import translated
from .wire import ANSWER_LIMIT, CONNECT_LIMIT, Wire, upgrade

T = TypeVar("T")

#: The oldest interface that has all we ask for, that of Docker 19.03.
OLDEST = (1, 40)


class Engine:
    """A container engine that answers.

    Belongs to the event loop that made it, and to the process: a fork connects anew.

    Attributes:
        api: the SDK's client, for ``call``.
        id: the engine's own name of itself.
        podman: whether it is Podman.
        rootless: whether root in its containers is the user who runs it, so that files shared with this user
            belong to root there.
        remapped: whether users in its containers are others outside, who cannot use this user's files.
        confined: whether SELinux keeps its containers from files that were not labelled for them.
        version: of its interface.
    """

    def __init__(
        self, asked: Address, reached: Address, tunnel: Tunnel | None, api: Any, facts: Mapping[str, Any]
    ) -> None:
        self._asked = asked
        self._reached = reached
        self._tunnel = tunnel
        self._pid = os.getpid()
        self.api = api
        self.id = str(facts["id"])
        self.version: tuple[int, int] = facts["version"]
        self.podman: bool = facts["podman"]
        security = {re.sub(r",.*", "", str(option)) for option in facts["security"]}
        self.rootless = "name=rootless" in security
        self.remapped = "name=userns" in security
        self.confined = "name=selinux" in security

    @classmethod
    async def connect(cls, address: str | None = None) -> Engine:
        """Find the engine and see that it answers.

        Args:
            address: such as ``unix:///var/run/docker.sock``; when None, what DOCKER_HOST, DOCKER_CONTEXT or
                the configuration of the ``docker`` command says, else the first usual place that answers.

        Raises:
            DockerUnavailableError: there is none, it does not let this user in, or it is too old.
        """
        first: DockerUnavailableError | None = None
        for place in await asyncio.to_thread(find, address):
            try:
                return await _kept(cls._connect(place))
            except DockerUnavailableError as error:
                first = first or error
        raise first or DockerUnavailableError("No Docker engine was found")

    @classmethod
    async def _connect(cls, asked: Address) -> Engine:
        tunnel = Tunnel(asked) if asked.scheme == "ssh" else None
        reached = asked if tunnel is None else Address(f"unix://{tunnel.path}", str(asked), tunnelled=True)
        try:
            with translated(reached if tunnel else asked):
                api, facts = await asyncio.to_thread(_client, reached)
        except DockerUnavailableError as error:
            if tunnel is not None:
                complaint = await asyncio.to_thread(tunnel.reason)
                tunnel.close()
                if complaint:
                    raise DockerUnavailableError(
                        f"The engine at {asked} cannot be reached by ssh ({complaint}): "
                        "see that `ssh HOST docker version` works without a question"
                    ) from error
            raise
        except BaseException:
            if tunnel is not None:
                tunnel.close()
            raise
        return cls(asked, reached, tunnel, api, facts)

    @property
    def address(self) -> str:
        """Where it is, as a URL."""
        return self._asked.url

    @property
    def remote(self) -> bool:
        """Whether it is on another machine, which has other files."""
        return self._asked.remote

    async def call(self, function: Callable[..., T], *args: Any, **named: Any) -> T:
        """Make a call of the SDK, in a thread. It goes on when the caller is cancelled.

        Raises:
            DockerUnavailableError: the engine does not answer any more.
            DockerImageError: it has no such image.
            ContainerError: it refuses.
        """
        self._see_no_fork()
        with translated(self._asked):
            return await asyncio.to_thread(self._call, function, *args, **named)

    def _call(self, function: Callable[..., T], *args: Any, **named: Any) -> T:
        _see_that_it_listens(self._reached)
        return function(*args, **named)

    async def open(
        self, path: str, query: Mapping[str, Any] | None = None, body: Mapping[str, Any] | None = None
    ) -> Wire:
        """Make a request whose answer is a stream.

        Args:
            path: below the version, such as ``/exec/ID/start``.

        Raises:
            DockerUnavailableError: the engine does not answer any more.
            ContainerError: it refuses.
        """
        self._see_no_fork()
        versioned = f"/v{self.version[0]}.{self.version[1]}{path}"
        return await upgrade(self._reached, f"{versioned}?{urlencode(query)}" if query else versioned, body)

    async def close(self) -> None:
        """Let go of it; may be called twice. Never raises."""
        if self._tunnel is not None:
            self._tunnel.close()
        if self._pid == os.getpid():
            with contextlib.suppress(Exception):  # nothing can be done about what does not close
                await asyncio.to_thread(self.api.close)

    def _see_no_fork(self) -> None:
        if self._pid != os.getpid():
            raise DockerUnavailableError("The connection to the engine is the parent process's: connect anew")


def _client(address: Address) -> tuple[Any, dict[str, Any]]:
    """The SDK's client for an engine, and what the engine says of itself. Blocks."""
    try:
        import docker
        from docker.tls import TLSConfig
    except ImportError as error:
        raise DockerUnavailableError(
            "Containers need the Docker SDK, which is not installed: pip install 'conjure-jupyter[docker]'"
        ) from error
    _see_that_it_listens(address)
    tls: Any = False
    if address.tls is not None:
        given = address.tls
        tls = TLSConfig(
            client_cert=None if given.cert is None else (str(given.cert), str(given.key)),
            ca_cert=None if given.ca is None else str(given.ca),
            verify=given.verify,
        )
    # A socket of this machine is there or not; only a network can keep the connection waiting.
    limit: Any = ANSWER_LIMIT if address.scheme == "unix" else (CONNECT_LIMIT, ANSWER_LIMIT)

    def client(version: str) -> Any:
        made = docker.APIClient(address.url, version=version, timeout=limit, tls=tls)
        # Neither a proxy of the environment nor a password of ~/.netrc is meant for the engine.
        made.trust_env = False
        return made

    api = client("1.40")
    try:
        said = api.version(api_version=False)
        spoken = str(said["ApiVersion"]) if isinstance(said, dict) and "ApiVersion" in said else ""
        found = re.fullmatch(r"([0-9]+)\.([0-9]+)", spoken)
        if found is None:
            raise docker.errors.StreamParseError("no version")
        version = int(found.group(1)), int(found.group(2))
        if version < OLDEST:
            raise docker.errors.InvalidVersion(
                f"it speaks version {spoken} of the interface, not 1.40 or later"
            )
    finally:
        api.close()
    api = client(spoken)
    info = api.info()
    podman = any("podman" in str(part.get("Name")).lower() for part in said.get("Components") or [])
    return api, {
        # Podman makes up another at every question.
        "id": f"{info.get('Name')}:{address.url}" if podman else info.get("ID") or address.url,
        "version": version,
        "security": info.get("SecurityOptions") or (),
        "podman": podman,
    }


def _see_that_it_listens(address: Address) -> None:
    """Try a socket by hand, which takes 0.1 ms; the SDK forgets to close one that does not connect.

    Not for ``ssh``, where each connection is a process.

    Raises:
        OSError: it does not.
    """
    if address.scheme == "unix" and not address.tunnelled:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(CONNECT_LIMIT)
            probe.connect(str(address.path))


async def _kept(work: Coroutine[Any, Any, Engine]) -> Engine:
    """Wait for a connection; what comes of it after the caller was cancelled is closed in the background."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        _background.add(task)
        task.add_done_callback(_close_late)
        raise


def _close_late(task: asyncio.Task[Engine]) -> None:
    _background.discard(task)
    if not task.cancelled() and task.exception() is None:
        closing = asyncio.ensure_future(task.result().close())
        _background.add(closing)
        closing.add_done_callback(_background.discard)


#: What goes on after its caller was cancelled; a task that nobody holds may be collected.
_background: set[asyncio.Task[Any]] = set()
