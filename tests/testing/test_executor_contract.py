"""The public suite of executors finds what is wrong with one."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from conjure_jupyter.executors import CommandResult, ExecutionContext, LocalExecutor
from conjure_jupyter.testing import ExecutorContract
from tests.executors.processes import alive

#: Marks the processes of these tests: what the executor below leaves behind is ended here.
TOKEN = secrets.token_hex(8)


class Naive(LocalExecutor):
    """Runs a command as the standard library's manual shows it, and trusts paths."""

    async def run(self, command: str, context: ExecutionContext, **options: Any) -> CommandResult:
        limit = options.get("timeout") or context.timeout
        begun = asyncio.get_running_loop().time()
        code: int | None = None
        try:
            done = await asyncio.to_thread(
                subprocess.run,
                ["bash", "-c", command],
                cwd=context.working_directory,
                env={**os.environ, "NAIVE": TOKEN},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=limit,
                check=False,
            )
            output, code = done.stdout, done.returncode
        except subprocess.TimeoutExpired as error:
            output = error.stdout or b""
        took = asyncio.get_running_loop().time() - begun
        return CommandResult(output, code, code is None, took, total_bytes=len(output))

    async def read(self, path: str, context: ExecutionContext, **options: Any) -> bytes:
        return await asyncio.to_thread((context.working_directory / path).read_bytes)

    async def write(self, path: str, data: bytes, context: ExecutionContext, **options: Any) -> None:
        where = context.working_directory / path

        def write() -> None:
            where.parent.mkdir(parents=True, exist_ok=True)
            where.write_bytes(data)

        await asyncio.to_thread(write)


class NaiveContract(ExecutorContract):
    def make_executor(self) -> LocalExecutor:
        return Naive()


@pytest.fixture(scope="module")
def contract():
    yield NaiveContract()
    NaiveContract.teardown_class()
    for pid in alive(TOKEN):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(
    "check",
    [
        NaiveContract.test_no_output,
        NaiveContract.test_unicode,
        NaiveContract.test_parent_folders_are_made,
        NaiveContract.test_list,
    ],
    ids=lambda check: check.__name__,
)
def test_what_it_does_rightly_is_let_pass(
    contract: NaiveContract, check: Callable[[NaiveContract], None]
) -> None:
    check(contract)


@pytest.mark.parametrize(
    "check",
    [
        NaiveContract.test_secrets_of_this_process_are_not_seen,
        NaiveContract.test_environment_of_the_context,
        NaiveContract.test_long_command,
        NaiveContract.test_death_by_a_signal_is_no_timeout,
        NaiveContract.test_head_and_tail_are_kept,
        NaiveContract.test_leftovers_are_counted,
        NaiveContract.test_escape_setsid,
        NaiveContract.test_escape_background_then_exit,
        NaiveContract.test_outside,
        NaiveContract.test_links_that_lead_outside,
        NaiveContract.test_a_read_only_folder_inside,
        NaiveContract.test_a_reader_sees_old_or_new,
        NaiveContract.test_missing,
        NaiveContract.test_modes_are_kept,
    ],
    ids=lambda check: check.__name__,
)
def test_what_it_does_wrongly_is_found(
    contract: NaiveContract, check: Callable[[NaiveContract], None]
) -> None:
    with pytest.raises((AssertionError, OSError)):
        check(contract)
