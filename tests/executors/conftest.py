"""The executors that the conformance suite runs over; one more line and it runs over another."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from conjure_jupyter.executors import CommandResult, ExecutionContext, Executor, LocalExecutor

KINDS: dict[str, Callable[[], Executor]] = {
    "local": lambda: LocalExecutor(processes="reaper"),
    "local-groups": lambda: LocalExecutor(processes="groups"),
}


@dataclass
class Place:
    """A started executor with its context; ``workspace`` is the working directory on this machine."""

    executor: Executor
    context: ExecutionContext
    workspace: Path

    async def run(self, command: str, timeout: float = 20.0, **changes: object) -> CommandResult:
        return await self.executor.run(command, self.context.with_(**changes), timeout=timeout)

    async def text(self, command: str) -> str:
        result = await self.run(command)
        assert result.exit_code == 0, result.text
        return result.text


@pytest.fixture(params=sorted(KINDS))
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    workspace = tmp_path / "work"
    readable = tmp_path / "readable"
    writable = tmp_path / "writable"
    locked = workspace / "locked"
    for folder in (workspace, readable, writable, locked, tmp_path / "outside"):
        folder.mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("secret")
    (readable / "note.txt").write_text("note")
    (locked / "kept.txt").write_text("kept")
    executor = KINDS[request.param]()
    context = await executor.start(
        ExecutionContext(
            working_directory=workspace,
            allowed_paths=(readable,),
            writable_paths=(writable,),
            read_only_paths=(locked,),
            environment={"GIVEN": "yes"},
        )
    )
    yield Place(executor, context, workspace)
    await executor.close()
