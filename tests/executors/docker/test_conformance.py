"""The public suite over containers: as root, as a plain user, and without Python in the image."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from conjure_jupyter.executors import Executor
from conjure_jupyter.executors.docker import DockerExecutor, DockerOptions
from conjure_jupyter.testing.executor_contract import ExecutorContract

pytestmark = pytest.mark.docker

#: Numbers that no user of the image has.
USER = 1000


class _Docker(ExecutorContract):
    """What the kinds share: one container for all tests of a class."""

    user = 0

    @pytest.fixture(autouse=True)
    def _engine(self, docker_engine: str, docker_image: str) -> None:
        self.address = docker_engine
        self.image = docker_image

    def prepare(self, folder: Path) -> None:
        for path in (folder / "work", folder / "writable"):
            os.chown(path, self.user, self.user)

    def make_executor(self) -> Executor:
        options = DockerOptions(image=self.image, user=f"{self.user}:{self.user}")
        return DockerExecutor(options, address=self.address)


@pytest.mark.skipif(os.getuid() != 0, reason="files of another user's need root here")
class TestRoot(_Docker):
    pass


class TestUser(_Docker):
    user = os.getuid() or USER


class TestWithoutPython(_Docker):
    has_python = False
    user = os.getuid() or USER

    @pytest.fixture(autouse=True)
    def _bare(self, _engine: None, bare_image: str) -> None:
        self.image = bare_image
