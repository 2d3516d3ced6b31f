"""What the dead left is removed, and nothing else."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest

from conjure_jupyter.executors.docker import owner as owners
from conjure_jupyter.executors.docker.connection import Engine
from conjure_jupyter.executors.docker.owner import OWNER, alive, labels
from conjure_jupyter.executors.docker.sweep import sweep

from .containers import connected, exists, plan, running
from .test_heartbeat import owner


def test_this_process_lives() -> None:
    assert alive(owners.owner()) is True


def test_a_process_that_ended_does_not() -> None:
    code = "from conjure_jupyter.executors.docker.owner import owner; print(owner())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert alive(done.stdout.strip()) is False


def test_another_process_with_the_same_number_is_another() -> None:
    boot, namespace, pid, start, machine = owners.owner().split(":")
    assert alive(f"{boot}:{namespace}:{pid}:{int(start) - 1}:{machine}") is False


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # its child does nothing but end
def test_a_process_that_nobody_waited_for_is_dead() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert owners._start(pid) is None
    os.waitpid(pid, 0)


def test_what_cannot_be_judged_from_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owners, "machine", lambda: "ours")
    boot, namespace, pid, start, _ = owners.owner().split(":")
    assert alive(f"{boot}:{int(namespace) + 1}:{pid}:{start}:ours") is None  # another container
    assert alive(f"other:{namespace}:{pid}:{start}:theirs") is None  # another machine
    assert alive(f"other:{namespace}:{pid}:{start}:") is None  # one that has no name
    assert alive(f"other:{namespace}:{pid}:{start}:ours") is False  # this one, before it was started anew
    for text in (
        "",
        "x",
        ":::: ",
        f"{boot}:{namespace}:-1:{start}:ours",
        f"{boot}:{namespace}::{start}:ours",
    ):
        assert alive(text) is None, text


def test_labels() -> None:
    assert labels("abc", "volume") == {
        "conjure.jupyter": "1",
        "conjure.session": "abc",
        "conjure.kind": "volume",
        "conjure.owner": owners.owner(),
    }


async def made(engine: Engine, image: str, label: str | None) -> tuple[str, str]:
    """A volume and a container that was never started, with an owner's label or with none."""
    tags = {} if label is None else {**labels("swept", "container"), OWNER: label}
    volume = await engine.call(engine.api.create_volume, labels=tags)
    container = await engine.call(engine.api.create_container, image, ["true"], labels=tags)
    return volume["Name"], container["Id"]


async def there(engine: Engine, volume: str, container: str) -> tuple[bool, bool]:
    listed = await engine.call(engine.api.volumes)
    return volume in {each["Name"] for each in listed["Volumes"] or ()}, await exists(engine, container)


@pytest.mark.docker
async def test_two_live_sessions_and_a_dead_one(docker_engine: str, docker_image: str) -> None:
    async with (
        connected(docker_engine) as engine,
        running(docker_engine, plan(docker_image)) as ours,
        owner(docker_engine, docker_image, "container") as (_, (theirs,)),
        owner(docker_engine, docker_image, "leftovers") as (_, live),
    ):
        async with owner(docker_engine, docker_image, "leftovers") as (process, dead):
            process.kill()
            process.wait()
        plain = await made(engine, docker_image, None)
        elsewhere = await made(engine, docker_image, "other:1:2:3:")
        try:
            assert await there(engine, *dead) == (True, True)
            swept = await sweep(engine)
            assert dead[0] in swept.volumes
            assert await there(engine, *dead) == (False, False)
            for kept in (live, plain, elsewhere):
                assert await there(engine, *kept) == (True, True)
            assert await exists(engine, ours.id)
            assert await exists(engine, theirs)
            assert not ours.gone
            # Two at the same time do not trip over each other.
            await asyncio.gather(sweep(engine), sweep(engine))
        finally:
            for volume, container in (plain, elsewhere, live):
                await engine.call(engine.api.remove_container, container, force=True)
                await engine.call(engine.api.remove_volume, volume)


@pytest.mark.docker
async def test_what_runs_is_left_to_its_guard(docker_engine: str, docker_image: str) -> None:
    """A copy of this machine's disk gives itself out as this machine; what it keeps running is not ours."""
    boot, namespace, pid, start, machine = owners.owner().split(":")
    copies = f"other:{namespace}:{pid}:{start}:{machine}"
    dead = f"{boot}:{namespace}:{pid}:1:{machine}"
    async with connected(docker_engine) as engine:
        ids = []
        for label in (copies, dead):
            container = await engine.call(
                engine.api.create_container,
                docker_image,
                ["sleep", "60"],
                labels={**labels("swept", "container"), OWNER: label},
            )
            ids.append(container["Id"])
            await engine.call(engine.api.start, container["Id"])
        try:
            await sweep(engine)
            assert [await exists(engine, each) for each in ids] == [True, False]
        finally:
            await engine.call(engine.api.remove_container, ids[0], force=True)
