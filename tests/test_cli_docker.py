from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from conjure_jupyter.cli import main
from conjure_jupyter.cli.docker import build_args, report
from conjure_jupyter.errors import SettingsError
from conjure_jupyter.executors.docker.check import Environment

Capture = pytest.CaptureFixture[str]

PROJECT = Path(__file__).parents[1]


@pytest.fixture
def engine(docker_engine: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("DOCKER_HOST", docker_engine)
    return docker_engine


@pytest.mark.parametrize("words", [[], ["build"], ["check"], ["prune"]])
def test_every_command_has_a_help(capsys: Capture, words: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["docker", *words, "--help"])
    assert caught.value.code == 0
    assert " ".join(["usage: conjure docker", *words]) in capsys.readouterr().out


def test_the_help_names_every_build_argument(capsys: Capture) -> None:
    from conjure_jupyter.executors.docker.image import PROXIES, build_arguments

    with pytest.raises(SystemExit):
        main(["docker", "build", "--help"])
    shown = capsys.readouterr().out
    own = set(build_arguments()) - {"BASE", *PROXIES, *map(str.lower, PROXIES)}
    assert own <= set(re.findall(r"[A-Z_]+", shown))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--build-arg", "novalue-"], "NAME=VALUE"),
        (["--build-arg", "=x"], "NAME=VALUE"),
        (["--build-arg", ""], "NAME=VALUE"),
        (["--build-arg", "NOT_IN_THE_ENVIRONMENT"], "no such variable"),
        (["--build-arg", "PIP_INDEX=x"], "PIP_INDEX_URL"),
        (["--ca-bundle", "missing.pem"], "missing.pem: No such file"),
        (["--ca-bundle", "."], "directory"),
        (["--base", "two words"], "two words"),
        (["--tag", "Not A Tag"], "Not A Tag"),
    ],
)
def test_what_cannot_be_used_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["docker", "build", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("conjure: ")
    assert said in captured.err
    assert len(captured.err.splitlines()) == 1


def test_build_arguments_come_from_the_line_or_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "https://me:secret@index.example")
    found = build_args(["PIP_INDEX_URL", "APT_PACKAGES=a b", "HTTP_PROXY=", "PIP_PACKAGES=x==1"])
    assert found == {
        "PIP_INDEX_URL": "https://me:secret@index.example",
        "APT_PACKAGES": "a b",
        "HTTP_PROXY": "",
        "PIP_PACKAGES": "x==1",
    }
    with pytest.raises(SettingsError):
        build_args(["A B=c"])


@pytest.mark.parametrize("words", [["build"], ["prune"], ["check"]])
def test_without_an_engine_one_line_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, words: list[str]
) -> None:
    pytest.importorskip("docker")
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    assert main(["docker", *words]) == 1
    captured = capsys.readouterr()
    shown = captured.out + captured.err
    assert "unix:///nowhere/docker.sock" in shown
    assert len(shown.splitlines()) == 1


@pytest.mark.docker
def test_check_reports_and_exits(engine: str, docker_image: str, capsys: Capture) -> None:
    assert main(["docker", "check", "--image", docker_image]) == 0
    shown = capsys.readouterr().out
    assert engine in shown
    assert docker_image in shown
    assert shown.endswith("Containers can start.\n")
    assert main(["docker", "check", "--image", "conjure-test/missing:x"]) == 1
    shown = capsys.readouterr().out
    assert "Problem: The image conjure-test/missing:x is not on the engine" in shown
    assert "can start" not in shown


def test_a_report_of_a_remote_rootless_engine() -> None:
    found = Environment(
        image="i:1",
        address="ssh://host",
        engine="Podman",
        version="5.0",
        api_version="1.41",
        system="linux",
        architecture="arm64",
        rootless=True,
        remote=True,
        image_id="sha256:0123456789abcdef",
        image_created="2026-01-02T03:04:05Z",
        image_size=5 * 1024 * 1024,
        warnings=("Something is slow.",),
    )
    assert report(found) == [
        "Engine:       Podman 5.0, API 1.41, linux on arm64, rootless, remote",
        "Address:      ssh://host",
        "Limits:       memory no, swap no (cgroup unknown)",
        "System calls: not filtered",
        "Storage:      unknown",
        "Image:        i:1 (0123456789ab, 5.0 MB, built 2026-01-02)",
        "Warning: Something is slow.",
        "Containers can start.",
    ]


@pytest.mark.docker
def test_prune_says_what_it_removed(engine: str, capsys: Capture) -> None:
    import docker

    from conjure_jupyter.executors.docker.owner import OWNER, labels

    name = f"conjure-test-{uuid.uuid4().hex}"
    own = labels("test", "volume")
    boot, namespace, _, start, machine = own[OWNER].split(":")
    own[OWNER] = f"{boot}:{namespace}:999999999:{start}:{machine}"
    with contextlib.closing(docker.DockerClient(engine)) as client:
        client.volumes.create(name, labels=own)
        assert main(["docker", "prune"]) == 0
        assert name not in [volume.name for volume in client.volumes.list()]
    shown = capsys.readouterr().out.splitlines()
    assert f"removed volume {name}" in shown
    assert re.fullmatch(r"Removed .*1 volume.*\.|Removed .* volumes\.", shown[-1])


@pytest.mark.docker
def test_a_failed_build_exits_with_1_and_no_traceback(engine: str, capsys: Capture) -> None:
    assert (
        main(["docker", "build", "--base", "conjure-test/no-such-base:x", "--tag", "conjure-test/cli:x"]) == 1
    )
    captured = capsys.readouterr()
    assert captured.out.startswith("Step 1/")
    assert captured.err.startswith("conjure: The image conjure-test/cli:x could not be built, step 2 of ")
    assert "--base IMAGE" in captured.err
    assert "Traceback" not in captured.err


@pytest.mark.docker
def test_an_interrupt_is_one_line(engine: str, docker_image: str) -> None:
    command = [sys.executable, "-m", "conjure_jupyter.cli", "docker", "build", "--no-cache", "--no-extras"]
    process = subprocess.Popen(
        [*command, "--base", docker_image, "--tag", "conjure-test/cli:interrupted"],
        cwd=PROJECT,
        env=os.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("Step "):
            break
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, "conjure: interrupted\n")
