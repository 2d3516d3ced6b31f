"""What a place is: where the tools of a session run, and who runs them.

A place has its say before each request, runs the calls of each answer, and gathers what an answer left
elsewhere. On the kernel's filesystem and in a container of ours the tools run here; a hosted container
runs them with the model, so that ``prepare`` and ``collect`` do the work there.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..clients.base import Request
from ..executors.contract import ExecutionContext
from ..types import FileRef, Message, ToolCall, ToolResult


class Place(abc.ABC):
    """Where tools run. All methods are coroutines on the engine's loop."""

    #: The name it is chosen by, as the setting ``on`` gives it.
    name: str

    #: Definitions of the tools that Claude gets, in the Messages API's form.
    definitions: list[dict[str, Any]]

    #: Where and within what limits they run, in the paths that tools see.
    context: ExecutionContext

    #: The same in this machine's paths.
    host_context: ExecutionContext

    @property
    @abc.abstractmethod
    def confined(self) -> bool:
        """Whether calls need no asking unless the user wants to be asked; known once it is started."""

    @abc.abstractmethod
    def shortfall(self) -> str:
        """What was asked for and cannot be kept, for the user; known once it is started."""

    @abc.abstractmethod
    def on_host(self, path: str) -> str:
        """What tools call ``path`` as a path of this machine."""

    @abc.abstractmethod
    def seen(self, path: Path) -> Path | None:
        """What tools call a folder of this machine; None where they do not see it."""

    @abc.abstractmethod
    def describe(self) -> tuple[str, ...]:
        """What Claude should know of it, a sentence each."""

    @abc.abstractmethod
    async def start(self) -> None:
        """Get ready; may be called again, to no effect.

        Raises:
            ExecutorError: it cannot start.
        """

    @abc.abstractmethod
    async def prepare(self, request: Request) -> Request:
        """The request as this place needs it."""

    @abc.abstractmethod
    async def execute(
        self,
        calls: Sequence[ToolCall],
        *,
        on_start: Callable[[ToolCall], None] | None = None,
        on_output: Callable[[ToolCall, str], None] | None = None,
        on_finish: Callable[[ToolCall, ToolResult], None] | None = None,
    ) -> list[ToolResult]:
        """Run calls, at the same time where they are independent; results in the order of the calls.

        A call that fails gives an ``is_error`` result. When the caller is cancelled, every process is
        ended first.

        Raises:
            ExecutorError: the place failed, not a call.
        """

    @abc.abstractmethod
    async def collect(self, message: Message) -> list[FileRef]:
        """Fetch the files that an answer left in this place and that are not in the workspace yet."""

    @abc.abstractmethod
    async def close(self) -> None:
        """End everything that was started; may be called twice. Never raises."""
