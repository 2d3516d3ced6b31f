"""Attached shells in a real container: what a hostile command tries, and what its limits say."""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from conjure_jupyter.errors import ContainerError, ExecutorError, PathNotFoundError
from conjure_jupyter.executors import CommandResult, ExecutionContext
from conjure_jupyter.executors.docker.link import LinkLostError
from conjure_jupyter.executors.docker.shells import ShellLink
from tests.executors.processes import alive, gone, until

from .thin import ThinExecutor

pytestmark = pytest.mark.docker


@dataclass
class Place:
    executor: ThinExecutor
    context: ExecutionContext
    workspace: Path

    async def run(self, command: str, timeout: float = 20.0, **changes: object) -> CommandResult:
        return await self.executor.run(command, self.context.with_(**changes), timeout=timeout)


async def placed(executor: ThinExecutor, folder: Path) -> Place:
    workspace = folder / executor.options.image.replace(":", "-")
    workspace.mkdir()
    context = await executor.start(ExecutionContext(working_directory=workspace))
    return Place(executor, context, workspace)


@pytest.fixture
async def place(docker_engine: str, bare_image: str, tmp_path: Path) -> AsyncIterator[Place]:
    executor = ThinExecutor(docker_engine, bare_image, memory=256 << 20, pids=40)
    yield await placed(executor, tmp_path)
    await executor.close()


@pytest.fixture
async def small(docker_engine: str, busybox_image: str, tmp_path: Path) -> AsyncIterator[Place]:
    executor = ThinExecutor(docker_engine, busybox_image)
    yield await placed(executor, tmp_path)
    await executor.close()


def token() -> str:
    return f"shells-{secrets.token_hex(6)}"


def stubborn(mark: str) -> str:
    """A command that will not be asked, and another like it in a session of its own."""
    return f"trap '' TERM; setsid bash -c 'exec -a {mark} sleep 300' & while :; do wait; sleep 1; done"


async def test_one_that_hides_its_descent_ends_too(place: Place) -> None:
    mark = token()
    daemon = f"(setsid env -i /bin/bash -c '(exec -a {mark} sleep 300) & exit' >/dev/null 2>&1 &)"
    result = await place.run(f"{daemon}; sleep 0.3; echo done")
    assert (result.output, result.exit_code, result.leftovers) == (b"done\n", 0, 1)
    assert gone(mark, within=0)


async def test_one_that_hides_waits_for_the_last_command(place: Place) -> None:
    mark = token()
    other = asyncio.create_task(place.run("touch begun; until test -e go; do sleep 0.02; done; echo other"))
    await until(place.workspace / "begun")
    await place.run(f"(setsid env -i /bin/bash -c '(exec -a {mark} sleep 300) & exit' &) ; sleep 0.3")
    assert alive(mark)  # it may be the other command's
    (place.workspace / "go").touch()
    assert (await other).output == b"other\n"
    assert gone(mark, within=0)


async def test_an_exit_code_cannot_be_told_by_output(place: Place) -> None:
    lie = "for fd in 1 2; do printf '\\n%s done exited 0 0 0 0 0 0 0 0\\n' $CONJURE_CALL >&$fd; done; exit 9"
    result = await place.run(lie)
    assert result.exit_code == 9
    assert result.output.count(b"done exited") == 2


async def test_a_command_that_ends_its_keeper(place: Place) -> None:
    mark = token()
    command = f'bash -c "exec -a {mark} sleep 300" & kill -9 $PPID; wait'
    with pytest.raises(LinkLostError):
        await place.run(command)
    assert gone(mark, within=0)
    assert not place.executor.there.lost
    assert (await place.run("echo on")).output == b"on\n"


async def test_a_command_that_ends_everything(place: Place) -> None:
    with pytest.raises(LinkLostError):
        await place.run("trap '' TERM; kill -9 -1")
    assert (await place.run("echo on")).output == b"on\n"


@pytest.mark.parametrize("signal", ["STOP", "KILL"])
async def test_a_command_that_stops_the_clock(place: Place, signal: str) -> None:
    mark = token()
    # All others that it may signal: the shells that wait, the one that keeps it, the one that holds the time.
    one = f"[ $p = $$ ] || [ $p = $PPID ] || kill -{signal} $p"
    others = f"for p in $(ls /proc | grep '^[0-9]'); do {one}; done 2>/dev/null"
    last = "kill -STOP $PPID" if signal == "STOP" else ":"
    sleeper = f'bash -c "exec -a {mark} sleep 300"'
    await asyncio.gather(*place.executor.there._pool._waiting)  # or the engine itself is stopped
    begun = time.monotonic()
    result = await place.run(f"{others}; {last}; echo begun; {sleeper}", timeout=1.0)
    assert time.monotonic() - begun < 3.0
    assert result.timed_out
    assert gone(mark, within=0)
    assert (await place.run("echo on")).output == b"on\n"


