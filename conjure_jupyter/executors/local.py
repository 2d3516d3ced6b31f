"""Commands and files on the kernel's own machine.

There is no sandbox: a command can read and write what the user can. What is kept: file tools stay inside
the context's folders, a command sees an allow-list of the environment, and everything it started ends with
it. What is not caught stands in ``reaper`` (Linux) and ``groups`` (macOS).
"""

from __future__ import annotations

import asyncio
import functools
import math
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from ..errors import ExecutorError, SettingsError, ToolError, UnsupportedSettingError
from .calls import Command
from .commands import Commands, Way
from .contract import CommandResult, ExecutionContext, Executor, Stat
from .environment import check_names, command_environment
from .files import Files

WINDOWS = os.name == "nt"


class LocalExecutor(Executor):
    """Runs tools on the kernel's file system.

    Args:
        processes: how the processes of a command are found: ``reaper`` (Linux) or ``groups`` (any POSIX
            system); None takes the best the system has.
    """

    name: ClassVar[str] = "local"

    def __init__(self, *, processes: Way | None = None) -> None:
        if processes not in (None, "reaper", "groups"):
            raise SettingsError("processes", f"{processes!r} is neither 'reaper' nor 'groups'")
        self._commands = Commands(processes)

    async def start(self, context: ExecutionContext) -> ExecutionContext:
        """Check what is asked for and warm up the supervisor; the paths come back absolute.

        Raises:
            UnsupportedSettingError: a limit of network or memory is asked for.
            SettingsError: the environment names what no tool may get.
            ExecutorError: this is Windows, the working directory or bash is missing, or nothing starts.
        """
        if WINDOWS:
            raise ExecutorError(
                "commands on Windows run in WSL: start Jupyter inside it (wsl --install, then jupyter lab)"
            )
        _check_limits(context)
        check_names(context.environment)
        context = context.with_(
            working_directory=context.working_directory.absolute(),
            skills_root=None if context.skills_root is None else context.skills_root.absolute(),
            allowed_paths=_absolute(context.allowed_paths),
            writable_paths=_absolute(context.writable_paths),
            read_only_paths=_absolute(context.read_only_paths),
        )
        if not await asyncio.to_thread(context.working_directory.is_dir):
            raise ExecutorError(f"{context.working_directory}: the working directory does not exist")
        _bash(command_environment(context.environment)["PATH"])
        await self._commands.start()
        return context

    async def close(self) -> None:
        """End every command and the supervisor."""
        await self._commands.close()

    async def run(
        self,
        command: str,
        context: ExecutionContext,
        *,
        timeout: float | None = None,
        on_output: Callable[[bytes], None] | None = None,
    ) -> CommandResult:
        """Run a command in a fresh bash, without standard input; see ``Executor.run``.

        Raises:
            ToolError: the command holds what no command can: NUL, or a half of a surrogate pair.
            ExecutorError: bash cannot be started, or the processes that watch it were killed.
        """
        if "\0" in command:
            raise ToolError("the command holds a NUL character")
        try:
            os.fsencode(command)
        except UnicodeEncodeError as error:
            raise ToolError("the command is not valid text") from error
        limit = context.timeout if timeout is None else timeout
        if not (math.isfinite(limit) and limit > 0):
            raise SettingsError("timeout", f"{limit!r} is no number of seconds")
        environment = command_environment(context.environment)
        request = Command(
            text=command,
            bash=_bash(environment["PATH"]),
            cwd=str(context.working_directory),
            environment=environment,
            timeout=limit,
            output_limit=context.output_limit,
        )
        return await self._commands.run(request, on_output)

    async def read(
        self, path: str, context: ExecutionContext, *, offset: int = 0, limit: int | None = None
    ) -> bytes:
        """Bytes of a file; see ``Executor.read``."""
        return await asyncio.to_thread(Files(context).read, path, offset, limit)

    async def write(
        self, path: str, data: bytes, context: ExecutionContext, *, mode: int | None = None
    ) -> None:
        """Replace or make a file; see ``Executor.write``."""
        await asyncio.to_thread(Files(context).write, path, data, mode)

    async def list(
        self, path: str, context: ExecutionContext, *, depth: int = 1, limit: int = 10_000
    ) -> list[Stat]:
        """What a folder holds; see ``Executor.list``."""
        return await asyncio.to_thread(Files(context).list, path, depth, limit)

    async def stat(self, path: str, context: ExecutionContext) -> Stat:
        """What lies at a path; see ``Executor.stat``."""
        return await asyncio.to_thread(Files(context).stat, path)

    async def delete(self, path: str, context: ExecutionContext) -> None:
        """Remove a file or an empty folder; see ``Executor.delete``."""
        await asyncio.to_thread(Files(context).delete, path)


def _check_limits(context: ExecutionContext) -> None:
    advice = "leave it unset, or run the tools in Docker"
    if context.network_access not in (None, "full"):
        raise UnsupportedSettingError(f"network_access={context.network_access}", "local", advice)
    if context.memory_limit is not None:
        raise UnsupportedSettingError("memory_limit", "local", advice)


def _absolute(paths: tuple[Path, ...]) -> tuple[Path, ...]:
    return tuple(path.absolute() for path in paths)


@functools.lru_cache
def _bash(search: str) -> str:
    """The absolute path of bash.

    Raises:
        ExecutorError: there is none.
    """
    found = shutil.which("bash", path=search)
    if found is None:
        raise ExecutorError("bash was not found on PATH; commands need it")
    return str(Path(found).absolute())
