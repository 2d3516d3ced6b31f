from __future__ import annotations

import contextlib
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from conjure_jupyter.executors.docker.check import (
    acheck_environment,
    check_environment,
)

from .builds import OFFLINE, archive, connected


@pytest.mark.docker
def test_what_is_found_is_what_the_engine_says(
    docker_engine: str, docker_image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import docker

    monkeypatch.setenv("DOCKER_HOST", docker_engine)
    found = check_environment(image=docker_image)
    with contextlib.closing(docker.DockerClient(docker_engine)) as client:
        info, version = client.info(), client.version()
        image = client.images.get(docker_image)
    assert found.ok
    assert found.address == docker_engine
    assert (found.version, found.api_version) == (version["Version"], version["ApiVersion"])
    assert (found.image, found.image_id, found.image_size) == (docker_image, image.id, image.attrs["Size"])
    assert (found.storage_driver, found.memory_limit) == (info["Driver"], info["MemoryLimit"])
    assert found.seccomp is any("seccomp" in each for each in info["SecurityOptions"])


@pytest.mark.docker
async def test_a_missing_image_is_a_problem_with_the_next_step(docker_engine: str) -> None:
    async with connected(docker_engine) as engine:
        found = await acheck_environment(image="conjure-test/missing:x", engine=engine)
    assert not found.ok
    assert found.version
    assert found.image_id is None
    (problem,) = found.problems
    assert "conjure docker build --tag conjure-test/missing:x" in problem


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("unix:///nowhere/docker.sock", "/nowhere/docker.sock"),
        ("tcp://127.0.0.1:9", "127.0.0.1:9"),
        ("nonsense://x", "nonsense://x"),
    ],
)
def test_no_engine_is_a_problem_and_no_exception(
    monkeypatch: pytest.MonkeyPatch, address: str, said: str
) -> None:
    pytest.importorskip("docker")
    monkeypatch.setenv("DOCKER_HOST", address)
    found = check_environment()
    assert not found.ok
    (problem,) = found.problems
    assert said in problem
    assert problem.endswith(".")
    assert found.version == ""


def test_a_file_that_is_no_socket_is_a_problem(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "docker.sock"
    path.touch()
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
    assert len(check_environment().problems) == 1


@pytest.fixture
async def old_image(docker_engine: str, docker_image: str) -> AsyncIterator[str]:
    name = f"conjure-test-check:{uuid.uuid4().hex}"
    from conjure_jupyter.executors.docker.building import Build

    async with connected(docker_engine) as engine:
        labels = {"conjure.version": "0.0.0-old"}
        context = archive({"Dockerfile": f"FROM {docker_image}\n"})
        await Build(name, [].append).run(engine, context, {**OFFLINE, "labels": labels})
        yield name
        await engine.call(engine.api.remove_image, name)


@pytest.mark.docker
async def test_an_image_of_another_version_is_a_warning(docker_engine: str, old_image: str) -> None:
    async with connected(docker_engine) as engine:
        found = await acheck_environment(image=old_image, engine=engine)
    assert found.ok
    (warning,) = [text for text in found.warnings if old_image in text]
    assert "0.0.0-old" in warning
    assert "conjure docker build" in warning


#: What an engine says of itself, as Docker's and Podman's do on machines that are not this one.
LIMITED = {"MemoryLimit": True, "SwapLimit": False, "CpuCfsQuota": True, "PidsLimit": True}


@pytest.mark.docker
@pytest.mark.parametrize(
    ("info", "said"),
    [
        (LIMITED, "cannot limit the swap of a container: switch the kernel's"),
        (
            {"MemoryLimit": False, "PidsLimit": False, "SecurityOptions": ["name=seccomp", "name=rootless"]},
            "cannot limit the memory and processes of a container: delegate",
        ),
        ({"SecurityOptions": ["name=seccomp,profile=unconfined"]}, "filters no system calls"),
        ({"SecurityOptions": None}, "filters no system calls"),
    ],
)
async def test_what_an_engine_lacks_is_a_warning(
    docker_engine: str, docker_image: str, monkeypatch: pytest.MonkeyPatch, info: dict[str, object], said: str
) -> None:
    async with connected(docker_engine) as engine:
        real = engine.api.info()
        monkeypatch.setattr(engine.api, "info", lambda: {**real, **info})
        found = await acheck_environment(image=docker_image, engine=engine)
    assert found.ok
    assert any(said in text for text in found.warnings)
    assert all(text.endswith(".") for text in found.warnings)
