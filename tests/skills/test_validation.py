from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conjure_jupyter.skills import parse_skill_md, validate
from tests.builders import write_skill

#: What skills-ref 0.1.1 said of each text; a part was written by hand, a part by chance.
VERDICTS: list[dict[str, Any]] = json.loads(Path(__file__).with_name("public_verdicts.json").read_text())


@pytest.mark.parametrize("verdict", VERDICTS)
def test_the_verdict_is_that_of_the_public_validator(tmp_path: Path, verdict: dict[str, Any]) -> None:
    folder = write_skill(tmp_path, folder=verdict["folder"], raw=verdict["text"].encode())
    problems = validate(folder)
    assert (not problems) is verdict["valid"], problems
    assert all(problem.severity == "error" for problem in problems)


def test_bytes_that_are_not_utf8_are_a_problem(tmp_path: Path) -> None:
    folder = write_skill(tmp_path, "odd", raw=b"---\nname: odd\ndescription: d\n---\n\xff")
    assert [(problem.code, problem.line) for problem in validate(folder)] == [("bad-encoding", 5)]


def test_every_kind_of_path(tmp_path: Path) -> None:
    folder = write_skill(tmp_path, "odd")
    assert validate(folder) == validate(str(folder)) == validate(folder / "SKILL.md") == []
    assert validate(parse_skill_md(folder)) == []
    assert [problem.code for problem in validate(tmp_path)] == ["no-skill-md"]
    assert [problem.code for problem in validate(tmp_path / "nowhere")] == ["not-found"]
    (tmp_path / "file").write_text("")
    assert [problem.code for problem in validate(tmp_path / "file")] == ["not-found"]


def test_lenient_validation_tells_what_loading_tells_and_recommends(tmp_path: Path) -> None:
    folder = write_skill(
        tmp_path, "odd", frontmatter="name: odd\ndescription: d\nmodel: x", body="line\n" * 501
    )
    assert [(problem.code, problem.severity) for problem in validate(folder, strict=False)] == [
        ("unknown-key", "warning"),
        ("long-body", "info"),
    ]
