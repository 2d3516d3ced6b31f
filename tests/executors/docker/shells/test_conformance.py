"""The public suite over attached shells in an image with busybox; coreutils have their turn elsewhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from conjure_jupyter.executors import Executor
from conjure_jupyter.testing.executor_contract import ExecutorContract

from .thin import ThinExecutor

pytestmark = pytest.mark.docker

#: A number that no user of the images has.
USER = os.getuid() or 1000


class TestBusybox(ExecutorContract):
    has_python = False
    address: str
    image: str

    def prepare(self, folder: Path) -> None:
        for path in (folder / "work", folder / "writable"):
            os.chown(path, USER, USER)

    def make_executor(self) -> Executor:
        return ThinExecutor(self.address, self.image, USER)

    @pytest.fixture(autouse=True)
    def _image(self, docker_engine: str, busybox_image: str) -> None:
        self.address, self.image = docker_engine, busybox_image
