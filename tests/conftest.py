"""A clean environment for every test, a scripted Claude, and an engine with small images for containers."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conjure_jupyter.testing import FakeClaude


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    for name in list(os.environ):
        if name.startswith(("ANTHROPIC_", "CONJURE_", "AWS_", "JPY_")):
            monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    monkeypatch.setattr(Path, "home", classmethod(lambda cls: cls(home)))


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., FakeClaude]]:
    """Start a FakeClaude and lead the SDK to it."""
    running: list[FakeClaude] = []

    def start(script: Any = (), **options: Any) -> FakeClaude:
        claude = FakeClaude(script, **options).__enter__()
        running.append(claude)
        for name, value in claude.env.items():
            monkeypatch.setenv(name, value)
        return claude

    yield start
    for claude in running:
        claude.close()


@pytest.fixture(scope="session")
def docker_engine() -> Iterator[str]:
    """The address of an engine; where there is none the test is skipped, with one line."""
    from tests.executors.docker.engine import NoEngineError, engine

    with contextlib.ExitStack() as stack:
        try:
            address = stack.enter_context(engine())
        except NoEngineError as error:
            pytest.skip(str(error))
        yield address


@pytest.fixture(scope="session")
def docker_image(docker_engine: str) -> str:
    """The name of a small image with Python and bash."""
    from tests.executors.docker import images

    return _image(images.base, docker_engine)


@pytest.fixture(scope="session")
def bare_image(docker_engine: str) -> str:
    """The name of a small image with bash and without Python."""
    from tests.executors.docker import images

    return _image(images.bare, docker_engine)


def _image(make: Callable[[str], str], address: str) -> str:
    from tests.executors.docker.engine import NoEngineError

    try:
        return make(address)
    except NoEngineError as error:
        pytest.skip(str(error))
