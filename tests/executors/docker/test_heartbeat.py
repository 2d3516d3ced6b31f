"""A container ends with the process that made it, whatever its tools do about that."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from conjure_jupyter.executors.docker.heartbeat import SILENCE, guard_user

from .containers import connected, exists, plan, running, says, shell, until

pytestmark = pytest.mark.docker
ROOT = Path(__file__).parents[3]

#: Seconds in which a container is gone after its owner is.
PROMISED = 15.0


def start(arguments: tuple[str, ...]) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.executors.docker.owner_child", *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


@contextlib.asynccontextmanager
async def owner(*arguments: str) -> AsyncIterator[tuple[subprocess.Popen[str], list[str]]]:
    """A process that has something on the engine, and what it said of that."""
    process = start(arguments)
    with process:
        assert process.stdout is not None
        try:
            yield process, (await asyncio.to_thread(process.stdout.readline)).split()
        finally:
            process.kill()


async def test_killed(docker_engine: str, docker_image: str) -> None:
    async with (
        connected(docker_engine) as engine,
        owner(docker_engine, docker_image, "container") as (process, (container,)),
    ):
        assert await exists(engine, container)
        process.kill()

        async def gone() -> bool:
            return not await exists(engine, container)

        await until(gone, PROMISED)


async def test_killed_while_a_fork_of_it_lives(docker_engine: str, docker_image: str) -> None:
    async with (
        connected(docker_engine) as engine,
        owner(docker_engine, docker_image, "fork") as (process, (container, fork)),
    ):
        try:
            process.kill()

            async def gone() -> bool:
                return not await exists(engine, container)

            await until(gone, PROMISED)
            os.kill(int(fork), 0)
        finally:
            os.kill(int(fork), signal.SIGKILL)


async def test_silent(docker_engine: str, docker_image: str) -> None:
    """A process that is stopped keeps its connections; the guard does not wait for it."""
    async with (
        connected(docker_engine) as engine,
        owner(docker_engine, docker_image, "container") as (process, (container,)),
    ):
        process.send_signal(signal.SIGSTOP)

        async def gone() -> bool:
            return not await exists(engine, container)

        await until(gone, SILENCE + 8)
        process.send_signal(signal.SIGCONT)
        assert process.stdout is not None
        said = await asyncio.to_thread(process.stdout.readline)
        assert "not heard of this notebook" in said


async def test_alive_for_longer_than_the_silence(docker_engine: str, docker_image: str) -> None:
    async with running(docker_engine, plan(docker_image)) as container:
        await asyncio.sleep(SILENCE + 2)
        assert not container.gone
        assert await shell(container, "echo here") == "here"


ATTACKS = """
for pid in $(ls /proc | grep -E '^[0-9]+$'); do
    uid=$(stat -c %u /proc/$pid 2>/dev/null) || continue
    [ "$uid" = "$(id -u)" ] && continue
    echo "tried" >&2
    for number in KILL TERM STOP HUP INT; do kill -$number $pid 2>/dev/null && echo "signalled $pid"; done
    for fd in 0 1 2; do
        { printf '\\n' > /proc/$pid/fd/$fd; } 2>/dev/null && echo "wrote to $pid"
        { true < /proc/$pid/fd/$fd; } 2>/dev/null && echo "opened $pid"
    done
    { true < /proc/$pid/mem; } 2>/dev/null && echo "memory of $pid"
done
kill -9 1 2>/dev/null
kill -STOP 1 2>/dev/null
kill -9 -1 2>/dev/null
echo done
"""


@pytest.mark.parametrize("user", ["1000:1000", "0:0", "65534:65534"])
async def test_tools_cannot_touch_the_guard(user: str, docker_engine: str, docker_image: str) -> None:
    async with running(docker_engine, plan(docker_image, user=user)) as container:
        uid = await shell(container, "stat -c %u /proc/1")
        assert uid == guard_user(user).partition(":")[0] != user.partition(":")[0]
        _, said = await says(container, "bash", "-c", ATTACKS)
        assert set(said.split()) == {"tried", "done"}, said
        assert not container.gone
        assert await shell(container, "echo still") == "still"


async def test_tools_cannot_keep_the_guard_alive(docker_engine: str, docker_image: str) -> None:
    """With the way to this process cut, whatever tools run, the container ends."""
    async with running(docker_engine, plan(docker_image)) as container:
        busy = await container.attach(
            [
                "bash",
                "-c",
                "trap '' TERM HUP INT; while :; do for p in /proc/[0-9]*/fd/0; do echo > $p; done; done",
            ]
        )
        container._heartbeat.stop()

        async def gone() -> bool:
            return not await exists(container.engine, container.id)

        await until(gone, PROMISED)
        busy.end()


async def test_a_crowd_and_a_hog_leave_the_guard_alone(docker_engine: str, docker_image: str) -> None:
    made = plan(docker_image, pids=32)
    async with running(docker_engine, made) as container:
        bomb = "trap '' TERM; for i in $(seq 100); do sleep 30 & done; echo made"
        _, said = await says(container, "timeout", "-s", "KILL", "5", "bash", "-c", bomb)
        assert "Resource temporarily unavailable" in said or "made" in said
        assert not container.gone
    async with running(docker_engine, made) as container:
        code, _ = await says(container, "python3", "-c", "x = bytearray(10**9)")
        assert code in (1, 137)
        assert not container.gone
        assert await shell(container, "echo still") == "still"
