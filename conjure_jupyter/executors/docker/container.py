"""One container: made, kept, entered, ended."""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
import time
import weakref
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...engine import outlast
from ...errors import ContainerError, DockerImageError, DockerUnavailableError, ExecutorError
from .connection import Engine
from .endings import events_of, reason
from .hardening import checked, host_config
from .heartbeat import Heartbeat, command, guard_user
from .link import LinkLostError, Stream
from .mounts import Mount
from .options import DockerOptions
from .owner import labels
from .streams import EngineStream

#: What engines say when they have no init of their own to put into a container.
_NO_INIT = re.compile(r"docker-init|container-init|catatonit|init binary|init_path", re.IGNORECASE)
#: Seconds an ended process may take to have an exit code.
CODE_LIMIT = 5.0
#: Seconds to wait for a removal. It goes on after that, and without a heartbeat the container ends anyway.
REMOVE_LIMIT = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A container to be made.

    Attributes:
        options: its limits.
        mounts: what it sees of this machine.
        user: ``UID:GID`` of the tools, in numbers.
        session: for its labels.
        name: of the container; a new one when empty.
        labels: besides those that everything has.
    """

    options: DockerOptions
    mounts: tuple[Mount, ...]
    user: str
    session: str
    name: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


class Container:
    """A running container, which ends with this process.

    Belongs to the event loop that made it.

    Attributes:
        id: the engine's name of it.
        plan: what it was made by.
        engine: where it runs.
    """

    def __init__(self, engine: Engine, plan: Plan, container_id: str, heartbeat: Heartbeat) -> None:
        self.engine = engine
        self.plan = plan
        self.id = container_id
        self._heartbeat = heartbeat
        self._made = time.time()
        self._removed = False
        self._streams: weakref.WeakSet[EngineStream] = weakref.WeakSet()

    @classmethod
    async def create(cls, engine: Engine, plan: Plan) -> Container:
        """Make a container and start it; when the caller is cancelled meanwhile, it is removed again.

        Raises:
            DockerUnavailableError: the engine does not answer.
            DockerImageError: the image is not there, or has no bash.
            ContainerError: a mount is refused, or the container does not start.
        """
        socket = Path(engine.address.removeprefix("unix://")) if engine.address.startswith("unix:") else None
        mounts = await asyncio.to_thread(checked, plan.mounts, engine=engine, socket=socket)
        try:
            return await _whole(_make(engine, plan, mounts, init=True))
        except ContainerError as error:
            if not _NO_INIT.search(error.message):
                raise
        return await _whole(_make(engine, plan, mounts, init=False))

    @property
    def gone(self) -> bool:
        """Whether it has ended, or this process cannot keep it alive any more."""
        return self._heartbeat.gone

    async def ended(self) -> None:
        """Wait until it is gone."""
        await self._heartbeat.ended()

    async def attach(
        self,
        argv: Sequence[str],
        *,
        user: str | None = None,
        environment: Mapping[str, str] | None = None,
        workdir: str = "/",
    ) -> EngineStream:
        """Start a process in it.

        A program that does not exist ends at once with exit code 126 or 127 and says why on its output.

        Args:
            user: ``UID:GID``; the tools' when None.
            environment: besides the image's own variables.

        Raises:
            LinkLostError: the container is gone.
            ContainerError: the engine refuses.
        """
        api = self.engine.api
        try:
            made = await self.engine.call(
                api.exec_create,
                self.id,
                list(argv),
                stdin=True,
                user=user or self.plan.user,
                environment=dict(environment or {}),
                workdir=workdir,
            )
            exec_id = str(made["Id"])
            wire = await self.engine.open(f"/exec/{exec_id}/start", body={"Detach": False, "Tty": False})
        except DockerImageError:
            raise
        except (ContainerError, DockerUnavailableError) as error:
            await asyncio.sleep(0)  # the heartbeat hears of the same end
            if self.gone or isinstance(error, DockerUnavailableError) or _is_absent(error):
                raise LinkLostError(f"The container is gone: {error.message}", self.id) from error
            raise
        stream = EngineStream(wire, exec_id)
        self._streams.add(stream)
        return stream

    async def exec_code(self, stream: Stream) -> int | None:
        """The exit code of a process whose output has ended; None when it runs on or nobody knows.

        Args:
            stream: what ``attach`` gave.
        """
        if not isinstance(stream, EngineStream):
            return None
        until = time.monotonic() + CODE_LIMIT
        with contextlib.suppress(ExecutorError):
            while time.monotonic() < until:
                seen = await self.engine.call(self.engine.api.exec_inspect, stream.exec_id)
                if not seen["Running"]:
                    code = seen["ExitCode"]
                    return None if code is None else int(code)
                await asyncio.sleep(0.02)  # the output ends a little before the process is waited for
        return None

    async def remove(self) -> None:
        """End it and all that runs in it. May be called twice. Never raises."""
        if self._removed:
            return
        self._removed = True
        task = asyncio.ensure_future(_remove(self.engine, self.id))
        cancelled = await outlast(task)
        self._heartbeat.stop()
        for stream in list(self._streams):
            stream.end()
        if cancelled:
            raise asyncio.CancelledError

    async def why(self) -> str:
        """Why it is gone, in one sentence."""
        if self._removed:
            return "The container was removed."
        if not self.gone:
            return "The container runs."
        try:
            events = await self.engine.call(events_of, self.engine.api, self.id, int(self._made))
        except ExecutorError:
            return "The container is gone because its engine was stopped, or cannot be reached."
        return (
            reason(events, self.plan.options.memory)
            or "The container is gone, as when its engine is restarted."
        )


async def _whole(work: Coroutine[Any, Any, Container]) -> Container:
    """Make a container; to the end though the caller is cancelled, when it is removed again."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        _background.add(task)
        task.add_done_callback(_remove_late)
        raise


