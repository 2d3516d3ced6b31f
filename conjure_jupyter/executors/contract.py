"""What an executor is: the place where commands run and files lie.

Primitives only. The tools (view, bash_tool, create_file, str_replace) are written once on top of them and
behave the same everywhere. Third parties register a class under the entry point group
``conjure.executors``.

Paths are given as strings, relative to the working directory or absolute, as Claude writes them. Every
file primitive refuses a path outside ``context.allowed_paths`` (read) or ``context.writable_paths``
(write, delete) with ``PermissionDeniedError``, following symbolic links only while they stay inside.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

Network = Literal["none", "limited", "bridge", "full", "host"]


@dataclass(frozen=True, slots=True)
class ExecutionContext:
    """Where and within what limits tools run.

    Attributes:
        working_directory: the tools' cwd, which relative paths start from.
        skills_root: the folder that holds the session's skills.
        artifacts_root: a folder that shows the registered artifacts by name; None where there is none, and
            they are staged below the working directory.
        skill: the name of the skill in use, when one is.
        environment: variables added to the allow-list of the executor.
        timeout: seconds a command may run.
        allowed_paths: folders that may be read, besides the working directory.
        writable_paths: folders that may be written, besides the working directory.
        read_only_paths: folders inside a writable one that may not be written all the same.
        network_access: None leaves it to the executor; an executor that cannot enforce what is asked
            raises ``UnsupportedSettingError`` when it starts.
        memory_limit: bytes a command may use; the same rule.
        output_limit: bytes of a command's output that are kept (head and tail).
        executor_config: options of one executor.
    """

    working_directory: Path
    skills_root: Path | None = None
    artifacts_root: Path | None = None
    skill: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 30.0
    allowed_paths: tuple[Path, ...] = ()
    writable_paths: tuple[Path, ...] = ()
    read_only_paths: tuple[Path, ...] = ()
    network_access: Network | None = None
    memory_limit: int | None = None
    output_limit: int = 100_000
    executor_config: Mapping[str, Any] = field(default_factory=dict)

    def with_(self, **changes: Any) -> ExecutionContext:
        """A copy with some attributes changed."""
        return replace(self, **changes)


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a command ended.

    Attributes:
        output: what was kept of stdout and stderr, in the order written. Where bytes were cut, a line in
            the middle says how many.
        exit_code: 0 to 255; 128 + signal number when a signal ended it; None when the time limit did.
        timed_out: whether the time limit ended it.
        duration: seconds.
        total_bytes: how much it printed.
        truncated_bytes: how much of that was cut.
        leftovers: how many processes it left behind, which were ended with it.
        notes: what the place has to say of its end, a sentence each: out of memory, of disk, of processes.
    """

    output: bytes
    exit_code: int | None
    timed_out: bool
    duration: float
    total_bytes: int = 0
    truncated_bytes: int = 0
    leftovers: int = 0
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The output as text; bytes that are no UTF-8 are replaced."""
        return self.output.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Stat:
    """A file or folder.

    Attributes:
        path: as it was asked for, or relative to the listed folder.
        kind: ``link`` only for a symbolic link that leads nowhere or outside.
        size: bytes; 0 for a folder.
        mtime_ns: time of the last change, nanoseconds since the epoch.
        mode: permission bits.
    """

    path: str
    kind: Literal["file", "dir", "link", "other"]
    size: int
    mtime_ns: int
    mode: int


class Executor(abc.ABC):
    """Where commands run. All methods are coroutines and run on the engine's loop.

    Failures of the call raise a ``ToolError``; failures of the executor raise an ``ExecutorError``. An
    ``OSError`` of a backend never leaves it untranslated.
    """

    #: The name it is chosen by: ``local``, ``docker``.
    name: ClassVar[str]

    @property
    def confined(self) -> bool:
        """Whether calls are confined so that they need no asking by default; known once it is started."""
        return False

    def shortfall(self) -> str:
        """What was asked for and cannot be kept here, in a sentence for the user; empty when all is."""
        return ""

    def on_host(self, path: str) -> str:
        """What tools call ``path`` as a path of this machine; as it is where both call it the same."""
        return path

    def seen(self, path: Path) -> Path | None:
        """What tools call a folder or file of this machine; None where they do not see it."""
        return path

    def describe(self) -> tuple[str, ...]:
        """What Claude should know of the place, a sentence each; it is told no path of this machine."""
        return ()

    def located(self, context: ExecutionContext) -> ExecutionContext:
        """``context`` with the paths that tools will see; known before the start, and what it returns.

        The same paths where the executor works on this machine's own file system.

        Raises:
            SettingsError: it names a path that cannot be there.
        """
        return context

    @abc.abstractmethod
    async def start(self, context: ExecutionContext) -> ExecutionContext:
        """Get ready; called once before the first call. Returns the context to use from here on.

        Raises:
            UnsupportedSettingError: the context asks for what cannot be enforced here.
            ExecutorError: it cannot start.
        """

    @abc.abstractmethod
    async def close(self) -> None:
        """End everything that was started; may be called twice. Never raises."""

    @abc.abstractmethod
    async def run(
        self,
        command: str,
        context: ExecutionContext,
        *,
        timeout: float | None = None,
        on_output: Callable[[bytes], None] | None = None,
    ) -> CommandResult:
        """Run ``command`` in a fresh bash, in the working directory.

        Processes it leaves behind end with it. When the caller is cancelled the whole process tree is
        ended before ``CancelledError`` goes on. At the time limit it is ended too and the partial output
        returned, at most 2 s after the limit.

        Args:
            command: text for ``bash -c``.
            timeout: seconds; ``context.timeout`` when None.
            on_output: hears raw bytes as they arrive, bounded in total by ``context.output_limit``.

        Raises:
            ExecutorError: bash cannot be started.
        """

    @abc.abstractmethod
    async def read(
        self, path: str, context: ExecutionContext, *, offset: int = 0, limit: int | None = None
    ) -> bytes:
        """Bytes of a file, from ``offset``, at most ``limit``.

        Raises:
            PathNotFoundError: there is no such file.
            PermissionDeniedError: it is outside the allowed folders, or not readable.
            ToolError: it is no regular file, or cannot be read.
        """

    @abc.abstractmethod
    async def write(
        self, path: str, data: bytes, context: ExecutionContext, *, mode: int | None = None
    ) -> None:
        """Replace or make a file, atomically, with its parent folders; keeps the mode of a replaced one.

        Raises:
            PermissionDeniedError: it is outside the writable folders, or not writable.
            ToolError: the disk is full, the path is a folder, and the like.
        """

    @abc.abstractmethod
    async def list(
        self, path: str, context: ExecutionContext, *, depth: int = 1, limit: int = 10_000
    ) -> list[Stat]:
        """What a folder holds, ``depth`` levels deep, sorted by path; paths relative to the folder.

        Raises:
            PathNotFoundError: there is no such folder.
            PermissionDeniedError: it is outside the allowed folders.
            ToolError: it is no folder.
        """

    @abc.abstractmethod
    async def stat(self, path: str, context: ExecutionContext) -> Stat:
        """What lies at a path.

        Raises:
            PathNotFoundError: nothing does.
            PermissionDeniedError: it is outside the allowed folders.
        """

    @abc.abstractmethod
    async def delete(self, path: str, context: ExecutionContext) -> None:
        """Remove a file, or an empty folder.

        Raises:
            PathNotFoundError: nothing lies there.
            PermissionDeniedError: it is outside the writable folders.
            ToolError: the folder is not empty, and the like.
        """
