"""Commands and files on the kernel's own machine.

File tools stay inside the context's folders, a command sees an allow-list of the environment, and everything
it started ends with it; what is not caught stands in ``reaper`` (Linux) and ``groups`` (macOS). Unless it is
asked for, there is no sandbox: a command can read and write what the user can. What one keeps stands in
``sandbox``.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ClassVar, TypeVar, get_args

from ..engine import outlast
from ..errors import ExecutorError, SettingsError, UnsupportedSettingError
from .calls import Command
from .commands import Commands, Way
from .contract import CommandResult, ExecutionContext, Executor, Stat
from .environment import check_names, command_environment
from .files import Files
from .inputs import check_command, time_limit
from .sandbox import Boxes, ConfinedFiles, Confinement, Wish

WINDOWS = os.name == "nt"
_T = TypeVar("_T")
#: Seconds for a sandbox to show that it starts.
_TRIAL = 20.0


class LocalExecutor(Executor):
    """Runs tools on the kernel's file system.

    Args:
        processes: how the processes of a command are found: ``reaper`` (Linux) or ``groups`` (any POSIX
            system); None takes the best the system has.
        sandbox: what confines commands: ``auto`` is the best that works here, or else nothing, told once;
            a kind by its name must work.
    """

    name: ClassVar[str] = "local"

    def __init__(self, *, processes: Way | None = None, sandbox: Wish = "off") -> None:
        if processes not in (None, "reaper", "groups"):
            raise SettingsError("processes", f"{processes!r} is neither 'reaper' nor 'groups'")
        if sandbox not in get_args(Wish):
            raise SettingsError("sandbox", f"{sandbox!r} is not one of {', '.join(get_args(Wish))}")
        self._commands = Commands(processes)
        self._boxes = None if sandbox == "off" else Boxes(sandbox, processes)

    @property
    def confinement(self) -> Confinement:
        """What the sandbox of the start keeps."""
        return Confinement() if self._boxes is None else self._boxes.confinement

    @property
    def confined(self) -> bool:
        """Whether neither the user's secrets nor the network can be reached."""
        return self.confinement.whole

    def shortfall(self) -> str:
        """What the sandbox asked for does not keep here."""
        return self.confinement.reason

    def describe(self) -> tuple[str, ...]:
        """What commands cannot do here, once it is started."""
        kept = self.confinement
        if kept.kind is None:
            return ()
        found = [
            "Commands run in a sandbox: they write in the working directory and in $TMPDIR only.",
            "Dot-files of the home folder, keys and .env files cannot be read.",
            "Settings of shells, git, editors and agents cannot be changed.",
        ]
        return (*found, "There is no network.") if kept.network else tuple(found)

    async def start(self, context: ExecutionContext) -> ExecutionContext:
        """Check what is asked for and warm up the supervisor; the paths come back absolute.

        Raises:
            UnsupportedSettingError: a limit is asked for that cannot be kept: of memory, or of the network
                without a sandbox.
            SettingsError: the environment names what no tool may get.
            ExecutorError: this is Windows, the working directory or bash is missing, the sandbox asked for
                does not work here, or nothing starts.
        """
        if WINDOWS:
            raise ExecutorError(
                "commands on Windows run in WSL: start Jupyter inside it (wsl --install, then jupyter lab)"
            )
        _check_limits(context, sandboxed=self._boxes is not None)
        check_names(context.environment)
        context = context.with_(
            working_directory=context.working_directory.absolute(),
            skills_root=None if context.skills_root is None else context.skills_root.absolute(),
            artifacts_root=None if context.artifacts_root is None else context.artifacts_root.absolute(),
            allowed_paths=_absolute(context.allowed_paths),
            writable_paths=_absolute(context.writable_paths),
            read_only_paths=_absolute(context.read_only_paths),
        )
        if not await asyncio.to_thread(context.working_directory.is_dir):
            raise ExecutorError(f"{context.working_directory}: the working directory does not exist")
        _bash(command_environment(context.environment)["PATH"])
        if self._boxes is not None:
            return await self._start_boxes(self._boxes, context)
        await self._commands.start()
        return context

    async def _start_boxes(self, boxes: Boxes, context: ExecutionContext) -> ExecutionContext:
        """Make the sandbox and try it: what works elsewhere may not for these folders."""
        while box := await asyncio.to_thread(boxes.start, context):
            try:
                await self.run("true", context, timeout=_TRIAL)
            except ExecutorError as error:
                failure = await asyncio.to_thread(boxes.failed, box)
                await box.close()
                if failure is not None:
                    raise failure from error
            else:
                return context
        await self._commands.start()
        return context

    async def close(self) -> None:
        """End every command, the supervisor and the sandbox."""
        await self._commands.close()
        if self._boxes is not None:
            await self._boxes.close()

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
        check_command(command)
        limit = time_limit(timeout, context)
        entered = None if self._boxes is None else await asyncio.to_thread(self._boxes.enter, context)
        if self._boxes is None or entered is None:
            return await self._commands.run(_request(command, context, limit, {}), on_output)
        box, outdated = entered
        try:
            for old in outdated:
                await old.close()
            request = _request(command, context, limit, box.environment)
            request = dataclasses.replace(request, bash=box.shell(request.bash))
            result = await box.commands.run(request, on_output)
        finally:
            leaving = asyncio.ensure_future(asyncio.to_thread(self._boxes.leave, box))
            await outlast(leaving)
            notes = leaving.result()
        return dataclasses.replace(result, notes=(*result.notes, *notes)) if notes else result

    async def _with_files(self, context: ExecutionContext, work: Callable[[Files], _T]) -> _T:
        def blocking() -> _T:
            box = None if self._boxes is None else self._boxes.find(context)
            return work(Files(context) if box is None else ConfinedFiles(context, box.plan, box.points))

        return await asyncio.to_thread(blocking)

    async def read(
        self, path: str, context: ExecutionContext, *, offset: int = 0, limit: int | None = None
    ) -> bytes:
        """Bytes of a file; see ``Executor.read``."""
        return await self._with_files(context, lambda files: files.read(path, offset, limit))

    async def write(
        self, path: str, data: bytes, context: ExecutionContext, *, mode: int | None = None
    ) -> None:
        """Replace or make a file; see ``Executor.write``."""
        await self._with_files(context, lambda files: files.write(path, data, mode))

    async def list(
        self, path: str, context: ExecutionContext, *, depth: int = 1, limit: int = 10_000
    ) -> list[Stat]:
        """What a folder holds; see ``Executor.list``."""
        return await self._with_files(context, lambda files: files.list(path, depth, limit))

    async def stat(self, path: str, context: ExecutionContext) -> Stat:
        """What lies at a path; see ``Executor.stat``."""
        return await self._with_files(context, lambda files: files.stat(path))

    async def delete(self, path: str, context: ExecutionContext) -> None:
        """Remove a file or an empty folder; see ``Executor.delete``."""
        await self._with_files(context, lambda files: files.delete(path))


def _request(command: str, context: ExecutionContext, limit: float, more: Mapping[str, str]) -> Command:
    environment = command_environment({**more, **context.environment})
    return Command(
        text=command,
        bash=_bash(environment["PATH"]),
        cwd=str(context.working_directory),
        environment=environment,
        timeout=limit,
        output_limit=context.output_limit,
    )


def _check_limits(context: ExecutionContext, *, sandboxed: bool) -> None:
    advice = "leave it unset, or run the tools in Docker"
    if context.network_access not in (None, "full", *(("none",) if sandboxed else ())):
        hint = f"use a sandbox, {advice}" if context.network_access == "none" else advice
        raise UnsupportedSettingError(f"network_access={context.network_access}", "local", hint)
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
