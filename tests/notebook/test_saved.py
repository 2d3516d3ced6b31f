"""A notebook that was run with nobody watching: what is saved in it, and what others make of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import html5lib
import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from conjure_jupyter.notebook.render import MIME
from tests.builders import write_skill

from .files import write_notebook
from .kernels import REPOSITORY

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning:zmq")

COUNT = """import sys, pathlib
rows = pathlib.Path(sys.argv[1]).read_text().splitlines()
pathlib.Path("outputs/report.md").write_text(f"{len(rows) - 1} rows")
print(len(rows) - 1, "rows", "<script>alert(1)</script>", pathlib.Path.cwd())
"""


def prepare(folder: Path, *cells: str) -> Path:
    (folder / "sales.csv").write_text("region,amount\nnorth,1\nsouth,2\n")
    body = "Run the script:\n\n```bash\npython skills/row-counter/scripts/count.py <file.csv>\n```\n"
    write_skill(
        folder / "skills",
        "row-counter",
        description="Counts rows of CSV files. Use for tables.",
        body=body,
        files={"scripts/count.py": COUNT},
    )
    return write_notebook(folder / "saved.ipynb", "%load_ext conjure", "%skills_load ./skills", *cells)


def execute(notebook: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("CONJURE_CLIENT", "offline")
    read = nbformat.read(notebook, as_version=4)
    client = NotebookClient(
        read, kernel_name="python3", resources={"metadata": {"path": str(notebook.parent)}}
    )
    try:
        client.execute()
    finally:
        nbformat.write(read, notebook)
    return read


CELL = "%%claude --approve auto\nHow many rows has file://sales.csv? Use the row-counter skill."


def test_two_runs_on_two_machines_save_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = []
    for name in ("one", "another/place"):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        notebook = execute(prepare(folder, CELL, "_.text[:10]"), monkeypatch)
        outputs = [cell["outputs"] for cell in notebook["cells"]]
        saved.append(json.loads(json.dumps(outputs)))
    assert saved[0] == saved[1]
    assert [len(outputs) for outputs in saved[0]] == [0, 1, 1, 1]
    record = saved[0][2][0]
    assert record["output_type"] == "display_data"
    assert record["data"][MIME]["tool_calls"], record["data"]["text/plain"]
    assert "2 rows" in record["data"]["text/html"]
    assert str(tmp_path) not in json.dumps(saved)


@pytest.mark.parametrize("form", ["html", "markdown"])
def test_nbconvert_shows_the_record_and_nothing_active(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    notebook = prepare(tmp_path, CELL)
    execute(notebook, monkeypatch)
    command = [sys.executable, "-m", "jupyter", "nbconvert", "--to", form, "--stdout", str(notebook)]
    text = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    assert "bash_tool" in text
    assert "2 rows" in text
    assert "<script>alert" not in text
    if form == "html":
        tree = html5lib.parse(text, namespaceHTMLElements=False)
        folded = [found for found in tree.iter("details") if "bash_tool" in "".join(found.itertext())]
        assert folded
        assert not any(found.attrib for found in folded[0].iter() if found.tag not in ("details", "td", "th"))


def test_a_failing_cell_fails_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = prepare(tmp_path, "%%claude --skill nope\nhi")
    with pytest.raises(CellExecutionError, match="SkillNotFoundError"):
        execute(notebook, monkeypatch)
    paused = prepare(tmp_path, CELL.replace("--approve auto", "--approve ask"))
    with pytest.raises(CellExecutionError, match="ApprovalRequiredError") as caught:
        execute(paused, monkeypatch)
    assert "%claude approve" in str(caught.value)
