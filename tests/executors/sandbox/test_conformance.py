"""The public suite inside each sandbox."""

from __future__ import annotations

import pytest

from conjure_jupyter.executors import Executor, LocalExecutor
from conjure_jupyter.testing.executor_contract import ExecutorContract

from .conftest import need


class TestBubblewrap(ExecutorContract):
    @pytest.fixture(autouse=True)
    def _works(self) -> None:
        need("bubblewrap")

    def make_executor(self) -> Executor:
        return LocalExecutor(sandbox="bubblewrap")


class TestLandlock(ExecutorContract):
    @pytest.fixture(autouse=True)
    def _works(self) -> None:
        need("landlock")

    def make_executor(self) -> Executor:
        return LocalExecutor(sandbox="landlock")
