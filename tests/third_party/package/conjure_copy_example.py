"""An executor whose tools work on a copy of the working directory.

What they made or changed is brought back when it closes, and nothing before that: a notebook that is
interrupted leaves the folder as it was. What they deleted is not deleted there.
"""

from __future__ import annotations

import asyncio
import builtins
import logging
import secrets
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from conjure_jupyter import CommandResult, ExecutionContext, Executor, LocalExecutor, Stat
from conjure_jupyter.errors import ExecutorError

_log = logging.getLogger(__name__)


class CopyExecutor(Executor):
    """Runs tools on this machine, on a copy of the working directory.

    Args:
        folder: where the copy is made; the system's folder for temporary files when None.
    """

    name: ClassVar[str] = "copy"

    def __init__(self, folder: str | None = None) -> None:
        self._local = LocalExecutor()
        self._copy = (
            Path(tempfile.gettempdir() if folder is None else folder) / f"copy-{secrets.token_hex(8)}"
        )
        self._original: Path | None = None

    def located(self, context: ExecutionContext) -> ExecutionContext:
        """The working directory, and what lies in it, is elsewhere; the rest is where it was."""
        original = context.working_directory.absolute()

        def moved(path: Path) -> Path:
            path = path.absolute()
            return self._copy / path.relative_to(original) if path.is_relative_to(original) else path

        return context.with_(
            working_directory=self._copy,
            skills_root=None if context.skills_root is None else moved(context.skills_root),
            allowed_paths=tuple(map(moved, context.allowed_paths)),
            writable_paths=tuple(map(moved, context.writable_paths)),
            read_only_paths=tuple(map(moved, context.read_only_paths)),
        )

    async def start(self, context: ExecutionContext) -> ExecutionContext:
        """Make the copy."""
        try:
            await asyncio.to_thread(_copy, context.working_directory, self._copy)
        except OSError as error:
            raise ExecutorError(f"{context.working_directory} cannot be copied: {error}") from error
        self._original = context.working_directory.absolute()
        return await self._local.start(self.located(context))

    async def close(self) -> None:
        """Bring the changes back and remove the copy."""
        await self._local.close()
        original, self._original = self._original, None
        if original is None:
            return
        try:
            await asyncio.to_thread(_copy, self._copy, original)
        except OSError:
            _log.exception("changes in %s could not be brought back", self._copy)
        else:
            await asyncio.to_thread(shutil.rmtree, self._copy, ignore_errors=True)

    async def run(
        self,
        command: str,
        context: ExecutionContext,
        *,
        timeout: float | None = None,
        on_output: Callable[[bytes], None] | None = None,
    ) -> CommandResult:
        """Run a command in the copy."""
        return await self._local.run(command, context, timeout=timeout, on_output=on_output)

    async def read(
        self, path: str, context: ExecutionContext, *, offset: int = 0, limit: int | None = None
    ) -> bytes:
        """Bytes of a file of the copy."""
        return await self._local.read(path, context, offset=offset, limit=limit)

    async def write(
        self, path: str, data: bytes, context: ExecutionContext, *, mode: int | None = None
    ) -> None:
        """Replace or make a file of the copy."""
        await self._local.write(path, data, context, mode=mode)

    async def list(
        self, path: str, context: ExecutionContext, *, depth: int = 1, limit: int = 10_000
    ) -> builtins.list[Stat]:
        """What a folder of the copy holds."""
        return await self._local.list(path, context, depth=depth, limit=limit)

    async def stat(self, path: str, context: ExecutionContext) -> Stat:
        """What lies at a path of the copy."""
        return await self._local.stat(path, context)

    async def delete(self, path: str, context: ExecutionContext) -> None:
        """Remove a file or an empty folder of the copy."""
        await self._local.delete(path, context)


def _copy(source: Path, target: Path) -> None:
    """Copy a folder into another, links as links; pipes, sockets and devices stay where they are."""

    def special(folder: str, names: builtins.list[str]) -> set[str]:
        paths = [Path(folder, name) for name in names]
        return {path.name for path in paths if not (path.is_symlink() or path.is_file() or path.is_dir())}

    # A link is replaced by removing it first: copytree would follow one that lies at the target.
    for path in source.rglob("*"):
        there = target / path.relative_to(source)
        if there.is_symlink():
            there.unlink()
    shutil.copytree(source, target, symlinks=True, ignore=special, dirs_exist_ok=True)
