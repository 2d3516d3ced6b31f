"""The resident in a real container: what it sees, and what happens at the container's limits."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from conjure_jupyter.executors import ExecutionContext
from conjure_jupyter.executors.docker.connection import Engine
from conjure_jupyter.executors.docker.container import Container, Plan
from conjure_jupyter.executors.docker.link import LinkLostError, NoPythonError
from conjure_jupyter.executors.docker.options import DockerOptions
from conjure_jupyter.executors.docker.resident import ARGUMENTS, ResidentLink
from conjure_jupyter.settings import MB

pytestmark = pytest.mark.docker

CONTEXT = ExecutionContext(working_directory=Path("/home/sandbox"), writable_paths=(Path("/tmp"),))
OUT_OF_MEMORY = "A process was ended because the container ran out of memory (128.0 MB, memory_limit)"
NO_PROCESSES = "No more processes could be started (48, docker_pids)"
BOMB = "bomb() { bomb | bomb & }; bomb; sleep 100"
#: Lists processes of the bomb, not itself.
BOMBS = "grep -la 'bo[m]b' /proc/[0-9]*/cmdline 2>/dev/null; true"


@asynccontextmanager
async def container(address: str, image: str) -> AsyncIterator[Container]:
    engine = await Engine.connect(address)
    options = DockerOptions(image=image, memory=128 * MB, pids=48, scratch=16 * MB)
    plan = Plan(options=options, mounts=(), user="1234:1234", session="resident-tests")
    made = await Container.create(engine, plan)
    try:
        yield made
    finally:
        await made.remove()
        await engine.close()


@pytest.fixture
async def there(docker_engine: str, docker_image: str) -> AsyncIterator[Container]:
    async with container(docker_engine, docker_image) as made:
        yield made


@pytest.fixture
async def link(there: Container) -> AsyncIterator[ResidentLink]:
    opened = await ResidentLink.open(await there.attach(ARGUMENTS))
    yield opened
    await opened.close()


async def text(link: ResidentLink, command: str) -> str:
    result = await link.run(command, CONTEXT, timeout=30)
    assert result.exit_code == 0, result.text
    return result.text.strip()


async def test_what_a_command_sees(link: ResidentLink) -> None:
    seen = dict(line.split("=", 1) for line in (await text(link, "env")).splitlines())
    assert seen["HOME"] == "/home/sandbox"
    assert (seen["LANG"], seen["TERM"], seen["PAGER"]) == ("C.UTF-8", "dumb", "cat")
    ours = {"CONJURE_CALL", "GIT_PAGER", "GIT_TERMINAL_PROMPT", "MPLBACKEND", "LANG", "TERM", "PAGER"}
    assert set(seen) - ours <= {"HOME", "PATH", "PWD", "OLDPWD", "SHLVL", "HOSTNAME", "_"}
    assert await text(link, "id -u; id -g") == "1234\n1234"
    assert await text(link, "python -c 'print(6 * 7)'") == "42"


async def test_large_files_come_and_go_whole(link: ResidentLink) -> None:
    data = os.urandom(8_000_001)
    await link.write("big", data, CONTEXT, mode=None)
    assert await link.read("big", CONTEXT, offset=0, limit=None) == data
    assert await link.read("/home/sandbox/big", CONTEXT, offset=8_000_000, limit=9) == data[-1:]


async def test_the_resident_is_out_of_reach(link: ResidentLink) -> None:
    """Its descriptors lead to the kernel's machine; those of the command's own parent do not."""
    find = "for p in /proc/[0-9]*; do grep -q resident $p/cmdline 2>/dev/null && echo ${p#/proc/}; done; true"
    residents = [pid for pid in (await text(link, find)).split() if pid.isdigit()]
    refused = 0
    for pid in residents:
        result = await link.run(f"ls /proc/{pid}/fd", CONTEXT, timeout=30)
        refused += "Permission denied" in result.text
    assert refused >= 1


async def test_the_memory_runs_out(link: ResidentLink) -> None:
    hungry = "python3 -c 'x = bytearray(400_000_000)'"
    alone = await link.run(hungry, CONTEXT, timeout=30)
    assert (alone.exit_code, alone.notes) == (137, (OUT_OF_MEMORY,))
    child = await link.run(f"{hungry}; true", CONTEXT, timeout=30)
    assert (child.exit_code, child.notes) == (0, (OUT_OF_MEMORY,))
    one, other = await asyncio.gather(
        link.run(hungry, CONTEXT, timeout=30), link.run("sleep 1", CONTEXT, timeout=30)
    )
    assert (one.notes, other.notes) == ((OUT_OF_MEMORY,), ())


async def test_commands_are_the_first_to_go(link: ResidentLink) -> None:
    assert await text(link, "cat /proc/self/oom_score_adj") == "1000"
    # What watches the command takes its own value back just after the command has begun.
    watcher = "until grep -x 0 /proc/$PPID/oom_score_adj; do sleep 0.02; done"
    assert await text(link, watcher) == "0"


async def test_the_disk_is_full(link: ResidentLink) -> None:
    result = await link.run("head -c 30000000 /dev/zero > /tmp/full", CONTEXT, timeout=30)
    assert result.exit_code == 1
    assert result.notes == ("The disk that holds /tmp is full (16.0 MB)",)
    assert (await link.run("rm /tmp/full", CONTEXT, timeout=30)).notes == ()


async def test_a_fork_bomb_ends_at_its_time_limit(link: ResidentLink) -> None:
    bomb = asyncio.ensure_future(link.run(BOMB, CONTEXT, timeout=2))
    await asyncio.sleep(0.5)
    await link.write("file", b"written meanwhile", CONTEXT, mode=None)
    assert await link.read("file", CONTEXT, offset=0, limit=None) == b"written meanwhile"
    result = await bomb
    assert result.timed_out
    assert result.notes == (NO_PROCESSES,)
    assert await text(link, BOMBS) == ""


async def test_a_fork_bomb_is_cancelled(link: ResidentLink) -> None:
    bomb = asyncio.ensure_future(link.run(BOMB, CONTEXT, timeout=60))
    await asyncio.sleep(0.5)
    bomb.cancel()
    with pytest.raises(asyncio.CancelledError):
        await bomb
    assert not link.lost
    assert await text(link, BOMBS) == ""


async def test_no_process_left_for_a_call(link: ResidentLink) -> None:
    """Calls beside a bomb work or say what is missing; none of them harms the others."""
    bomb = asyncio.ensure_future(link.run(BOMB, CONTEXT, timeout=2))
    await asyncio.sleep(0.5)
    beside = await asyncio.gather(
        *[link.run("echo beside", CONTEXT, timeout=10) for _ in range(4)], return_exceptions=True
    )
    for found in beside:
        if isinstance(found, BaseException):
            assert "No more processes could be started" in str(found)
        else:
            assert found.output == b"beside\n" or NO_PROCESSES in found.notes
    assert (await bomb).timed_out
    assert await text(link, "echo after") == "after"


async def test_everything_is_killed_from_inside(there: Container, link: ResidentLink) -> None:
    with pytest.raises(LinkLostError):
        await link.run("kill -9 -1", CONTEXT, timeout=30)
    assert not there.gone
    again = await ResidentLink.open(await there.attach(ARGUMENTS))
    assert await text(again, "echo again") == "again"
    await again.close()


async def test_the_container_is_removed(there: Container, link: ResidentLink) -> None:
    call = asyncio.ensure_future(link.run("sleep 60", CONTEXT, timeout=60))
    await link.stat(".", CONTEXT)
    await there.remove()
    with pytest.raises(LinkLostError):
        await call


async def test_an_image_without_python(docker_engine: str, bare_image: str) -> None:
    async with container(docker_engine, bare_image) as there:
        with pytest.raises(NoPythonError, match="no python3"):
            await ResidentLink.open(await there.attach(ARGUMENTS))
