"""How calls reach a running container: the contract of the two ways there are.

A *stream* is what the engine gives for a process that it started in a container with its input and output
attached. A *link* makes calls over one stream (``resident``: one Python process answers them all) or over
many (``shells``: one bash for each call, in images without Python).
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Literal

from ...errors import ContainerError
from ..contract import CommandResult, ExecutionContext, Stat

#: Which output of the process a piece came from.
Source = Literal["stdout", "stderr"]


class LinkLostError(ContainerError):
    """What answered in the container is gone; the call may have done a part of its work.

    Never leaves the executor: it starts another and tells the caller what happened.
    """


class NoPythonError(ContainerError):
    """The image has no Python that the resident process can run on."""


class Stream(abc.ABC):
    """Input and output of one process in a container. All methods belong to the engine's loop."""

    @abc.abstractmethod
    async def read(self) -> tuple[Source, bytes] | None:
        """The next piece of output, as it came; None at the end. Pieces are at most 1 MiB."""

    @abc.abstractmethod
    async def write(self, data: bytes) -> None:
        """Hand input to the process; waits while it does not read.

        Raises:
            LinkLostError: the process or the engine is gone.
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Let go of it: the process gets the end of its input. May be called twice. Never raises."""


class Link(abc.ABC):
    """Calls into a container. Paths and contexts are the container's own.

    Cancellation, time limits and errors are as in ``Executor``; besides, every method raises
    ``LinkLostError`` when the other side is gone.
    """

    @property
    @abc.abstractmethod
    def lost(self) -> bool:
        """Whether the other side is gone."""

    @abc.abstractmethod
    async def run(
        self,
        command: str,
        context: ExecutionContext,
        *,
        timeout: float,
        on_output: Callable[[bytes], None] | None = None,
    ) -> CommandResult:
        """Run a command; see ``Executor.run``."""

    @abc.abstractmethod
    async def read(self, path: str, context: ExecutionContext, *, offset: int, limit: int | None) -> bytes:
        """Bytes of a file; see ``Executor.read``."""

    @abc.abstractmethod
    async def write(self, path: str, data: bytes, context: ExecutionContext, *, mode: int | None) -> None:
        """Replace or make a file; see ``Executor.write``."""

    @abc.abstractmethod
    async def list(self, path: str, context: ExecutionContext, *, depth: int, limit: int) -> list[Stat]:
        """What a folder holds; see ``Executor.list``."""

    @abc.abstractmethod
    async def stat(self, path: str, context: ExecutionContext) -> Stat:
        """What lies at a path; see ``Executor.stat``."""

    @abc.abstractmethod
    async def delete(self, path: str, context: ExecutionContext) -> None:
        """Remove a file or an empty folder; see ``Executor.delete``."""

    @abc.abstractmethod
    async def close(self) -> None:
        """End what runs and let go. May be called twice. Never raises."""
