"""Which sandbox is taken, and what is said where there is none."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from conjure_jupyter.engine import engine
from conjure_jupyter.errors import ExecutorError, SettingsError, UnsupportedSettingError
from conjure_jupyter.executors import ExecutionContext, LocalExecutor, create_executor
from conjure_jupyter.executors.sandbox import Confinement, Kind, bubblewrap, choice, filters, landlock
from conjure_jupyter.executors.sandbox.confine import landlock_version

from ..processes import gone
from .conftest import need


@pytest.fixture
def context(tmp_path: Path) -> ExecutionContext:
    return ExecutionContext(working_directory=tmp_path, timeout=20)


@pytest.fixture
def nothing_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "trouble", lambda kind, *, network: f"no {kind} here")
    monkeypatch.setattr("conjure_jupyter.executors.sandbox.boxes._told", set())


class TestChoice:
    async def test_auto_takes_the_best(self, context: ExecutionContext) -> None:
        need("bubblewrap")
        executor = LocalExecutor(sandbox="auto")
        assert executor.confinement == Confinement()
        context = await executor.start(context.with_(network_access="none"))
        assert executor.confinement == Confinement("bubblewrap", reads=True, writes=True, network=True)
        assert executor.confined
        assert "There is no network." in executor.describe()
        await executor.close()

    async def test_the_next_where_the_best_does_not_work(
        self, context: ExecutionContext, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        need("landlock")
        monkeypatch.setattr(bubblewrap, "trouble", lambda *, network: "no namespaces")
        executor = LocalExecutor(sandbox="auto")
        await executor.start(context)
        assert (executor.confinement.kind, executor.confinement.network) == ("landlock", False)
        assert not executor.confined
        await executor.close()

    async def test_one_that_fails_for_these_folders(
        self, context: ExecutionContext, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        need("bubblewrap")
        need("landlock")
        monkeypatch.setattr(bubblewrap, "arguments", lambda *_: ["/bin/sh", "-c", "echo odd >&2; exit 1"])
        monkeypatch.setattr(choice, "_dismissed", {})
        with pytest.raises(ExecutorError, match=r"bubblewrap.*odd"):
            await LocalExecutor(sandbox="bubblewrap").start(context)
        executor = LocalExecutor(sandbox="auto")
        await executor.start(context)
        assert executor.confinement.kind == "landlock"
        await executor.close()

    @pytest.mark.usefixtures("nothing_works")
    async def test_none_is_said_once(
        self, context: ExecutionContext, caplog: pytest.LogCaptureFixture
    ) -> None:
        for _ in range(2):
            executor = LocalExecutor(sandbox="auto")
            await executor.start(context)
            assert (await executor.run("echo hi", context)).text == "hi\n"
            assert executor.confinement == Confinement(reason="no bubblewrap here; no landlock here")
            assert (executor.confined, executor.describe()) == (False, ())
            await executor.close()
        assert [record.message for record in caplog.records] == [
            "local commands are not confined: no bubblewrap here; no landlock here"
        ]

    @pytest.mark.usefixtures("nothing_works")
    async def test_no_network_is_not_promised_without_one(self, context: ExecutionContext) -> None:
        with pytest.raises(UnsupportedSettingError, match=r"no bubblewrap here.*Docker"):
            await LocalExecutor(sandbox="auto").start(context.with_(network_access="none"))

    @pytest.mark.usefixtures("nothing_works")
    @pytest.mark.parametrize("name", ["bubblewrap", "landlock", "seatbelt"])
    async def test_by_name_it_must_work(self, context: ExecutionContext, name: Kind) -> None:
        with pytest.raises(ExecutorError, match=f"sandbox='{name}': no {name} here; .*auto"):
            await LocalExecutor(sandbox=name).start(context)

    async def test_settings_that_cannot_be_kept(self, context: ExecutionContext, kind: Kind) -> None:
        changes: list[dict[str, Any]] = [{"network_access": "limited"}, {"memory_limit": 1 << 30}]
        for change in changes:
            with pytest.raises(UnsupportedSettingError, match="Docker"):
                await LocalExecutor(sandbox=kind).start(context.with_(**change))

    def test_names(self) -> None:
        assert isinstance(create_executor("local", sandbox="auto"), LocalExecutor)
        with pytest.raises(SettingsError, match="'jail' is not one of off, auto"):
            create_executor("local", sandbox="jail")


class TestTrials:
    def test_bubblewrap_that_is_missing_or_fails(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bubblewrap.trouble.cache_clear()
        monkeypatch.setenv("PATH", str(tmp_path))
        assert bubblewrap.trouble(network=True) == "bubblewrap (bwrap) is not installed"
        (tmp_path / "bwrap").write_text("#!/bin/sh\necho setting up uid map: Permission denied >&2\nexit 1\n")
        (tmp_path / "bwrap").chmod(0o755)
        bubblewrap.trouble.cache_clear()
        assert bubblewrap.trouble(network=True) == (
            "bubblewrap does not work here: setting up uid map: Permission denied"
        )
        bubblewrap.trouble.cache_clear()

    @pytest.mark.parametrize("version", [0, 2])
    def test_landlock_that_is_missing_or_old(self, version: int, monkeypatch: pytest.MonkeyPatch) -> None:
        landlock.trouble.cache_clear()
        monkeypatch.setattr(landlock, "landlock_version", lambda: version)
        said = landlock.trouble()
        landlock.trouble.cache_clear()
        assert said is not None
        assert ("switched off" if version == 0 else "version 2") in said

    def test_landlock_says_its_version(self) -> None:
        assert landlock_version() >= 0

    @pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
    def test_filters_stay_in_their_bounds(self, machine: str) -> None:
        """Every jump leads to an instruction, and the last one returns."""
        for families in ((), (filters.AF_UNIX, filters.AF_INET)):
            code = filters.program(machine, families)
            count = len(code) // 8
            for index in range(count):
                operation, jump_true, jump_false = code[index * 8], code[index * 8 + 2], code[index * 8 + 3]
                if operation & 0x07 == 0x05:
                    assert index + 1 + max(jump_true, jump_false) < count
            assert code[-8] == 0x06
        assert not filters.known("riscv64")


class TestLife:
    async def test_it_is_used_again(self, kind: Kind, context: ExecutionContext) -> None:
        executor = LocalExecutor(sandbox=kind)
        first = (await executor.run("echo $PPID; echo x > $TMPDIR/kept", context)).text
        assert (await executor.run("echo $PPID", context)).text == first
        await executor.close()

    async def test_entries_of_the_home_folder_made_later(self, kind: Kind, context: ExecutionContext) -> None:
        executor = LocalExecutor(sandbox=kind)
        await executor.run("echo kept > $TMPDIR/kept", context)
        path = Path(os.environ["HOME"]) / "later.txt"
        path.write_text("later\n")
        assert (
            await executor.run(f"cat {path} ~/later.txt $TMPDIR/kept", context)
        ).text == "later\nlater\nkept\n"
        await executor.close()

    async def test_other_folders_have_a_sandbox_of_their_own(
        self, kind: Kind, context: ExecutionContext, tmp_path: Path
    ) -> None:
        executor = LocalExecutor(sandbox=kind)
        await executor.start(context)
        for number in range(5):
            folder = tmp_path / f"sub{number}"
            folder.mkdir()
            narrower = context.with_(working_directory=folder)
            await executor.run("echo 1 > f; echo 2 > ../g", narrower)
            assert ((folder / "f").exists(), (tmp_path / "g").exists()) == (True, False)
        assert executor._boxes is not None
        assert len(executor._boxes._boxes) <= 4
        await executor.close()

    async def test_death_between_calls(self, kind: Kind, context: ExecutionContext) -> None:
        executor = LocalExecutor(sandbox=kind)
        await executor.run("true", context)
        assert executor._boxes is not None
        box = executor._boxes.find(context)
        assert box is not None
        assert box.commands.pid is not None
        os.kill(box.commands.pid, signal.SIGKILL)
        async with asyncio.timeout(10):
            while box.commands.pid is not None:  # noqa: ASYNC110  the end of a process sets no event
                await asyncio.sleep(0.01)
        assert (await executor.run("echo again", context)).text == "again\n"
        await executor.close()

    @pytest.mark.parametrize("number", ["KILL", "STOP"])
    async def test_a_command_that_ends_or_stops_its_worker(
        self, kind: Kind, context: ExecutionContext, number: str
    ) -> None:
        executor = LocalExecutor(sandbox=kind)
        other = asyncio.create_task(executor.run("sleep 3; echo other", context))
        token = f"worker-{secrets.token_hex(6)}"
        command = (
            f'bash -c "exec -a {token} sleep 300" & echo begun; kill -{number} $PPID; sleep 300; : {token}'
        )
        call = executor.run(command, context, timeout=0.3)
        if number == "STOP":
            result = await call
            assert (result.timed_out, result.output) == (True, b"begun\n")
        else:
            with pytest.raises(ExecutorError, match="killed"):
                await call
        assert gone(token)
        assert (await other).text == "other\n"
        assert (await executor.run("echo again", context)).text == "again\n"
        await executor.close()

    def test_a_new_event_loop(self, kind: Kind, context: ExecutionContext) -> None:
        executor = LocalExecutor(sandbox=kind)
        for word in ("one", "two"):
            assert asyncio.run(executor.run(f"echo {word}", context)).text == word + "\n"
        asyncio.run(executor.close())

    def test_a_fork_has_its_own(self, kind: Kind, context: ExecutionContext) -> None:
        executor = LocalExecutor(sandbox=kind)
        engine().run(executor.run("echo mine > $TMPDIR/f", context))
        child = os.fork()
        if child == 0:
            status = 1
            try:
                done = engine().run(executor.run("cat $TMPDIR/f; echo theirs", context))
                engine().run(executor.close())
                status = 0 if done.text.endswith("theirs\n") and "mine" not in done.text else 2
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert engine().run(executor.run("cat $TMPDIR/f", context)).text == "mine\n"
        engine().run(executor.close())

    async def test_python_is_the_kernel_s(self, kind: Kind, context: ExecutionContext) -> None:
        executor = LocalExecutor(sandbox=kind)
        result = await executor.run("python -c 'import sys, pytest; print(sys.prefix)'", context)
        assert result.text == sys.prefix + "\n"
        await executor.close()
