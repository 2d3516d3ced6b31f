"""A session against a scripted Claude, in a folder of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conjure_jupyter.conversation import Session
from conjure_jupyter.settings import Settings
from conjure_jupyter.skills import load
from tests.builders import write_skill

MakeSession = Callable[..., Session]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "sales.csv").write_text("region,amount\nnorth,1\nsouth,2\n")
    return folder


@pytest.fixture
def make_session(project: Path) -> Iterator[MakeSession]:
    """Make sessions that approve everything unless told otherwise."""
    made: list[Session] = []

    def make(*, settings: dict[str, Any] | None = None, **options: Any) -> Session:
        chosen = Settings.from_env(**{"approve": "auto", **(settings or {})})
        session = Session(chosen, project=options.pop("project", project), **options)
        made.append(session)
        return session

    yield make
    for session in made:
        session.close()


@pytest.fixture
def csv_skill(tmp_path: Path) -> Any:
    root = tmp_path / "skills"
    write_skill(
        root,
        name="csv-helper",
        description="Counts the rows of CSV files.",
        body="Run `python scripts/count.py FILE`.",
        files={"scripts/count.py": "import sys\nprint(sum(1 for _ in open(sys.argv[1])) - 1, 'rows')\n"},
    )
    return load(root)[0]
