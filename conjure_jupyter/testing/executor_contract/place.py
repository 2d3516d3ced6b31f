"""Where a test runs: a started executor, and a folder of the test's own to work in."""

from __future__ import annotations

import asyncio
import builtins
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from ...errors import PathNotFoundError
from ...executors import CommandResult, ExecutionContext, Executor, Stat
from ..checks import equal, true

#: Seconds that a test waits for what a command does.
PATIENCE = 15.0

#: Counts what holds a token, given in two halves so that the look does not find itself. Zombies have neither
#: a command line nor an environment any more; where there is no /proc, ps must do.
_LOOK = """\
if test -e /proc/self/cmdline; then
    printf %s {first}{rest} | LC_ALL=C grep -alFf - /proc/[0-9]*/{{cmdline,environ}} 2>/dev/null
else
    ps -Axww -o command | {{ read -r; grep -F "$(printf %s {first}'' {rest})"; }}
fi
true
"""


@dataclass(frozen=True, slots=True)
class Place:
    """A started executor with the context of one test.

    Attributes:
        executor: it is shared by the tests of a class; none of them ends it.
        started: what ``start`` returned.
        context: the same, with a new folder in the working directory to work in; ``locked`` in it, once a
            test makes it, may not be written.
        name: the new folder's.
    """

    executor: Executor
    started: ExecutionContext
    context: ExecutionContext
    name: str

    @classmethod
    async def new(cls, executor: Executor, started: ExecutionContext) -> Place:
        """A place of its own for a test."""
        name = f"t-{secrets.token_hex(4)}"
        made = await executor.run(f"mkdir {name}", started, timeout=PATIENCE)
        equal((made.exit_code, made.text), (0, ""), "a folder for the test")
        folder = started.working_directory / name
        context = started.with_(
            working_directory=folder, read_only_paths=(*started.read_only_paths, folder / "locked")
        )
        return cls(executor, started, context, name)

    @property
    def readable(self) -> Path:
        """A folder that holds ``note.txt`` and may be read only."""
        return self.started.allowed_paths[0]

    @property
    def writable(self) -> Path:
        """A folder besides the working directory that may be written."""
        return self.started.writable_paths[0]

    @property
    def skills(self) -> Path:
        """The folder of skills, which holds ``sums/SKILL.md``."""
        root = self.started.skills_root
        if root is None:
            raise AssertionError("start() lost the folder of the skills")
        return root

    @property
    def outside(self) -> Path:
        """A file that ``make_outside`` makes, out of reach of the test's context."""
        return self.started.working_directory / f"{self.name}-outside" / "secret.txt"

    def relative(self, path: Path) -> str:
        """A path as seen from the working directory."""
        return os.path.relpath(path, self.context.working_directory)

    async def run(self, command: str, timeout: float = 20.0, **changes: object) -> CommandResult:
        """Run a command, the context changed for it."""
        return await self.executor.run(command, self.context.with_(**changes), timeout=timeout)

    async def text(self, command: str) -> str:
        """What a command prints; it must succeed."""
        result = await self.run(command)
        equal(result.exit_code, 0, (command[:200], result.text[-500:]))
        return result.text

    async def read(self, path: str | Path, *, offset: int = 0, limit: int | None = None) -> bytes:
        """See ``Executor.read``."""
        return await self.executor.read(str(path), self.context, offset=offset, limit=limit)

    async def write(self, path: str | Path, data: bytes = b"", *, mode: int | None = None) -> None:
        """See ``Executor.write``."""
        await self.executor.write(str(path), data, self.context, mode=mode)

    async def stat(self, path: str | Path) -> Stat:
        """See ``Executor.stat``."""
        return await self.executor.stat(str(path), self.context)

    async def list(self, path: str | Path, *, depth: int = 1, limit: int = 10_000) -> builtins.list[Stat]:
        """See ``Executor.list``."""
        return await self.executor.list(str(path), self.context, depth=depth, limit=limit)

    async def names(self, path: str | Path = ".") -> builtins.list[str]:
        """What a folder holds, by name."""
        return [entry.path for entry in await self.list(path)]

    async def delete(self, path: str | Path) -> None:
        """See ``Executor.delete``."""
        await self.executor.delete(str(path), self.context)

    async def make_outside(self) -> None:
        """Make a file that the context does not allow; see ``outside``."""
        await self.executor.write(str(self.outside), b"secret", self.started)

    async def make_locked(self) -> None:
        """Make a folder that may not be written, with a file in it."""
        await self.executor.write(f"{self.name}/locked/kept.txt", b"kept", self.started)

    async def until(self, path: str) -> None:
        """Wait until a command has made a file."""
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    await self.stat(path)
                except PathNotFoundError:
                    await asyncio.sleep(0.02)
                else:
                    return

    async def expect_gone(self, token: str) -> None:
        """Check that no process holds the token: where commands run, and on this machine.

        Both, because an executor may show a command nothing but its own processes.
        """
        true(not await asyncio.to_thread(_alive_here, token), f"nothing with {token} lives on this machine")
        look = _LOOK.format(first=f"'{token[:4]}'", rest=f"'{token[4:]}'")
        equal(await self.text(look), "", "what outlived its command")


def _alive_here(token: str) -> list[int]:
    """Processes of this machine that hold the token; none where it has no /proc."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            seen = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
        except OSError:
            continue
        if token.encode() in seen and folder.name != str(os.getpid()):
            found.append(int(folder.name))
    return found
