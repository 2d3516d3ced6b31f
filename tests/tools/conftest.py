"""A toolbox over a real folder, with the local executor."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from conjure_jupyter.executors.contract import ExecutionContext, Executor
from conjure_jupyter.executors.local import LocalExecutor
from conjure_jupyter.tools import Toolbox
from conjure_jupyter.types import ToolCall, ToolResult

from .sessions import Session

Run = Callable[..., Awaitable[ToolResult]]


def call(name: str, /, call_id: str = "toolu_1", **arguments: Any) -> ToolCall:
    return ToolCall(call_id, name, arguments)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
async def executor(work: Path) -> AsyncIterator[Executor]:
    # Not started: files need no process, and the first command starts what commands need.
    executor = LocalExecutor()
    yield executor
    await executor.close()


@pytest.fixture
def context(work: Path) -> ExecutionContext:
    return ExecutionContext(work, skills_root=work / "skills", timeout=10)


@pytest.fixture
def toolbox(executor: Executor, context: ExecutionContext) -> Toolbox:
    return Toolbox(executor, context)


@pytest.fixture
def run(toolbox: Toolbox) -> Run:
    """Call a tool by name: ``await run("view", path="a.txt")``."""

    async def run(name: str, /, **arguments: Any) -> ToolResult:
        return await toolbox.execute(call(name, **arguments))

    return run


@pytest.fixture
def session(tmp_path: Path, work: Path) -> Session:
    return Session(tmp_path, work)


@pytest.fixture
def use(session: Session, executor: Executor, context: ExecutionContext) -> Run:
    """Call a tool where there are artifacts."""
    toolbox = Toolbox(executor, context, artifacts=session.service)

    async def use(name: str, /, **arguments: Any) -> ToolResult:
        return await toolbox.execute(call(name, **arguments))

    return use
