"""Attempts to get out of a container, as root in it and as a plain user; and the same with fewer bounds."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from conjure_jupyter.engine import engine
from conjure_jupyter.errors import ConjureError, PermissionDeniedError
from conjure_jupyter.executors import CommandResult, ExecutionContext
from conjure_jupyter.executors.docker import DockerExecutor, DockerOptions
from conjure_jupyter.executors.files import Files
from conjure_jupyter.settings import MB
from scripts.setup_docker import client

from .attempts import TABLE, Attempt

pytestmark = pytest.mark.docker

USERS = ["0:0", "1000:1000"] if os.getuid() == 0 else [f"{os.getuid()}:{os.getgid()}"]


@dataclass
class Cell:
    """A container with everything around it that must not be reached.

    Attributes:
        folder: on this machine; ``work`` in it is the workspace.
        secret: a text that lies in files and variables that tools must not see.
        port: of a server on this machine's loopback.
    """

    executor: DockerExecutor
    context: ExecutionContext
    folder: Path
    secret: str
    port: int

    def run(self, command: str, timeout: float = 60.0) -> CommandResult:
        return engine().run(self.executor.run(command, self.context, timeout=timeout))

    def fill(self, command: str) -> str:
        """The command with what only this cell knows."""
        known = {"port": self.port, "first": self.secret[:6], "rest": self.secret[6:]}
        for name, value in {**known, "beside": self.folder / "other"}.items():
            command = command.replace("{" + name + "}", str(value))
        return command


@pytest.fixture(scope="module", params=USERS)
def cell(
    request: pytest.FixtureRequest,
    docker_engine: str,
    docker_image: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Cell]:
    folder, secret = tmp_path_factory.mktemp("cell"), f"secret-{secrets.token_hex(12)}"
    _furnish(folder, secret)
    os.chown(folder / "work", *map(int, request.param.split(":")))
    options = DockerOptions(
        image=docker_image, user=request.param, memory=256 * MB, pids=64, scratch=64 * MB, idle=0
    )
    executor = DockerExecutor(
        options,
        address=docker_engine,
        notebook=folder / "notebook",
        artifacts=folder / "artifacts",
    )
    context = ExecutionContext(working_directory=folder / "work", skills_root=folder / "skills")
    with pytest.MonkeyPatch.context() as patch, socket.create_server(("127.0.0.1", 0)) as server:
        patch.setenv("SOME_TOKEN", secret)
        started = engine().run(executor.start(context))
        try:
            yield Cell(executor, started, folder, secret, server.getsockname()[1])
        finally:
            engine().run(executor.close())


def _furnish(folder: Path, secret: str) -> None:
    """Folders that are shown, in part, and others that are not."""
    for path in (
        "other/session.jsonl",
        "notebook/.env",
        "notebook/.git/config",
        "notebook/sub/.netrc",
        "notebook/sub/.aws/credentials",
        "outside.txt",
    ):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(secret)
    for path in ("notebook/data.csv", "skills/sums/SKILL.md", "artifacts/report.txt", "work/own.txt"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("shown")
    folder.chmod(0o755)


@pytest.mark.parametrize("attempt", TABLE, ids=lambda attempt: attempt.name)
def test_it_does_not_happen(cell: Cell, attempt: Attempt) -> None:
    result = cell.run(cell.fill(attempt.command))
    assert not result.timed_out
    assert result.exit_code not in (0, 127), result.text


def test_what_is_shown_can_be_read(cell: Cell) -> None:
    result = cell.run("cat /notebook/data.csv /mnt/skills/sums/SKILL.md /artifacts/report.txt own.txt")
    assert result.text == "shown" * 4


@pytest.fixture(scope="module")
def looser(docker_engine: str, docker_image: str) -> Iterator[str]:
    """A container with the bounds off that the attempts run into; processes and network are its own."""
    with client(docker_engine) as api:
        config = api.create_host_config(
            cap_add=["SYS_ADMIN", "SYS_PTRACE"],
            init=True,
            network_mode="none",
            security_opt=["seccomp=unconfined", "apparmor=unconfined"],
        )
        config.update(MaskedPaths=[], ReadonlyPaths=[])
        made = api.create_container(docker_image, ["sleep", "600"], host_config=config)
        try:
            api.start(made)
            yield made["Id"]
        finally:
            api.remove_container(made, force=True)


class TestWithFewerBounds:
    """The attempts are good ones: where the bounds are off, they succeed."""

    @pytest.mark.parametrize("attempt", [a for a in TABLE if a.works], ids=lambda attempt: attempt.name)
    def test_it_happens(self, docker_engine: str, looser: str, attempt: Attempt) -> None:
        with client(docker_engine) as api:
            made = api.exec_create(looser, ["bash", "-c", attempt.command])
            output = api.exec_start(made)
            assert api.exec_inspect(made)["ExitCode"] == 0, output


class TestExhaustion:
    """What uses up one thing or the other ends itself, and the next command finds all in order."""

    @pytest.mark.parametrize(
        "command",
        [
            pytest.param("f() { f | f & }; f; sleep 60", id="processes"),
            pytest.param("head -c 2G /dev/zero | tail", id="memory"),
            pytest.param("cat /dev/zero > /tmp/full", id="temporary files"),
            pytest.param("cat /dev/zero > /dev/shm/full", id="shared memory"),
            pytest.param('cat /dev/zero > "$HOME/full"', id="home"),
            pytest.param(
                "mkdir -p /tmp/n; cd /tmp/n; while :; do touch {1..5000}.$((i++)) || exit 1; done", id="names"
            ),
            pytest.param("python3 -c 'f = [open(\"/dev/null\") for _ in range(100000)]'", id="open files"),
            pytest.param("while :; do :; done", id="processor"),
            pytest.param("kill -9 -1", id="every process of the user"),
            pytest.param("kill -STOP -1", id="every process of the user, stopped"),
        ],
    )
    def test_the_next_command_works(self, cell: Cell, command: str) -> None:
        with contextlib.suppress(ConjureError):
            result = cell.run(command, timeout=4.0)
            assert result.timed_out or result.exit_code != 0
        cell.run("rm -rf /tmp/* /dev/shm/* ~/full")
        assert cell.run("echo fine; cat own.txt").text == "fine\nshown"


class TestPlanted:
    """What a container leaves in the workspace leads this machine nowhere."""

    def test_links_are_not_followed_here(self, cell: Cell) -> None:
        targets = {
            "password": "/etc/passwd",
            "root": "/",
            "up": "../outside.txt",
            "out": str(cell.folder / "outside.txt"),
            "proc": "/proc/self/environ",
            "cwd": f"/proc/self/root{cell.folder}/outside.txt",
        }
        planted = "; ".join(f"ln -sfn '{target}' {name}" for name, target in targets.items())
        assert cell.run(planted).exit_code == 0
        files = Files(ExecutionContext(working_directory=cell.folder / "work"))
        for name in targets:
            with pytest.raises(PermissionDeniedError):
                files.read(name, 0, None)
            with pytest.raises(PermissionDeniedError):
                files.write(name, b"changed", None)
            with pytest.raises(PermissionDeniedError):
                engine().run(cell.executor.read(name, cell.context))
        with pytest.raises(PermissionDeniedError):
            files.list("root", 1, 100)
        kinds = {entry.path: entry.kind for entry in files.list(".", 3, 1000)}
        assert {kinds[name] for name in targets} == {"link"}
        assert not any(path.startswith("root/") for path in kinds)
        assert (cell.folder / "outside.txt").read_text() == cell.secret
        cell.run("rm -f " + " ".join(targets))

    def test_files_are_the_users_and_no_more(self, cell: Cell) -> None:
        """Nobody gets a program here that runs as somebody else; no device is left."""
        cell.run("cp /bin/sh sh; chmod 6755 sh; mknod disk b 8 0; mkfifo pipe")
        uid, gid = map(int, cell.executor.options.user.split(":"))
        seen = (cell.folder / "work" / "sh").stat()
        assert (seen.st_uid, seen.st_gid) == (uid, gid)
        assert not (cell.folder / "work" / "disk").exists()
        cell.run("rm -f sh pipe")
