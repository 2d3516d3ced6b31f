"""The executor over a real engine: its container from the first call to the last."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from docker import APIClient

from conjure_jupyter.errors import (
    DockerImageError,
    DockerUnavailableError,
    ExecutorError,
    SettingsError,
    ToolError,
)
from conjure_jupyter.executors import ExecutionContext, create_executor
from conjure_jupyter.executors.docker import DockerExecutor, DockerOptions, making
from conjure_jupyter.executors.docker.options import parse_volume
from conjure_jupyter.settings import MB

from .forwarder import forwarded

pytestmark = pytest.mark.docker
Start = Callable[..., Awaitable["Started"]]


class Started:
    """A started executor with its context."""

    def __init__(
        self, executor: DockerExecutor, context: ExecutionContext, workspace: Path, told: list[str]
    ) -> None:
        self.executor = executor
        self.context = context
        self.workspace = workspace
        self.told = told

    async def run(self, command: str, timeout: float = 20.0) -> Any:
        return await self.executor.run(command, self.context, timeout=timeout)

    async def text(self, command: str) -> str:
        return str((await self.run(command)).text.strip())


@pytest.fixture
def api(docker_engine: str) -> Iterator[APIClient]:
    with contextlib.closing(APIClient(base_url=docker_engine, version="auto")) as client:
        yield client


@pytest.fixture
async def start(docker_engine: str, docker_image: str, tmp_path: Path) -> AsyncIterator[Start]:
    """Start executors; they are closed at the end."""
    made: list[DockerExecutor] = []

    async def start(*, context: dict[str, Any] | None = None, **options: Any) -> Started:
        workspace = tmp_path / "work"
        workspace.mkdir(exist_ok=True)
        told: list[str] = []
        own = {
            name: options.pop(name)
            for name in ("notebook", "artifacts", "hidden", "session")
            if name in options
        }
        executor = DockerExecutor(
            DockerOptions(**{"image": docker_image, **options}),
            address=docker_engine,
            tell=told.append,
            **own,
        )
        made.append(executor)
        inside = await executor.start(ExecutionContext(working_directory=workspace, **(context or {})))
        return Started(executor, inside, workspace, told)

    yield start
    for executor in made:
        await executor.close()


def containers(api: APIClient, session: str) -> list[str]:
    return [found["Id"] for found in api.containers(filters={"label": f"conjure.session={session}"})]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110  the engine and the container tell of nothing
            await asyncio.sleep(0.05)


async def test_one_container_serves_all_calls_and_ends_with_the_executor(
    start: Start, api: APIClient
) -> None:
    started = await start(session="one-for-all")
    await started.run("touch /tmp/here")
    assert await started.text("ls /tmp") == "here"
    assert len(containers(api, "one-for-all")) == 1
    await started.executor.close()
    await until(lambda: not containers(api, "one-for-all"))
    with pytest.raises(ExecutorError, match="not started"):
        await started.run("true")


async def test_it_is_started_before_the_first_call(start: Start, api: APIClient) -> None:
    await start(session="warm")
    await until(lambda: bool(containers(api, "warm")))


async def test_an_idle_container_is_stopped_and_started_again(start: Start, api: APIClient) -> None:
    started = await start(session="idle", idle=0.5)
    await started.run("echo kept > file.txt; touch /tmp/gone")
    await until(lambda: not containers(api, "idle"))
    result = await started.run("cat file.txt; ls /tmp")
    assert result.text == "kept\n"
    assert "0.5 s without a call" in " ".join(result.notes)
    assert not (await started.run("true")).notes


async def test_a_container_that_was_removed_is_replaced(start: Start, api: APIClient) -> None:
    started = await start(session="removed")
    await started.run("echo kept > file.txt")
    api.remove_container(containers(api, "removed")[0], force=True)
    await until(lambda: not containers(api, "removed"))
    await asyncio.sleep(0.2)
    result = await started.run("cat file.txt")
    assert result.text == "kept\n"
    assert "new one" in " ".join(result.notes)


async def test_a_container_removed_during_a_call(start: Start, api: APIClient) -> None:
    started = await start(session="midway")
    await started.run("true")
    call = asyncio.ensure_future(started.run("echo begun > file.txt; sleep 20"))
    await until((started.workspace / "file.txt").exists)
    api.remove_container(containers(api, "midway")[0], force=True)
    with pytest.raises(ToolError, match="part of its work"):
        await call
    assert await started.text("cat file.txt") == "begun"


async def test_a_resident_that_was_killed_is_started_again_in_the_same_container(start: Start) -> None:
    started = await start()
    await started.run("touch /tmp/here")
    with pytest.raises(ToolError, match="part of its work"):
        await started.run("kill -9 -1; sleep 10")
    assert await started.text("ls /tmp") == "here"


async def test_file_calls_outlast_a_lost_resident(start: Start) -> None:
    started = await start()
    await started.executor.write("a.txt", b"a", started.context)
    with contextlib.suppress(ToolError):
        await started.run("kill -9 -1; sleep 10")
    assert await started.executor.read("a.txt", started.context) == b"a"


async def test_a_cancelled_start_serves_the_next_call(start: Start) -> None:
    started = await start()
    call = asyncio.ensure_future(started.run("sleep 20"))
    await asyncio.sleep(0.05)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert await started.text("echo on") == "on"


async def test_too_much_memory_is_told(start: Start) -> None:
    started = await start(memory=128 * MB)
    result = await started.run("python3 -c 'x = bytearray(1 << 30)'")
    assert result.exit_code == 137
    assert "memory" in " ".join(result.notes)
    assert await started.text("echo on") == "on"


async def test_too_many_processes_are_told_and_ended(start: Start) -> None:
    started = await start(pids=64)
    result = await started.run("bomb() { bomb | bomb & }; bomb; sleep 20", timeout=3)
    assert "process" in " ".join(result.notes)
    assert await started.text("echo on") == "on"


async def test_a_full_scratch_folder_is_told(start: Start) -> None:
    started = await start(scratch=8 * MB)
    result = await started.run("head -c 50000000 /dev/zero > /tmp/big")
    assert result.exit_code != 0
    assert "/tmp" in " ".join(result.notes)


async def test_a_command_that_would_fill_the_workspaces_disk_is_ended(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    from conjure_jupyter.executors.docker import disk

    room = iter([10_000 * MB] * 3)
    monkeypatch.setattr(disk, "free_space", lambda _: (next(room, 10 * MB), 100_000 * MB))
    started = await start()
    result = await started.run("echo begun; sleep 20")
    assert (result.exit_code, result.output) == (137, b"begun\n")
    assert "disk" in " ".join(result.notes)


async def test_the_notebooks_dot_files_stay_hidden_when_they_come_late(start: Start, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "data.csv").write_text("shown")
    started = await start(notebook=project, context={"allowed_paths": (project,)})
    assert await started.text("cat /notebook/data.csv") == "shown"
    (project / ".env").write_text("secret")
    result = await started.run("cat /notebook/.env")
    assert "secret" not in result.text
    assert "dot-files" in " ".join(result.notes)
    assert await started.executor.read("/notebook/data.csv", started.context) == b"shown"


async def test_masks_hold_when_what_they_cover_is_replaced(start: Start, tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "sub").mkdir(parents=True)
    files = [project / ".env", project / "sub" / ".env"]
    for file in files:
        file.write_text("secret")
    started = await start(notebook=project)
    look = "cat /notebook/.env /notebook/sub/.env"
    assert await started.text(look) == ""
    for file in files:
        new = file.with_name("new")
        new.write_text("secret, as an editor saves it")
        new.rename(file)
        assert await started.text(look) == ""
        file.unlink()
        file.write_text("secret, made anew")
        assert await started.text(look) == ""


async def test_calls_at_the_same_time_neither_see_a_new_dot_file_nor_lose_each_other(
    start: Start, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    started = await start(notebook=project)
    await started.run("true")
    (project / ".env").write_text("secret")
    calls = [started.text("sleep 0.3; cat /notebook/.env; echo done") for _ in range(3)]
    assert await asyncio.gather(*calls) == ["done"] * 3


@pytest.mark.parametrize("delay", [0, 0.05, 0.15])
async def test_closing_during_the_start_leaves_nothing(start: Start, api: APIClient, delay: float) -> None:
    session = f"closed-{delay}"
    started = await start(session=session)
    calls = [asyncio.ensure_future(started.run("true")) for _ in range(3)]
    await asyncio.sleep(delay)
    await started.executor.close()
    assert all(isinstance(end, ExecutorError) for end in await asyncio.gather(*calls, return_exceptions=True))
    await asyncio.sleep(1)  # long enough for another to be started
    assert not api.containers(all=True, filters={"label": f"conjure.session={session}"})


async def test_a_container_that_nobody_used_is_stopped_as_well(start: Start, api: APIClient) -> None:
    await start(session="unused", idle=0.3)
    await until(lambda: bool(containers(api, "unused")))
    await until(lambda: not containers(api, "unused"))


async def test_a_call_that_is_cancelled_while_it_replaces_the_container_leaves_nothing(
    start: Start, api: APIClient, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    started = await start(notebook=project, session="swapped")
    await started.run("true")
    before = containers(api, "swapped")
    (project / ".env").write_text("secret")
    call = asyncio.ensure_future(started.run("true"))
    running = started.executor._running
    assert running is not None
    while running._parts is not None:  # noqa: ASYNC110  caught in the midst of the removal
        await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await until(lambda: not set(before) & set(containers(api, "swapped")))
    assert await started.text("cat /notebook/.env; echo on") == "on"


async def test_a_user_who_may_not_use_the_workspace(start: Start) -> None:
    started = await start(user="1000:1000")
    started.workspace.chmod(0o700)
    with pytest.raises(ExecutorError, match=r"1000:1000, who may not use .*docker_user"):
        await started.run("true")
    started.workspace.chmod(0o777)
    assert await started.text("id -u") == "1000"


async def test_an_engine_that_hangs_keeps_nobody_waiting(
    docker_engine: str, docker_image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(making, "PING_LIMIT", 0.5)
    answers = asyncio.Event()
    answers.set()
    async with forwarded(docker_engine, answers=answers) as port:
        executor = DockerExecutor(DockerOptions(image=docker_image), address=f"tcp://127.0.0.1:{port}")
        context = await executor.start(ExecutionContext(working_directory=tmp_path))
        with pytest.raises(ToolError):
            await executor.run("kill -9 -1; sleep 10", context)  # what answers in the container
        answers.clear()
        async with asyncio.timeout(30):
            with pytest.raises(DockerUnavailableError, match="does not answer"):
                await executor.run("true", context)
        answers.set()
        assert (await executor.run("echo on", context)).text == "on\n"
        await executor.close()


async def test_folders_that_cannot_be_shared_are_told_at_the_start(start: Start, tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"d\xff")
    folder.mkdir()
    with pytest.raises(ExecutorError, match="no UTF-8"):
        await start(context={"allowed_paths": (folder,)})
    with pytest.raises(ExecutorError, match="home"):
        await start(context={"allowed_paths": (Path.home().parent,)})


async def test_options_of_the_context(start: Start) -> None:
    started = await start(context={"executor_config": {"pids": 50}, "memory_limit": 100 * MB})
    text = await started.text("cat /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max 2>/dev/null")
    assert text == "50"
    with pytest.raises(SettingsError, match="executor_config"):
        await start(context={"executor_config": {"pets": 50}})


async def test_a_volume_that_is_not_there(start: Start) -> None:
    with pytest.raises(SettingsError, match="docker volume create"):
        await start(volumes=(parse_volume("mistyped:/data"),))


async def test_the_same_start_twice_keeps_the_container(start: Start, api: APIClient) -> None:
    started = await start(session="twice")
    await started.run("touch /tmp/here")
    again = await started.executor.start(ExecutionContext(working_directory=started.workspace))
    assert again == started.context
    assert await started.text("ls /tmp") == "here"


async def test_a_missing_image_and_a_missing_engine(start: Start, docker_image: str, tmp_path: Path) -> None:
    with pytest.raises(DockerImageError, match="no/such"):
        await start(image="no/such:image")
    executor = DockerExecutor(DockerOptions(image=docker_image), address=f"unix://{tmp_path}/none.sock")
    with pytest.raises(DockerUnavailableError):
        await executor.start(ExecutionContext(working_directory=tmp_path))


async def test_images_without_python(start: Start, bare_image: str) -> None:
    started = await start(image=bare_image)
    await started.executor.write("a.txt", b"\0a\xff", started.context)
    assert (started.workspace / "a.txt").read_bytes() == b"\0a\xff"
    assert await started.text("type python3 2>/dev/null || echo none; cat a.txt | wc -c") == "none\n3"
    limited = await start(image=bare_image, network="limited", hosts=("example.org",))
    with pytest.raises(ExecutorError, match="no Python"):
        await limited.run("true")


async def test_a_limited_network(start: Start) -> None:
    started = await start(network="limited", hosts=("example.org",))
    script = (
        "import socket, urllib.request\n"
        "try: urllib.request.urlopen('http://not-listed.example.com/', timeout=5)\n"
        "except Exception as error: print(error)\n"
        "try: socket.create_connection(('198.51.100.7', 80), timeout=5)\n"
        "except OSError as error: print(error)\n"
    )
    await started.executor.write("reach.py", script.encode(), started.context)
    refused, direct = (await started.text("python3 reach.py")).splitlines()
    assert "403" in refused
    assert "network_hosts" in refused
    assert "unreachable" in direct
    assert any("not-listed.example.com" in sentence for sentence in started.told)
    assert "127.0.0.1" in await started.text("echo $https_proxy")


async def test_by_its_name(docker_image: str) -> None:
    executor = create_executor("docker", options=DockerOptions(image=docker_image))
    assert isinstance(executor, DockerExecutor)
    assert executor.confined
