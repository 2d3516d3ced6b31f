"""Tools that run here, through an executor: on the kernel's own machine, or in a container beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..artifacts.service import ArtifactService
from ..clients.base import Request
from ..executors.contract import ExecutionContext, Executor
from ..tools.dispatch import After, Before, Toolbox
from ..types import FileRef, Message, ToolCall, ToolResult
from .contract import Place


class ExecutorPlace(Place):
    """Runs calls through an executor that works on the session's folder.

    Args:
        executor: runs commands and file operations.
        context: where and within what limits, in this machine's paths.
        namespace: gives the kernel's variables; None leaves ``inspect_variable`` out.
        output_limit: characters of a result that Claude gets.
        artifacts: the session's artifacts; None leaves the tools for them out.
        before: awaited before each call runs.
        after: awaited when it ran, before its result is told.
    """

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
        self.name = executor.name
        self.executor = executor
        self.host_context = context
        self.context = executor.located(context)
        self._artifacts = artifacts
        self._toolbox = Toolbox(
            executor,
            self.context,
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
            self.context = self._toolbox.context = await self.executor.start(self.host_context)
            self._started = True

    @property
    def confined(self) -> bool:
        """Whether the executor confines calls."""
        return self.executor.confined

    def shortfall(self) -> str:
        """As the executor says."""
        return self.executor.shortfall()

    def on_host(self, path: str) -> str:
        """As the executor knows."""
        return self.executor.on_host(path)

    def seen(self, path: Path) -> Path | None:
        """As the executor knows."""
        return self.executor.seen(path)

    def describe(self) -> tuple[str, ...]:
        """As the executor says."""
        return self.executor.describe()

    async def prepare(self, request: Request) -> Request:
        """The request as it is; the artifacts it names are shown where tools see them by name."""
        shown_at = self.context.artifacts_root
        if self._artifacts is not None and shown_at is not None:
            await self._artifacts.environment("", shown_at.as_posix())
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
