"""An executor that is nothing but a container and a ``ShellLink`` into it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

from conjure_jupyter.errors import ToolError, UnsupportedSettingError
from conjure_jupyter.executors import CommandResult, ExecutionContext, Executor
from conjure_jupyter.executors.contract import Stat
from conjure_jupyter.executors.docker import DockerOptions
from conjure_jupyter.executors.docker.connection import Engine
from conjure_jupyter.executors.docker.container import Container, Plan
from conjure_jupyter.executors.docker.mounts import places
from conjure_jupyter.executors.docker.shells import ShellLink
from conjure_jupyter.executors.environment import check_names


class ThinExecutor(Executor):
    """Starts a container of an image and makes every call over its link."""

    name: ClassVar[str] = "shells"

    def __init__(self, address: str, image: str, user: int = 0, **options: object) -> None:
        self.address = address
        self.user = f"{user}:{user}"
        self.options = DockerOptions(image=image, user=self.user, **options)  # type: ignore[arg-type]  # by name
        self.engine: Engine | None = None
        self.container: Container | None = None
        self.link: ShellLink | None = None

    def located(self, context: ExecutionContext) -> ExecutionContext:
        return places(context).context

    async def start(self, context: ExecutionContext) -> ExecutionContext:
        check_names(context.environment)
        if context.network_access not in (None, "none"):
            raise UnsupportedSettingError("network_access", self.name, "there is none")
        shared = places(context)
        options = self.options
        if context.memory_limit is not None:
            options = replace(options, memory=context.memory_limit)
        await self.close()
        self.engine = await Engine.connect(self.address)
        plan = Plan(options=options, mounts=shared.mounts, user=self.user, session="shells-test")
        self.container = await Container.create(self.engine, plan)
        self.link = await ShellLink.open(self.container.attach)
        return shared.context

    @property
    def there(self) -> ShellLink:
        assert self.link is not None
        return self.link

    async def close(self) -> None:
        if self.link is not None:
            await self.link.close()
        if self.container is not None:
            await self.container.remove()
        if self.engine is not None:
            await self.engine.close()
        self.link = self.container = self.engine = None

    async def run(
        self,
        command: str,
        context: ExecutionContext,
        *,
        timeout: float | None = None,
        on_output: Callable[[bytes], None] | None = None,
    ) -> CommandResult:
        if "\0" in command:
            raise ToolError("the command holds a NUL character")
        try:
            command.encode()
        except UnicodeEncodeError as error:
            raise ToolError("the command is not valid text") from error
        limit = context.timeout if timeout is None else timeout
        return await self.there.run(command, context, timeout=limit, on_output=on_output)

    async def read(
        self, path: str, context: ExecutionContext, *, offset: int = 0, limit: int | None = None
    ) -> bytes:
        return await self.there.read(path, context, offset=offset, limit=limit)

    async def write(
        self, path: str, data: bytes, context: ExecutionContext, *, mode: int | None = None
    ) -> None:
        await self.there.write(path, data, context, mode=mode)

    async def list(
        self, path: str, context: ExecutionContext, *, depth: int = 1, limit: int = 10_000
    ) -> list[Stat]:
        return await self.there.list(path, context, depth=depth, limit=limit)

    async def stat(self, path: str, context: ExecutionContext) -> Stat:
        return await self.there.stat(path, context)

    async def delete(self, path: str, context: ExecutionContext) -> None:
        await self.there.delete(path, context)
