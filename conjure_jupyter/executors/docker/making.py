"""Making a container and the link into it, with this machine's folders, or copies of them, in it."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ...engine import outlast
from ...errors import ContainerError, DockerUnavailableError, SettingsError, UnsupportedSettingError
from .access import see_access
from .connection import Engine
from .container import Container, Plan
from .hardening import checked
from .hiding import Hiding
from .limited.network import LimitedNetwork
from .link import Link, NoPythonError
from .mounts import Mount, Places
from .options import DockerOptions
from .owner import labels
from .remote import Moved, Probe, VolumeFiles, no_such_source
from .resident import boot
from .resident.link import ResidentLink

#: Seconds that an engine may take to say that it is there.
PING_LIMIT = 10.0


@dataclass
class Parts:
    """A container with all that hangs on it.

    Attributes:
        container: it.
        link: into it; None when it was lost and no other was made yet.
        network: its way to the hosts it may reach, when it has one.
        environment: what commands get besides their context: the way to the proxy.
    """

    container: Container
    link: Link | None = None
    network: LimitedNetwork | None = None
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def answers(self) -> Link | None:
        """The link, when calls can go through it."""
        return None if self.link is None or self.link.lost or self.container.gone else self.link

    async def end(self) -> None:
        """Remove all of it. Never raises."""
        for part in (self.link, self.network):
            if part is not None:
                await part.close()
        await self.container.remove()


class Maker:
    """Makes the containers of one session, one after the other. Belongs to one engine once it is connected.

    Args:
        options: the containers' limits.
        shared: what they see of this machine.
        hiding: covers what they must not.
        session: a name for their labels.
        tell: hears what the user should know, each sentence once.

    Attributes:
        apart: whether the engine does not use this machine's files, so that they are sent and brought back.
        volume: where they are then.
    """

    def __init__(
        self,
        options: DockerOptions,
        shared: Places,
        hiding: Hiding,
        *,
        session: str,
        tell: Callable[[str], None],
    ) -> None:
        self._options = options
        self._shared = shared
        self._hiding = hiding
        self._session = session
        self._tell = tell
        self._engine: Engine | None = None
        self.apart = False
        self.volume: VolumeFiles | None = None

    @property
    def engine(self) -> Engine:
        """The engine.

        Raises:
            ContainerError: there is none yet.
        """
        if self._engine is None:
            raise ContainerError("the Docker executor is not connected")
        return self._engine

    async def connect(self, address: str | None) -> None:
        """Find the engine, and see that it has all that is asked for.

        Raises:
            DockerUnavailableError: no engine answers.
            DockerImageError: the image is not there.
            ContainerError: a folder must not be shared.
            SettingsError: there is no volume of a name that the user gave.
        """
        engine = await Engine.connect(address)
        try:
            await engine.call(engine.api.inspect_image, self._options.image)
            await self._see_volumes(engine)
            if not engine.remote:
                await asyncio.to_thread(checked, self._shared.mounts, engine=engine, socket=None)
        except BaseException:
            await engine.close()
            raise
        self._engine = engine
        # Where users in containers are others outside, they cannot use this user's files.
        self.apart = engine.remote or engine.remapped

    async def _see_volumes(self, engine: Engine) -> None:
        """See that volumes exist: the engine would make one for every name that is mistyped."""
        for volume in self._options.volumes:
            if volume.source.startswith("/"):
                continue
            try:
                await engine.call(engine.api.inspect_volume, volume.source)
            except ContainerError as error:
                raise SettingsError(
                    "docker_volumes",
                    f"the engine has no volume {volume.source!r}: give the absolute path of a folder, or "
                    f"make it with `docker volume create {volume.source}`",
                ) from error

    async def see_engine(self) -> None:
        """See that the engine answers, before it is asked for what may take it longer.

        Raises:
            DockerUnavailableError: it does not.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PING_LIMIT):
                await self.engine.call(self.engine.api.ping)
                return
        raise DockerUnavailableError(
            f"The engine at {self.engine.address} does not answer: "
            "see whether `docker info` does, and restart it"
        )

    async def make(self) -> Parts:
        """A container with a link into it, with this machine's folders mounted if that means anything.

        Raises:
            ExecutorError: it cannot be made, or ended at once.
        """
        if not self.apart:
            if (parts := await self._mounted()) is not None:
                return parts
            self.apart = True
        if self.volume is None:
            self.volume = await VolumeFiles.create(
                self.engine,
                self._session,
                await self._hiding.mounts(),
                user=self._user,
                image=self._options.image,
                labels=labels(self._session, "volume"),
            )
        self.tell_of(await self.volume.push())
        return await self._entered(self.volume.mounts)

    async def _mounted(self) -> Parts | None:
        """Start with this machine's folders mounted; None where the engine does not see them."""
        mounts = await self._hiding.mounts()
        known = Probe.known(self.engine)
        if known is False:
            return None
        probe = None if known else await asyncio.to_thread(self._probe)
        try:
            parts = await self._entered(mounts if probe is None else [*mounts, probe.mount])
            try:
                link = parts.link
                assert link is not None  # noqa: S101  it was just made
                if probe is not None and not await probe.check(self.engine, link, self._shared.context):
                    await parts.end()
                    return None
                await see_access(link, self._shared, self._options, self.engine, self._user)
            except BaseException:
                await parts.end()
                raise
        except ContainerError as error:
            if probe is not None and no_such_source(error):
                return None
            raise
        finally:
            if probe is not None:
                await asyncio.to_thread(probe.close)
        return parts

    def _probe(self) -> Probe:
        """A probe beside the workspace: an engine may see some folders of this machine only."""
        workspace = self._shared.on_host(".")
        try:
            return Probe(workspace.parent if workspace is not None else None)
        except OSError:
            return Probe()

    async def _entered(self, mounts: Sequence[Mount]) -> Parts:
        """A new container with a link into it."""
        plan = Plan(options=self._options, mounts=tuple(mounts), user=self._user, session=self._session)
        parts = Parts(await Container.create(self.engine, plan))
        try:
            await self.enter(parts)
        except BaseException:
            await parts.end()
            raise
        return parts

    async def enter(self, parts: Parts) -> None:
        """Make the link into a container, by what its image has, and its network anew.

        Raises:
            LinkLostError: the container ended.
            UnsupportedSettingError: the image lacks what the network needs.
        """
        container = parts.container
        try:
            parts.link = await ResidentLink.open(await container.attach(boot.ARGUMENTS))
        except NoPythonError:
            if self._options.network == "limited":
                raise UnsupportedSettingError(
                    "network=limited", "docker", f"{self._options.image} has no Python, which it needs"
                ) from None
            from .shells import ShellLink

            parts.link = await ShellLink.open(container.attach)
        if self._options.network == "limited":
            if parts.network is not None:
                await parts.network.close()
            parts.network = LimitedNetwork(self._options.hosts, on_refused=self._tell)
            parts.environment = await parts.network.start(container)

    async def push(self, link: Link) -> None:
        """Send what changed here to an engine that does not see it."""
        if self.volume is not None:
            self.tell_of(await self.volume.push(link, self._shared.context))

    async def pull(self, link: Link) -> None:
        """Bring what changed there, also when the caller is cancelled meanwhile."""
        if self.volume is None or link.lost:
            return
        task = asyncio.ensure_future(self.volume.pull(link, self._shared.context))
        cancelled = await outlast(task)
        self.tell_of(task.result())
        if cancelled:
            raise asyncio.CancelledError

    def tell_of(self, moved: Moved) -> None:
        """Tell the user of what was not moved."""
        for note in moved.notes:
            self._tell(note)

    @property
    def _user(self) -> str:
        """Whom tools run as: the notebook's user, who in a rootless engine's containers is called root."""
        if self._options.user is not None:
            user = self._options.user
            return user if ":" in user else f"{user}:{user}"
        return "0:0" if self.engine.rootless else f"{os.getuid()}:{os.getgid()}"

    async def close(self) -> None:
        """Let go of the engine. Never raises."""
        if self.volume is not None and not await self.volume.close():
            self._tell("Files in the container's volume could not be brought here; the volume was kept.")
        if self._engine is not None:
            await self._engine.close()
