from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from conjure_jupyter import __version__
from conjure_jupyter.cli import main
from tests.builders import write_skill

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_new_skill_is_valid_and_works(tmp_path: Path, capsys: Capture) -> None:
    assert main(["init", "my-skill"]) == 0
    assert main(["validate", "my-skill"]) == 0
    assert main(["validate", "--lenient", "my-skill"]) == 0
    (tmp_path / "text.txt").write_text("one two\nthree\n")
    done = subprocess.run(
        [sys.executable, "my-skill/scripts/count.py", "text.txt"], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == {"file": "text.txt", "lines": 2, "words": 3, "characters": 14}
    assert (tmp_path / "my-skill/references/format.md").exists()
    capsys.readouterr()


def test_validate_prints_one_line_a_problem(tmp_path: Path, capsys: Capture) -> None:
    write_skill(tmp_path / "skills", "good")
    write_skill(tmp_path / "skills", "Bad", frontmatter="name: Bad\ndescription: d\nmodel: x")
    assert main(["validate", "skills"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert sum(": error: " in line for line in lines) == 2
    assert main(["validate", "--lenient", "skills"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sum(": warning: " in line for line in lines) == 2


def test_validate_takes_files_archives_and_several_paths(tmp_path: Path, capsys: Capture) -> None:
    write_skill(tmp_path, "one")
    write_skill(tmp_path, "two")
    assert main(["pack", "one"]) == 0
    assert main(["validate", "one.skill", "two/SKILL.md", "two"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4
    (tmp_path / "empty").mkdir()
    assert main(["validate", "empty"]) == 1
    (tmp_path / "bad.skill").write_bytes(b"no zip")
    assert main(["validate", "bad.skill"]) == 1


def test_pack_says_where(tmp_path: Path, capsys: Capture) -> None:
    write_skill(tmp_path, "csv")
    (tmp_path / "out").mkdir()
    assert main(["pack", "csv", "-o", "out"]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "out/csv.skill")
    write_skill(tmp_path, "odd", frontmatter="name: other\ndescription: d")
    assert main(["pack", "odd"]) == 0
    assert "name" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["validate", "nowhere"],
        ["pack", "nowhere"],
        ["pack", "file.txt"],
        ["pack", "empty"],
        ["pack", "csv", "-o", "nowhere/x.skill"],
        ["init", "Bad Name"],
        ["init", "../up"],
        ["init", ""],
        ["init", "csv"],
    ],
)
def test_what_cannot_be_used_is_one_line(tmp_path: Path, capsys: Capture, words: list[str]) -> None:
    (tmp_path / "file.txt").write_text("")
    (tmp_path / "empty").mkdir()
    write_skill(tmp_path, "csv")
    assert main(words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1
    assert captured.err.startswith("conjure: ")
    assert not (tmp_path.parent / "up").exists()


@pytest.mark.parametrize("words", [[], ["unknown"], ["validate"], ["validate", "--strict", "--lenient", "."]])
def test_wrong_usage_exits_with_2(capsys: Capture, words: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    assert "usage: conjure" in capsys.readouterr().err


def test_version_from_a_process_of_its_own() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "conjure_jupyter.cli", "--version"],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[1],
    )
    assert done.stdout.strip() == f"conjure {__version__}"


def test_the_demo_gets_its_own_options(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["demo", "--help"])
    assert caught.value.code == 0
    assert "conjure demo" in capsys.readouterr().out
