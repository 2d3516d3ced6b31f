from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from conjure_jupyter.testing import FakeClaude
from tests.builders import bash, write_skill

from .conftest import Shell


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("%%claude --mo", ["--model"]),
        ("%%claude --max", ["--max-iterations"]),
        ("%%claude --raw --approve ", ["ask", "auto", "deny"]),
        ("%%claude --approve=d", ["deny"]),
        ("%%claude --on d", ["docker"]),
        ("%%claude --on=lo", ["local"]),
        ("%%claude --skill ", ["csv-helper"]),
        ("%%claude --file sa", ["sales.csv"]),
        ("%%claude --model claude-so", ["claude-sonnet-5-5"]),
        ("%%conjure --qu", ["--quiet"]),
        ("%claude st", ["status", "stop"]),
        ("%claude approve n", ["no"]),
        ("%skills cs", ["csv-helper"]),
        ("%skills_load sk", ["skills/"]),
        ("%skills_load skills/", ["skills/csv-helper/"]),
        ("%%claude\nRead @sal", ["sales.csv", "sales_total"]),
        ("%%claude\nRead file://sal", ["sales.csv"]),
        ("%%claude\nIt is {sales_", ["sales_total"]),
        ("%%claude @skills/csv-helper/S", ["skills/csv-helper/SKILL.md"]),
    ],
)
def test_tab(shell: Shell, project: Path, cell: str, expected: list[str]) -> None:
    write_skill(project / "skills", "csv-helper")
    shell.run("%skills_load skills")
    shell.value("sales_total = 3")
    found = {completion.text for completion in complete(shell, cell)}
    assert set(expected) <= found
    if "--model" not in cell:  # the SDK adds the models it knows, once it is imported
        assert found == set(expected)


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("%artifacts ", ["add", "get", "save", "remove", "help"]),
        ("%artifacts re", ["remove"]),
        ("%artifacts add total sales_", ["sales_total"]),
        ("%artifacts add total sal", ["sales.csv", "sales_total"]),
        ("%artifacts get ", ["sales_by_name", "outputs/made.csv", "uploads/sales_by_name.json"]),
        ("file = %artifacts get sa", ["sales_by_name"]),
        ("%artifacts save outputs/", ["outputs/made.csv"]),
        ("%artifacts save sales_by_name sal", ["sales.csv"]),
        ("%artifacts save sales_by_name x --", ["--overwrite"]),
        ("%artifacts remove ", ["sales_by_name"]),
        ("%%claude\nRead @sales_", ["sales_total", "sales_by_name"]),
        ("%%claude\nRead file://sal", ["sales_by_name", "sales.csv"]),
        ("%claude sessions --", ["--delete", "--prune", "--dry-run"]),
        ("%claude sessions --prune 30 --d", ["--delete", "--dry-run"]),
        ("%claude undo ", ["--dry-run"]),
    ],
)
def test_tab_knows_artifacts(
    shell: Shell, serve: Callable[..., FakeClaude], cell: str, expected: list[str]
) -> None:
    serve([bash("echo a > outputs/made.csv"), "done"])
    shell.value("sales_total = 3")
    shell.printed("%artifacts add sales_by_name sales_total")
    shell.value("%%claude --approve auto\nmake it")
    assert {completion.text for completion in complete(shell, cell)} == set(expected)


def complete(shell: Shell, cell: str) -> list[object]:
    import warnings

    from IPython.core.completer import provisionalcompleter

    with provisionalcompleter(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(shell.ip.Completer.completions(cell, len(cell)))


@pytest.mark.parametrize("cell", ["x = sales_", "print('@sal", "%%timeit\n@sal", "%%claude\nme@sal"])
def test_elsewhere_nothing_of_ours_is_offered(shell: Shell, project: Path, cell: str) -> None:
    assert not any(getattr(found, "type", "") == "conjure" for found in complete(shell, cell))


def test_hidden_files_and_missing_folders(shell: Shell, project: Path) -> None:
    (project / ".secret").write_text("x")
    assert ".secret" not in {found.text for found in complete(shell, "%%claude\n@")}
    assert {found.text for found in complete(shell, "%%claude\n@.sec")} == {".secret"}
    offered = complete(shell, "%%claude --file nowhere/")
    assert not any(getattr(found, "type", "") == "conjure" for found in offered)
