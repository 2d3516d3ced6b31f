"""The kernel's own machine: tools run through an executor, files are where they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..artifacts.service import ArtifactService
from ..clients.base import Request
from ..executors.contract import ExecutionContext, Executor
from ..tools.dispatch import After, Before, Toolbox
from ..types import FileRef, Message, ToolCall, ToolResult
from .contract import Place


class LocalPlace(Place):
    """Runs calls through an executor that sees the session's folder as it is.

    Args:
        executor: runs commands and file operations.
        context: where and within what limits.
        namespace: gives the kernel's variables; None leaves ``inspect_variable`` out.
        output_limit: characters of a result that Claude gets.
        artifacts: the session's artifacts; None leaves the tools for them out.
        before: awaited before each call runs.
        after: awaited when it ran, before its result is told.
    """

    name = "local"

    def __init__(
        self,
        executor: Executor,
        context: ExecutionContext,
        *,
        namespace: Callable[[], Mapping[str, Any]] | None = None,
        output_limit: int = 30_000,
        artifacts: ArtifactService | None = None,
        before: Before | None = None,
        after: After | None = None,
    ) -> None:
        self.executor = executor
        self.context = context
        self._toolbox = Toolbox(
            executor,
            context,
            namespace=namespace,
            output_limit=output_limit,
            artifacts=artifacts,
            before=before,
            after=after,
        )
        self.definitions = self._toolbox.definitions
        self._started = False

    async def start(self) -> None:
        """Start the executor, once."""
        if not self._started:
            self.context = self._toolbox.context = await self.executor.start(self.context)
            self._started = True

    async def prepare(self, request: Request) -> Request:
        """The request as it is: everything it names lies on this machine."""
        return request

    async def execute(
        self,
        calls: Sequence[ToolCall],
        *,
        on_start: Callable[[ToolCall], None] | None = None,
        on_output: Callable[[ToolCall, str], None] | None = None,
        on_finish: Callable[[ToolCall, ToolResult], None] | None = None,
    ) -> list[ToolResult]:
        """Run calls through the toolbox."""
        await self.start()
        return await self._toolbox.execute_all(
            calls, on_start=on_start, on_output=on_output, on_finish=on_finish
        )

    async def collect(self, message: Message) -> list[FileRef]:  # noqa: ARG002  the contract's argument
        """Nothing: what was made is in the workspace already."""
        return []

    async def close(self) -> None:
        """Close the executor."""
        await self.executor.close()
