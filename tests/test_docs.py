"""What the documents say of the repository is there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent
PAGES = [*PROJECT.glob("*.md"), *PROJECT.glob("docs/**/*.md")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_every_link_into_the_repository_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", read(page))
    inside = [link for link in links if not link.startswith(("https://", "mailto:"))]
    assert [link for link in inside if not (page.parent / link).exists()] == []


def test_every_make_target_that_is_named_exists() -> None:
    named = {
        name
        for page in PAGES
        for name in re.findall(r"`make ([a-z]+)|^make ([a-z]+)", read(page), re.MULTILINE)
    }
    listed = subprocess.run(["make", "help"], cwd=PROJECT, capture_output=True, text=True, check=True).stdout
    targets = set(re.findall(r"^  make ([a-z]+)", listed, re.MULTILINE))
    assert {"demo", "test"} < targets
    assert {"".join(name) for name in named} <= targets


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def test_the_picture_is_one_that_a_page_may_carry() -> None:
    picture = PROJECT / "docs" / "images" / "notebook.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size < 300_000


def test_the_library_example_of_the_readme_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", read(PROJECT / "README.md"), re.DOTALL)
    (tmp_path / "notebooks").symlink_to(PROJECT / "notebooks")
    monkeypatch.chdir(tmp_path)
    exec(compile(example, "README.md", "exec"), {})
    assert "outputs/sales-summary.md" in capsys.readouterr().out
