"""Commands and files in a container beside the kernel.

``DockerExecutor`` is the face; ``running`` keeps the container that answers, ``mounts`` says what it sees.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, TypeVar

from ...errors import ExecutorError, SettingsError, ToolError
from ..contract import CommandResult, ExecutionContext, Executor, Stat
from ..environment import check_names
from ..inputs import check_command, time_limit
from .disk import DiskWatch
from .link import Link, LinkLostError
from .mounts import Places, places
from .options import DockerOptions, container_network
from .running import Running

T = TypeVar("T")


class DockerExecutor(Executor):
    """Runs tools in one container, made at the first call and used by all that follow.

    A container that is gone (the engine was restarted, it was removed, it stood idle) is replaced at the next
    call, with the same workspace; what lay in its ``/tmp`` and home folder is lost, and the call's result
    says so.

    Args:
        options: image and limits; the defaults when None. What the context says of network and memory wins,
            and so does its ``executor_config``, by the names of the options.
        address: of the engine, such as ``unix:///var/run/docker.sock``; found as the ``docker`` command does
            when None.
        session: a name for the container's labels.
        notebook: the notebook's folder, to be seen at ``/notebook``.
        artifacts: a folder with the registered artifacts by name, to be seen at ``/artifacts``.
        hidden: folders that tools never see, whatever else is mounted.
        tell: hears what the user should know, a sentence at a time, on the engine's loop.
    """

    name: ClassVar[str] = "docker"

    def __init__(
        self,
        options: DockerOptions | None = None,
        *,
        address: str | None = None,
        session: str | None = None,
        notebook: Path | None = None,
        artifacts: Path | None = None,
        hidden: Sequence[Path] = (),
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self.options = options or DockerOptions()
        self._address = address
        self._session = session
        self._notebook = notebook
        self._artifacts = artifacts
        self._hidden = hidden
        self._tell = tell
        self._running: Running | None = None
        self._shared: Places | None = None

    @property
    def confined(self) -> bool:
        """The container is the boundary."""
        return True

    def places(self, context: ExecutionContext) -> Places:
        """What the container sees of the folders that a context of this machine names.

        Raises:
            SettingsError: it names one that cannot be mounted.
        """
        return places(
            context,
            notebook=self._notebook,
            artifacts=self._artifacts,
            hidden=self._hidden,
            volumes=self.options.volumes,
        )

    def located(self, context: ExecutionContext) -> ExecutionContext:
        """The context in the container's terms."""
        self._shared = self.places(context)
        return self._shared.context

    def on_host(self, path: str) -> str:
        """A path of the container as one of this machine, where it is shared."""
        found = self._shared.on_host(path) if self._shared is not None and path.startswith("/") else None
        return path if found is None else str(found)

    def seen(self, path: Path) -> Path | None:
        """What the container calls a path of this machine."""
        return self._shared.in_container(path) if self._shared is not None else None

    def describe(self) -> tuple[str, ...]:
        """That it is a container, and what it reaches."""
        hosts = ", ".join(self.options.hosts) or "no host"
        network = {
            "none": "It has no network: install nothing, download nothing.",
            "limited": f"It reaches {hosts} through a proxy, and nothing else.",
            "bridge": "It has a network.",
        }
        return (
            "Tools run in a container, where the working directory is /workspace.",
            "Its /tmp and home folder are empty at first and do not last.",
            network[self.options.network],
        )

    async def start(self, context: ExecutionContext) -> ExecutionContext:
        """Find the engine and the image, and start the container in the background.

        Raises:
            SettingsError: an option, a folder or a variable's name cannot be used.
            DockerUnavailableError: no engine answers.
            DockerImageError: the image is not there.
        """
        check_names(context.environment)
        options = self._options(context)
        shared = self._shared = self.places(context)
        if self._running is not None and self._running.serves(options, shared):
            return shared.context
        await self.close()
        if not await asyncio.to_thread(context.working_directory.is_dir):
            raise ExecutorError(f"{context.working_directory}: the working directory does not exist")
        running = Running(options, shared, address=self._address, session=self._session, tell=self._tell)
        await running.connect()
        running.warm()
        self._running = running
        return shared.context

    def _options(self, context: ExecutionContext) -> DockerOptions:
        try:
            options = replace(self.options, **context.executor_config)
        except TypeError as error:
            raise SettingsError("executor_config", f"docker: {error}") from error
        if context.network_access is not None:
            options = replace(options, network=container_network(context.network_access))
        if context.memory_limit is not None:
            options = replace(options, memory=context.memory_limit)
        return options

    async def close(self) -> None:
        """Remove the container."""
        running, self._running = self._running, None
        if running is not None:
            await running.close()

    async def run(
        self,
        command: str,
        context: ExecutionContext,
        *,
        timeout: float | None = None,
        on_output: Callable[[bytes], None] | None = None,
    ) -> CommandResult:
        """Run a command in a fresh bash; see ``Executor.run``.

        Raises:
            ToolError: the command is no text, or what ran it was ended: it may have done a part of its work.
            ExecutorError: no container can be had.
        """
        check_command(command)
        limit = time_limit(timeout, context)
        check_names(context.environment)
        running = self._started()
        async with running.use() as link:
            context = context.with_(environment={**running.environment, **context.environment})

            async def run(heard: Callable[[bytes], None] | None) -> CommandResult:
                return await link.run(command, context, timeout=limit, on_output=heard)

            try:
                if running.disk is None:
                    result = await run(on_output)
                else:
                    result = await DiskWatch(running.disk).guard(
                        run, output_limit=context.output_limit, on_output=on_output
                    )
            except LinkLostError as error:
                if running is not self._running:
                    raise ExecutorError(
                        "the executor was closed while the command ran, which ended it"
                    ) from error
                reason = await running.lost(link, error)
                raise ToolError(
                    f"{reason}. The command may have done a part of its work; the next call starts it anew"
                ) from error
            news = running.take_news()
        return replace(result, notes=(*news, *result.notes)) if news else result

    async def read(
        self, path: str, context: ExecutionContext, *, offset: int = 0, limit: int | None = None
    ) -> bytes:
        """Bytes of a file; see ``Executor.read``."""
        return await self._call(lambda link: link.read(path, context, offset=offset, limit=limit))

    async def write(
        self, path: str, data: bytes, context: ExecutionContext, *, mode: int | None = None
    ) -> None:
        """Replace or make a file; see ``Executor.write``."""
        await self._call(lambda link: link.write(path, data, context, mode=mode))

    async def list(
        self, path: str, context: ExecutionContext, *, depth: int = 1, limit: int = 10_000
    ) -> list[Stat]:
        """What a folder holds; see ``Executor.list``."""
        return await self._call(lambda link: link.list(path, context, depth=depth, limit=limit))

    async def stat(self, path: str, context: ExecutionContext) -> Stat:
        """What lies at a path; see ``Executor.stat``."""
        return await self._call(lambda link: link.stat(path, context))

    async def delete(self, path: str, context: ExecutionContext) -> None:
        """Remove a file or an empty folder; see ``Executor.delete``."""
        await self._call(lambda link: link.delete(path, context))

    async def _call(self, work: Callable[[Link], Awaitable[T]]) -> T:
        """Do work on files. When the link is lost it is done once more: each of these may be repeated."""
        running = self._started()
        for last in (False, True):
            async with running.use() as link:
                try:
                    return await work(link)
                except LinkLostError as error:
                    if running is not self._running:
                        raise ExecutorError("the executor was closed during the call") from error
                    reason = await running.lost(link, error)
                    if last:
                        raise ToolError(f"{reason}; try again") from error
        raise AssertionError

    def _started(self) -> Running:
        if self._running is None:
            raise ExecutorError("the Docker executor is not started, or closed")
        return self._running
