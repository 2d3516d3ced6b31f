"""The engine that does not see this machine's files, and a session on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from ..engine import NoEngineError
from .apart import Apart
from .session import Session


@pytest.fixture(scope="session")
def apart(docker_engine: str, docker_image: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apart]:
    """The engine, with the tests' image; skips with one line where there can be none."""
    try:
        engine = Apart(tmp_path_factory.getbasetemp())
    except NoEngineError as error:
        pytest.skip(str(error))
    try:
        engine.start()
        engine.load(docker_engine, docker_image)
        yield engine
    except NoEngineError as error:
        pytest.skip(str(error))
    finally:
        engine.close()


@pytest.fixture
async def session(apart: Apart, docker_image: str, tmp_path: Path) -> AsyncIterator[Session]:
    """A session with a workspace, skills and the notebook's folder, not started."""
    made = Session(apart.address, docker_image, tmp_path)
    yield made
    await made.close()
