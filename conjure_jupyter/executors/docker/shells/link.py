"""``ShellLink``: calls over attached shells."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from pathlib import Path

from ....errors import ContainerError, ToolError
from ....paths.walk import OUTSIDE, check_text
from ....wording import size_text
from ...contract import CommandResult, ExecutionContext, Stat
from ..link import Link, LinkLostError
from . import listing
from .pool import Pool
from .refusals import refusal
from .running import Runs
from .shell import NO_ANSWER, Attach, Collected

#: Bytes read at once when no limit is given; a larger file is refused.
LARGEST = 1 << 30
#: Bytes of one entry of a listing: a path, and what is said of it.
ENTRY = 4400
#: Times that a file call is tried: its shell may have ended while it waited.
TRIES = 3
_NOT_WRITABLE = "outside the folders that may be written"


class ShellLink(Link):
    """Calls over a pool of attached shells, for images with bash and without Python.

    The image needs bash (4.4 or later) and coreutils or busybox. Each shell serves one call; others are
    started ahead. File calls keep the rules of the local ones with one exception: where a command swaps a
    folder for a link while a file call walks through it, the call may be led elsewhere *in the container*,
    which is what the command could do by itself. Renames are whole, but only a file's own content is synced.

    Found and ended with a command: all in its session, below it, or with its marker in the environment; and,
    once no other command runs, every process of the tools' user that was orphaned after the link was opened.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._runs = Runs(pool)

    @classmethod
    async def open(cls, attach: Attach, *, spare: int = 2) -> ShellLink:
        """Start the first shells.

        Args:
            attach: starts a process in the container, as the tools' user.
            spare: how many shells wait for a call.

        Raises:
            ContainerError: bash cannot be started there.
        """
        pool = Pool(attach, max(1, spare))
        link = cls(pool)
        try:
            pool.fill()
            await link._runs.survey()
        except LinkLostError as error:
            await pool.close()
            raise ContainerError(error.message, error.container_id) from error
        except BaseException:
            await pool.close()
            raise
        return link

    @property
    def lost(self) -> bool:
        """Whether no shell can be started any more."""
        return self._pool.lost

    async def run(
        self,
        command: str,
        context: ExecutionContext,
        *,
        timeout: float,
        on_output: Callable[[bytes], None] | None = None,
    ) -> CommandResult:
        """Run a command; see ``Executor.run``."""
        return await self._runs.run(command, context, timeout=timeout, on_output=on_output)

    async def read(self, path: str, context: ExecutionContext, *, offset: int, limit: int | None) -> bytes:
        """Bytes of a file; see ``Executor.read``. Without a limit it may be 1 GB long."""
        most = LARGEST + 1 if limit is None else limit
        data = await self._file("read", path, context, [str(offset), str(most)], most=most)
        if limit is None and len(data) > LARGEST:
            raise ToolError(f"{path}: longer than {size_text(LARGEST)}; read it in parts")
        return data

    async def write(self, path: str, data: bytes, context: ExecutionContext, *, mode: int | None) -> None:
        """Replace or make a file; see ``Executor.write``."""
        plain = path.rstrip("/") or "/"
        arguments = [
            "folder" if path.endswith("/") else "",
            "" if mode is None else f"{mode & 0o7777:o}",
            str(len(data)),
            f".conjure-{secrets.token_hex(8)}.tmp",
        ]
        await self._file("write", path, context, arguments, plain=plain, data=data)

    async def list(self, path: str, context: ExecutionContext, *, depth: int, limit: int) -> list[Stat]:
        """What a folder holds; see ``Executor.list``."""
        end = secrets.token_hex(16)
        most = limit * ENTRY
        said = await self._file("list", path, context, [str(depth), str(limit), end], most=most)
        found = listing.parse(said, end.encode())
        return sorted(found, key=lambda entry: entry.path)

    async def stat(self, path: str, context: ExecutionContext) -> Stat:
        """What lies at a path; see ``Executor.stat``."""
        end = secrets.token_hex(16)
        said = await self._file("stat", path, context, [end], most=ENTRY)
        found = listing.parse(said, end.encode())
        if len(found) != 1:
            raise LinkLostError(NO_ANSWER)
        one = found[0]
        return Stat(path, one.kind, one.size, one.mtime_ns, one.mode)

    async def delete(self, path: str, context: ExecutionContext) -> None:
        """Remove a file or an empty folder; see ``Executor.delete``."""
        await self._file("delete", path, context, [], plain=path.rstrip("/") or path)

    async def close(self) -> None:
        """End what runs and let go. May be called twice. Never raises."""
        await self._runs.close()
        await self._pool.close()

    async def _file(
        self,
        name: str,
        path: str,
        context: ExecutionContext,
        arguments: Sequence[str],
        *,
        plain: str | None = None,
        data: bytes = b"",
        most: int = 0,
    ) -> bytes:
        """Make a file call; what the shell printed, at most ``most`` bytes."""
        check_text(path)
        changes = name in ("write", "delete")
        fields = [name, *_folders(context, changes), path if plain is None else plain, *arguments]
        for last in (False,) * (TRIES - 1) + (True,):
            found = Collected(most)
            try:
                async with self._pool.shell() as shell:
                    words = await shell.call(fields, data=data, sink=found.add)
            except LinkLostError:
                if last or self._pool.lost:
                    raise
                continue
            if words != ["done"]:
                raise refusal(path, words[1:], _NOT_WRITABLE if changes else OUTSIDE)
            return bytes(found.data)
        raise AssertionError


def _folders(context: ExecutionContext, changes: bool) -> list[str]:
    """The folders that a call may touch, and those in them that may not be written; each after its number."""
    roots: list[Path] = [context.working_directory, *context.writable_paths]
    if not changes:
        roots += context.allowed_paths
        roots += () if context.skills_root is None else (context.skills_root,)
    locked = context.read_only_paths if changes else ()
    return [str(len(roots)), *map(str, roots), str(len(locked)), *map(str, locked)]