def _remove_late(task: asyncio.Task[Container]) -> None:
    _background.discard(task)
    if not task.cancelled() and task.exception() is None:
        removal = asyncio.ensure_future(task.result().remove())
        _background.add(removal)
        removal.add_done_callback(_background.discard)


#: What goes on after its caller was cancelled; a task that nobody holds may be collected.
_background: set[asyncio.Task[Any]] = set()


async def _make(engine: Engine, plan: Plan, mounts: tuple[Mount, ...], *, init: bool) -> Container:
    api, options = engine.api, plan.options

    def create() -> str:
        made = api.create_container(
            options.image,
            entrypoint=command(),
            command=[],
            name=plan.name or f"conjure-{plan.session[:32]}-{secrets.token_hex(4)}",
            hostname="sandbox",
            user=guard_user(plan.user),
            labels={**plan.labels, **labels(plan.session, "container")},
            stdin_open=True,
            working_dir="/",
            healthcheck={"test": ["NONE"]},
            stop_signal="SIGKILL",
            # Nothing of ~/.docker/config.json: a proxy's address may hold a password.
            use_config_proxy=False,
            host_config=api.create_host_config(**host_config(options, mounts, plan.user, engine, init=init)),
        )
        return str(made["Id"])

    container_id = await engine.call(create)
    heartbeat: Heartbeat | None = None
    try:
        heartbeat = await _start(engine, container_id)
        if await heartbeat.ready():
            return Container(engine, plan, container_id, heartbeat)
        said = heartbeat.said
    except ContainerError as error:
        await _discard(engine, container_id, heartbeat)
        if _has_no_bash(error.message):
            raise _no_bash(options.image) from error
        raise ContainerError(error.message, container_id) from error
    except BaseException:
        await _discard(engine, container_id, heartbeat)
        raise
    await _discard(engine, container_id, heartbeat)
    if _has_no_bash(said):
        raise _no_bash(options.image)
    raise ContainerError(
        f"The container of {options.image} ended at once: {said or 'without a word'}", container_id
    )


async def _start(engine: Engine, container_id: str) -> Heartbeat:
    """Start a container with its guard's input and output in hand."""
    path, query = f"/containers/{container_id}/attach", {"stream": 1, "stdin": 1, "stdout": 1, "stderr": 1}
    if engine.podman:
        # Nobody may attach to what does not run yet there. The guard answers every line: none is missed.
        await engine.call(engine.api.start, container_id)
        return Heartbeat(await engine.open(path, query))
    wire = await engine.open(path, query)
    try:
        await engine.call(engine.api.start, container_id)
    except BaseException:
        wire.close()
        raise
    return Heartbeat(wire)


async def _discard(engine: Engine, container_id: str, heartbeat: Heartbeat | None) -> None:
    await _remove(engine, container_id)
    if heartbeat is not None:
        heartbeat.stop()


async def _remove(engine: Engine, container_id: str) -> None:
    """Remove a container. One that is gone, or on its way, is no error; nor is an engine that is.

    Done while its guard is fed: one that ends by itself at the same time is still there for a moment after.
    """
    with contextlib.suppress(ExecutorError, TimeoutError):
        async with asyncio.timeout(REMOVE_LIMIT):
            await engine.call(engine.api.remove_container, container_id, v=True, force=True)


def _is_absent(error: ExecutorError) -> bool:
    return any(
        word in error.message.lower() for word in ("no such container", "is not running", "no container with")
    )


def _has_no_bash(text: str) -> bool:
    return "bash" in text and any(
        word in text.lower() for word in ("not found", "no such file", "permission denied", "exec format")
    )


def _no_bash(image: str) -> DockerImageError:
    return DockerImageError(image, "has no bash that runs: add it, or use the one of `conjure docker build`")