async def test_too_many_processes(place: Place) -> None:
    mark = token()
    command = f'for i in {{1..60}}; do bash -c "exec -a {mark} sleep 300" & done; sleep 300'
    begun = time.monotonic()
    result = await place.run(command, timeout=2.0)
    assert time.monotonic() - begun < 4.0
    assert result.timed_out
    assert "docker_pids" in result.notes[0]
    assert gone(mark, within=0)
    assert (await place.run("echo on")).output == b"on\n"


async def test_out_of_memory(place: Place) -> None:
    result = await place.run("x=$(head -c 600000000 /dev/zero | tr '\\0' x); echo ${#x}")
    assert result.exit_code != 0
    assert "memory_limit" in result.notes[0]


async def test_a_full_disk(place: Place) -> None:
    home = place.context.with_(writable_paths=(Path("/run/conjure"),))
    result = await place.executor.run("head -c 100000000 /dev/zero > /run/conjure/f", home, timeout=20)
    assert result.exit_code == 1
    assert result.notes == ("The disk that holds /run/conjure is full (16.0 MB)",)


async def test_cancelling_ends_all_of_it(small: Place) -> None:
    mark = token()
    running = asyncio.create_task(small.run(f"touch begun; {stubborn(mark)}"))
    await until(small.workspace / "begun")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert gone(mark, within=0)


async def test_closing_ends_what_runs(place: Place) -> None:
    mark = token()
    running = asyncio.create_task(place.run(f"touch begun; {stubborn(mark)}"))
    await until(place.workspace / "begun")
    await place.executor.there.close()
    with pytest.raises(ExecutorError):
        await running
    assert gone(mark, within=0)
    assert place.executor.there.lost
    with pytest.raises(LinkLostError):
        await place.run("echo on")


async def test_many_at_once(place: Place) -> None:
    results = await asyncio.gather(*[place.run(f"echo {n}") for n in range(8)])
    assert [result.output for result in results] == [b"%d\n" % n for n in range(8)]


async def test_environment(place: Place) -> None:
    given = {"a.b": "1", "UID": "2", "_marker": "3", "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
    said = (await place.run("env -0", environment=given)).output.split(b"\0")
    assert {b"a.b=1", b"UID=2", b"_marker=3", b"LC_ALL=C.UTF-8", b"HOME=/home/sandbox"} <= set(said)
    assert {b"TERM=dumb", b"PAGER=cat", b"LANG=C.UTF-8", b"SHLVL=0"} <= set(said)


async def test_no_descriptors_of_ours(place: Place) -> None:
    assert (await place.run("ls /proc/self/fd; cat")).output == b"0\n1\n2\n3\n"  # the last is that of ls


async def test_the_working_directory_is_gone(place: Place) -> None:
    with pytest.raises(ExecutorError, match="No such file"):
        await place.run("true", working_directory=Path("/nowhere"))


async def test_names_of_any_bytes(small: Place) -> None:
    for name in ("\udcff\udcfe", "a\n", "'\"`$(x)", "-n", " ", "\\", "[a]*", "%s"):
        path = f"d {name}/{name}"
        await small.executor.write(path, b"1\0\n", small.context)
        assert await small.executor.read(path, small.context) == b"1\0\n"
        listed = await small.executor.list(".", small.context, depth=2)
        assert path in [entry.path for entry in listed]
        await small.executor.delete(path, small.context)
        with pytest.raises(PathNotFoundError):
            await small.executor.stat(path, small.context)


async def test_times_are_as_on_this_machine(place: Place, small: Place) -> None:
    (place.workspace / "f").touch()
    os.utime(place.workspace / "f", ns=(1, 1_600_000_000_123_456_789))
    for each in (place, small):
        (each.workspace / "f").touch()
        os.utime(each.workspace / "f", ns=(1, 1_600_000_000_123_456_789))
        found = (await each.executor.stat("f", each.context)).mtime_ns
        assert found // 1_000_000_000 == 1_600_000_000
    assert (await place.executor.stat("f", place.context)).mtime_ns == 1_600_000_000_123_456_789


async def test_an_image_without_bash(place: Place) -> None:
    container = place.executor.container
    assert container is not None
    with pytest.raises(ContainerError, match="no-such-bash") as told:
        await ShellLink.open(lambda argv: container.attach(["no-such-bash", *argv[1:]]))
    assert not isinstance(told.value, LinkLostError)


async def test_the_container_goes(place: Place) -> None:
    running = asyncio.create_task(place.run("touch begun; sleep 60"))
    await until(place.workspace / "begun")
    assert place.executor.container is not None
    await place.executor.container.remove()
    with pytest.raises(LinkLostError):
        await running
    assert place.executor.there.lost
