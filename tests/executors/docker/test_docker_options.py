"""What a container may be and use."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import pytest

from conjure_jupyter.errors import SettingsError
from conjure_jupyter.executors.docker import DockerOptions, Volume
from conjure_jupyter.executors.docker.options import container_network, parse_volume
from conjure_jupyter.settings import MB, Settings


def test_the_defaults() -> None:
    options = DockerOptions.of(Settings())
    assert (options.memory, options.cpus, options.network, options.user) == (2048 * MB, 1.0, "none", None)


def test_every_setting_counts() -> None:
    settings = Settings(
        docker_image="mine:1",
        docker_cpus=2,
        docker_pids=99,
        docker_user="5:6",
        docker_gpus="all",
        docker_volumes=("/data:/data", "cache:/cache:rw"),
        docker_idle=5,
        memory_limit=64 * MB,
        network="limited",
        network_hosts=("pypi.org",),
    )
    assert DockerOptions.of(settings) == DockerOptions(
        image="mine:1",
        cpus=2.0,
        pids=99,
        user="5:6",
        gpus="all",
        volumes=(
            Volume(source="/data", target=PurePosixPath("/data")),
            Volume(source="cache", target=PurePosixPath("/cache"), writable=True),
        ),
        idle=5.0,
        memory=64 * MB,
        network="limited",
        hosts=("pypi.org",),
    )


@pytest.mark.parametrize(("asked", "found"), [(None, "none"), ("full", "bridge"), ("bridge", "bridge")])
def test_networks(asked: str | None, found: str) -> None:
    assert container_network(asked) == found


@pytest.mark.parametrize("asked", ["host", "container:x", "", "my-net"])
def test_networks_that_are_refused(asked: str) -> None:
    with pytest.raises(SettingsError, match="network"):
        container_network(asked)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/data",
        "/data:relative",
        "/data:/",
        "/data:/a/../etc",
        "/data:/data:rwx",
        "/:/host",
        "/var/run/docker.sock:/sock",
        "/proc:/proc2",
        ":/data",
    ],
)
def test_volumes_that_are_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="docker_volumes"):
        parse_volume(text)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"image": ""}, "docker_image"),
        ({"image": "--privileged"}, "docker_image"),
        ({"memory": 1}, "32 MB"),
        ({"cpus": 0}, "docker_cpus"),
        ({"cpus": float("nan")}, "docker_cpus"),
        ({"pids": 1}, "docker_pids"),
        ({"idle": -1}, "docker_idle"),
        ({"user": "root"}, "docker_user"),
        ({"gpus": "many"}, "docker_gpus"),
        ({"network": "host"}, "network"),
    ],
)
def test_what_cannot_be(change: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        DockerOptions(**change)
