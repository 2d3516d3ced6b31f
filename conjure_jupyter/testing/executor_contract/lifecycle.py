"""Starting, closing, and the limits that a context asks for."""

from __future__ import annotations

import asyncio
import shutil
import socket

from ...errors import ExecutorError, UnsupportedSettingError
from ...executors import ExecutionContext
from ..checks import equal, expecting, true
from .endings import new_token
from .place import Place
from .suite import Suite, alone, check

#: Bytes that a command may use in the test of that limit.
LITTLE = 256 << 20


class LifecycleChecks(Suite):
    """Start, close and limits."""

    @check
    async def test_closing_twice(self, place: Place) -> None:
        """Before the start, and again after the end."""
        await self.make_executor().close()
        async with self.fresh() as other:
            equal(await other.text("echo here"), "here\n")
            await other.executor.close()
            await other.executor.close()
        equal(await place.text("echo still here"), "still here\n")

    @check
    async def test_closing_ends_what_runs(self, place: Place) -> None:
        """The caller hears of it, and nothing is left."""
        token = new_token()
        async with self.fresh() as other:
            command = f"bash -c 'exec -a {token} sleep 300' & touch begun; : {token}; wait"
            running = asyncio.create_task(other.run(command))
            await other.until("begun")
            await other.executor.close()
            with expecting(ExecutorError):
                await running
        await place.expect_gone(token)

    @check
    async def test_two_at_the_same_time(self, place: Place) -> None:
        """Each has its own folder."""
        async with self.fresh() as other:
            await asyncio.gather(place.write("f", b"one"), other.write("f", b"two"))
            equal(await asyncio.gather(place.read("f"), other.read("f")), [b"one", b"two"])

    @alone
    async def test_a_restart_keeps_the_files(self) -> None:
        """Another executor over the same folders finds what the first one left."""
        folder, context = self.new_context()
        for expected in ("", "1"):
            executor = self.make_executor()
            try:
                started = await executor.start(context)
                seen = await executor.run("cat kept 2>/dev/null; printf 1 > kept", started)
                equal(seen.text, expected)
            finally:
                await executor.close()
        if self.shares_files:
            equal((folder / "work" / "kept").read_text(), "1")
        shutil.rmtree(folder, ignore_errors=True)

    @alone
    async def test_where_the_paths_will_be_is_known_before_the_start(self) -> None:
        """``located`` and ``start`` agree."""
        folder, context = self.new_context()
        executor = self.make_executor()
        located = executor.located(context)
        try:
            started = await executor.start(context)
        finally:
            await executor.close()
            shutil.rmtree(folder, ignore_errors=True)
        equal(_paths(located), _paths(started))

    @alone
    async def test_no_network_is_enforced_or_refused(self) -> None:
        """Never taken and ignored."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            try:
                async with self.fresh(network_access="none") as other:
                    result = await other.run(f"echo > /dev/tcp/127.0.0.1/{port}")
            except UnsupportedSettingError:
                return
        true(result.exit_code != 0, "a command reached this machine")

    @alone
    async def test_a_memory_limit_is_enforced_or_refused(self) -> None:
        """Never taken and ignored."""
        try:
            async with self.fresh(memory_limit=LITTLE) as other:
                # tail keeps all of it: there is no line to end it at
                result = await other.run(f"head -c {2 * LITTLE} /dev/zero | tail | wc -c")
                after = await other.run("echo still here")
        except UnsupportedSettingError:
            return
        true(result.text.strip() != str(2 * LITTLE), "a command used twice as much")
        equal(after.text, "still here\n")


def _paths(context: ExecutionContext) -> tuple[object, ...]:
    lists = context.allowed_paths, context.writable_paths, context.read_only_paths
    return context.working_directory, context.skills_root, *lists
