"""One server of each kind for all tests of a process; every test has a prefix of its own."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.s3 import Server, moto, rclone


@pytest.fixture(scope="session")
def files_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """rclone: objects are files that a test can look at; conditions are not enforced."""
    with rclone(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="session")
def strict_server() -> Iterator[Server]:
    """moto: conditions are enforced."""
    with moto() as server:
        yield server


@pytest.fixture
def prefix() -> str:
    """A prefix of the test's own."""
    return f"tests/{secrets.token_hex(8)}"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A folder for local copies."""
    return tmp_path / "copies"
