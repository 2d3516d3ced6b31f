"""A clean environment for every test: no credential, no setting and no home folder of the user's."""

from __future__ import annotations

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
