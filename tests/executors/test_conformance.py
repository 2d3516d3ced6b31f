"""The public suite over every way to run tools on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from conjure_jupyter.executors import ExecutionContext, Executor, LocalExecutor
from conjure_jupyter.testing.executor_contract import ExecutorContract


class TestReaper(ExecutorContract):
    def make_executor(self) -> Executor:
        return LocalExecutor(processes="reaper")


class TestGroups(ExecutorContract):
    def make_executor(self) -> Executor:
        return LocalExecutor(processes="groups")


async def test_a_failing_listener_is_told_to_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def listen(data: bytes) -> None:
        raise ValueError("no")

    executor = LocalExecutor()
    context = await executor.start(ExecutionContext(working_directory=tmp_path))
    try:
        await executor.run("seq 1 3", context, on_output=listen)
    finally:
        await executor.close()
    assert "listener" in caplog.text
