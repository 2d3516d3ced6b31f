"""What is the local executor's own: its supervisor, its environment, its start, and how others are found."""

from __future__ import annotations

import asyncio
import os
import resource
import secrets
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from conjure_jupyter.engine import engine
from conjure_jupyter.errors import ExecutorError, SettingsError, UnsupportedSettingError
from conjure_jupyter.executors import ExecutionContext, LocalExecutor, create_executor
from conjure_jupyter.executors.environment import command_environment, python_folders

from .processes import alive, gone, open_descriptors, until


@pytest.fixture(params=["reaper", "groups"])
async def local(request: pytest.FixtureRequest) -> AsyncIterator[LocalExecutor]:
    executor = LocalExecutor(processes=request.param)
    yield executor
    await executor.close()


@pytest.fixture
def context(tmp_path: Path) -> ExecutionContext:
    return ExecutionContext(working_directory=tmp_path, timeout=20)


def token() -> str:
    return f"local-{secrets.token_hex(6)}"


class TestSupervisor:
    async def test_it_is_used_again(self, local: LocalExecutor, context: ExecutionContext) -> None:
        one = (await local.run("echo $PPID", context)).text
        assert (await local.run("echo $PPID", context)).text == one

    async def test_its_death_between_calls(self, local: LocalExecutor, context: ExecutionContext) -> None:
        await local.run("true", context)
        pid = local._commands.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        assert (await local.run("echo again", context)).output == b"again\n"

    async def test_its_death_during_a_call_lets_the_call_end(
        self, local: LocalExecutor, context: ExecutionContext
    ) -> None:
        await local.start(context)
        pid = local._commands.pid
        result = await local.run(f"kill -9 {pid}; sleep 0.2; echo done", context)
        assert result.output == b"done\n"
        assert (await local.run("echo again", context)).output == b"again\n"

    async def test_death_of_an_idle_worker(self, local: LocalExecutor, context: ExecutionContext) -> None:
        worker = int((await local.run("echo $PPID", context)).text)
        os.kill(worker, signal.SIGKILL)
        assert (await local.run("echo again", context)).output == b"again\n"

    async def test_a_command_that_kills_its_worker(
        self, local: LocalExecutor, context: ExecutionContext
    ) -> None:
        mark = token()
        command = (
            f'setsid bash -c "exec -a {mark} sleep 300" & echo begun; sleep 0.1; kill -9 $PPID; sleep 300'
        )
        with pytest.raises(ExecutorError, match="killed"):
            await local.run(command, context.with_(environment={"MARK": mark}))
        assert gone(mark, within=0)
        assert (await local.run("echo again", context)).output == b"again\n"

    async def test_a_command_that_stops_its_worker(
        self, local: LocalExecutor, context: ExecutionContext
    ) -> None:
        mark = token()
        command = f"echo begun; kill -STOP $PPID; sleep 300; : {mark}"
        result = await local.run(command, context, timeout=0.3)
        assert (result.timed_out, result.output) == (True, b"begun\n")
        assert gone(mark, within=0)
        assert (await local.run("echo again", context)).output == b"again\n"

    async def test_closing_ends_what_runs(self, local: LocalExecutor, context: ExecutionContext) -> None:
        mark = token()
        running = asyncio.create_task(local.run(f"touch begun; sleep 300; : {mark}", context))
        await until(context.working_directory / "begun")
        pid = local._commands.pid
        await local.close()
        with pytest.raises(ExecutorError, match="closed"):
            await running
        assert gone(mark, within=0)
        assert pid is not None
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)

    async def test_it_holds_none_of_our_secrets(
        self, local: LocalExecutor, context: ExecutionContext, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
        result = await local.run("cat /proc/$PPID/environ | tr '\\0' '\\n'", context)
        assert "PATH=" in result.text
        assert "sk-secret" not in result.text

    async def test_descriptors(self, local: LocalExecutor, context: ExecutionContext) -> None:
        await local.run("true", context)
        leaky = os.open(os.devnull, os.O_RDONLY)
        os.set_inheritable(leaky, True)
        before = open_descriptors()
        for _ in range(5):
            await local.run("true", context)
            assert (await local.run("ls /proc/self/fd", context)).text.split() == ["0", "1", "2", "3"]
        assert open_descriptors() == before
        os.close(leaky)

    def test_a_new_event_loop(self, context: ExecutionContext) -> None:
        executor = LocalExecutor()
        for word in ("one", "two"):
            assert asyncio.run(executor.run(f"echo {word}", context)).text == word + "\n"
        asyncio.run(executor.close())

    def test_a_fork_has_its_own(self, context: ExecutionContext) -> None:
        executor = LocalExecutor()
        mine = engine().run(executor.run("echo $PPID", context)).text
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(write, engine().run(executor.run("echo $PPID", context)).output)
                engine().run(executor.close())
            finally:
                os._exit(0)
        os.close(write)
        theirs = os.read(read, 100).decode()
        os.close(read)
        os.waitpid(child, 0)
        assert theirs.strip().isdigit()
        assert theirs != mine
        assert engine().run(executor.run("echo $PPID", context)).text == mine
        engine().run(executor.close())


OWNER = """
import asyncio, os, sys
from pathlib import Path
from conjure_jupyter.executors import ExecutionContext, LocalExecutor
async def main():
    executor = LocalExecutor(processes=sys.argv[2])
    context = ExecutionContext(working_directory=Path.cwd())
    command = "trap '' TERM HUP; (setsid sleep 300 &); touch begun; while :; do sleep 300; done"
    context = context.with_(environment={"TOKEN": sys.argv[1]})
    await asyncio.gather(executor.run(command, context), executor.run(command, context), forked())
async def forked():
    if len(sys.argv) > 3:
        while not Path("begun").exists():
            await asyncio.sleep(0.01)
        if os.fork() == 0:
            import time
            time.sleep(300)
asyncio.run(main())
"""


class TestDeathOfTheOwner:
    @pytest.mark.parametrize("way", ["reaper", "groups"])
    @pytest.mark.parametrize("forks", [False, True])
    def test_kill_9_leaves_nothing(self, tmp_path: Path, way: str, forks: bool) -> None:
        mark = token()
        arguments = [sys.executable, "-c", OWNER, mark, way, *(["fork"] if forks else [])]
        owner = subprocess.Popen(
            arguments, cwd=tmp_path, start_new_session=True, env={**os.environ, "PYTHONPATH": str(Path.cwd())}
        )
        while len(alive(mark)) < 7:  # the owner, two shells and four sleeps
            assert owner.poll() is None
        worker_group = owner.pid
        owner.kill()
        owner.wait()
        try:
            remaining = set(alive(mark))
            if not forks:
                assert gone(mark, within=8)
            else:  # only the owner's own fork, which is no command, lives on
                deadline = 400
                while len(remaining) > 1 and deadline:
                    remaining, deadline = set(alive(mark)), deadline - 1
                assert len(remaining) == 1
        finally:
            if forks:
                os.killpg(worker_group, signal.SIGKILL)


class TestFlood:
    def test_a_gigabyte_in_bounded_memory(self, context: ExecutionContext) -> None:
        executor = LocalExecutor()
        engine().run(executor.run("true", context))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        work = executor.run("head -c 1000000000 /dev/zero", context, timeout=120)
        result = engine().run(work)
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        engine().run(executor.close())
        assert result.total_bytes == 1_000_000_000
        assert result.exit_code == 0
        assert after - before < 20_000  # KiB


class TestStart:
    async def test_limits_that_cannot_be_kept(self, local: LocalExecutor, context: ExecutionContext) -> None:
        for changes in ({"network_access": "none"}, {"network_access": "limited"}, {"memory_limit": 1}):
            with pytest.raises(UnsupportedSettingError, match="local executor"):
                await local.start(context.with_(**changes))
        await local.start(context.with_(network_access="full"))

    async def test_missing_folder(self, local: LocalExecutor, context: ExecutionContext) -> None:
        missing = context.with_(working_directory=context.working_directory / "no")
        with pytest.raises(ExecutorError, match="does not exist"):
            await local.start(missing)
        with pytest.raises(ExecutorError, match="No such file"):
            await local.run("true", missing)

    async def test_paths_come_back_absolute(
        self, local: LocalExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "~").mkdir()
        context = await local.start(
            ExecutionContext(working_directory=Path("~"), allowed_paths=(Path("a"),), skills_root=Path("s"))
        )
        assert context.working_directory == tmp_path / "~"
        assert (context.allowed_paths, context.skills_root) == ((tmp_path / "a",), tmp_path / "s")

    async def test_no_bash(
        self, local: LocalExecutor, context: ExecutionContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with pytest.raises(ExecutorError, match="bash was not found"):
            await local.start(context.with_(environment={"PATH": str(tmp_path)}))

    async def test_windows(
        self, local: LocalExecutor, context: ExecutionContext, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from conjure_jupyter.executors import local as module

        monkeypatch.setattr(module, "WINDOWS", True)
        with pytest.raises(ExecutorError, match="WSL"):
            await local.start(context)

    @pytest.mark.parametrize("limit", [0, -1, float("nan"), float("inf")])
    async def test_no_time_limit(self, local: LocalExecutor, context: ExecutionContext, limit: float) -> None:
        with pytest.raises(SettingsError, match="timeout"):
            await local.run("true", context, timeout=limit)


class TestEnvironment:
    def test_only_what_is_allowed(self) -> None:
        source = {
            "HOME": "/h",
            "LC_ALL": "de_DE.UTF-8",
            "ANTHROPIC_API_KEY": "x",
            "AWS_SESSION_TOKEN": "x",
            "HF_TOKEN": "x",
            "BASH_ENV": "/evil",
            "SSL_CERT_FILE": "/c",
            "https_proxy": "http://proxy:3128",
            "http_proxy": "http://user:word@proxy:3128",
            "PATH": "/bin",
        }
        found = command_environment({"MINE": "1"}, source)
        assert {name for name in source if name in found} == {
            "HOME",
            "LC_ALL",
            "SSL_CERT_FILE",
            "https_proxy",
            "PATH",
        }
        assert (found["MINE"], found["PAGER"], found["GIT_TERMINAL_PROMPT"]) == ("1", "cat", "0")
        assert "LANG" not in found

    def test_defaults(self) -> None:
        found = command_environment({}, {})
        assert found["LANG"].endswith("UTF-8")
        assert found["TERM"] == "dumb"
        assert "/usr/bin" in found["PATH"].split(":")

    @pytest.mark.parametrize("name", ["ANTHROPIC_API_KEY", "AWS_PROFILE", "anthropic_x", "", "A=B", "A\0"])
    def test_names_that_are_refused(self, name: str) -> None:
        with pytest.raises(SettingsError, match="environment"):
            command_environment({name: "1"})

    async def test_python_is_the_kernel_s(self, local: LocalExecutor, context: ExecutionContext) -> None:
        for name in ("python", "python3"):
            text = (await local.run(f"{name} -c 'import sys; print(sys.prefix)'", context)).text
            assert text.strip() == sys.prefix

    @pytest.mark.parametrize("names", [["python3"], ["python3.11"], ["python"]])
    def test_an_environment_that_lacks_a_name(self, tmp_path: Path, names: list[str]) -> None:
        home = tmp_path / "it's a venv"
        (home / "bin").mkdir(parents=True)
        base = Path(sys.executable).resolve()
        (home / "pyvenv.cfg").write_text(f"home = {base.parent}\n")
        for name in names:
            (home / "bin" / name).symlink_to(base)
        folders = python_folders(str(home / "bin" / names[0]))
        path = os.pathsep.join([*folders, "/usr/bin", "/bin"])
        for name in ("python", "python3"):
            text = subprocess.run(
                ["bash", "-c", f"{name} -I -S -c 'import sys; print(sys.executable)'"],
                env={"PATH": path},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            assert Path(text.strip()).parent == home / "bin"
        assert folders == python_folders(str(home / "bin" / names[0]))


class TestNames:
    def test_local(self) -> None:
        assert isinstance(create_executor("local"), LocalExecutor)
        assert isinstance(create_executor("local", processes="groups"), LocalExecutor)

    def test_wrong_options(self) -> None:
        for options in ({"processes": "magic"}, {"no_such": 1}):
            with pytest.raises(SettingsError):
                create_executor("local", **options)

    def test_unknown(self) -> None:
        with pytest.raises(SettingsError, match="there are: docker, local"):
            create_executor("podman")

    def test_entry_points(self, monkeypatch: pytest.MonkeyPatch) -> None:
        values = {
            "mine": "conjure_jupyter.executors.local:LocalExecutor",
            "broken": "no_such_module_at_all:X",
            "wrong": "pathlib:Path",
        }
        points = EntryPoints(EntryPoint(name, value, "conjure.executors") for name, value in values.items())
        monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: points)
        assert isinstance(create_executor("mine"), LocalExecutor)
        for name in ("broken", "wrong"):
            with pytest.raises(ExecutorError, match=name):
                create_executor(name)
        with pytest.raises(SettingsError, match="broken, docker, local, mine, wrong"):
            create_executor("nothing")
