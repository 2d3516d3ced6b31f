"""The demo: what it copies, what it runs, what it says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from conjure_jupyter.notebook import demo
from conjure_jupyter.notebook.render import MIME

from .files import write_notebook

REPLY = {
    "format": 1,
    "text": "Sales grew\x1b[31m by a third.",
    "tool_calls": [
        {"name": "view", "summary": "skills/csv-helper/SKILL.md", "is_error": False},
        {"name": "bash_tool", "summary": "python nothing.py", "is_error": True},
    ],
    "files": [{"path": "outputs/chart.svg", "size": 1234, "content_type": "image/svg+xml"}],
    "error": None,
}
SHOW = f"from IPython.display import display\ndisplay({{{MIME!r}: {REPLY!r}}}, raw=True)"


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "shipped"
    other = {"name": "someone-elses", "display_name": "Another", "language": "python"}
    write_notebook(folder / demo.NOTEBOOK, "import sys\nprint(sys.executable)", SHOW, kernel=other)
    for name in ("skills/csv-helper/SKILL.md", "data/sales.csv", "data/.ipynb_checkpoints/old.csv"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    monkeypatch.setattr(demo, "shipped", lambda: folder)
    monkeypatch.chdir(tmp_path)
    return folder


def outputs(path: Path) -> Sequence[dict]:
    return [output for cell in json.loads(path.read_text())["cells"] for output in cell["outputs"]]


def test_it_runs_the_notebook_and_says_what_it_did(shipped, tmp_path, capsys) -> None:
    made = tmp_path / "demo" / ".conjure" / "sessions" / "s1" / "work" / "outputs" / "chart.svg"
    made.parent.mkdir(parents=True)
    made.write_text("<svg/>")

    assert demo.main([]) == 0

    said = capsys.readouterr().out
    assert "offline client" in said
    assert "✓ view: skills/csv-helper/SKILL.md" in said
    assert "✗ bash_tool: python nothing.py" in said
    assert "Sales grew by a third." in said
    assert "made demo/.conjure/sessions/s1/work/outputs/chart.svg (1.2 KB)" in said
    assert "outputs: demo/01_quickstart.ipynb" in said
    assert any(MIME in output.get("data", {}) for output in outputs(tmp_path / "demo" / demo.NOTEBOOK))


def test_the_kernel_is_of_this_environment_whatever_the_notebook_names(shipped, tmp_path, capsys) -> None:
    demo.main([])
    assert outputs(tmp_path / "demo" / demo.NOTEBOOK)[0]["text"] == [f"{sys.executable}\n"]


def test_a_failing_cell_is_told_and_the_notebook_kept(shipped, tmp_path, capsys) -> None:
    write_notebook(shipped / demo.NOTEBOOK, SHOW, "1 / 0", "print('never')")

    assert demo.main(["elsewhere"]) == 1

    said = capsys.readouterr().out
    assert "✓ view" in said
    assert "It did not run to its end: ZeroDivisionError: division by zero" in said
    kept = outputs(tmp_path / "elsewhere" / demo.NOTEBOOK)
    assert [output["output_type"] for output in kept] == ["display_data", "error"]


def test_a_kernel_that_dies_is_told(shipped, capsys) -> None:
    write_notebook(shipped / demo.NOTEBOOK, "import os\nos._exit(1)")
    assert demo.main([]) == 1
    assert "the kernel died" in capsys.readouterr().out


def test_an_interrupt_is_told_and_leaves_no_kernel(shipped, tmp_path) -> None:
    write_notebook(
        shipped / demo.NOTEBOOK, "import os, time\nopen('pid', 'w').write(str(os.getpid()))\ntime.sleep(300)"
    )
    demo.main(["--no-run"])
    code = (
        f"from conjure_jupyter.cli import main; raise SystemExit(main(['demo', {str(tmp_path / 'demo')!r}]))"
    )
    command = [sys.executable, "-c", code]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    pid = tmp_path / "demo" / "pid"
    deadline = time.monotonic() + 60
    while not (pid.exists() and pid.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.05)

    process.send_signal(signal.SIGINT)

    said, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "It did not run to its end: interrupted" in said
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_preparing_copies_what_the_notebook_needs(shipped, tmp_path) -> None:
    assert demo.main(["--no-run"]) == 0
    made = {str(path.relative_to(tmp_path / "demo")) for path in (tmp_path / "demo").rglob("*.*")}
    assert made == {"01_quickstart.ipynb", "skills/csv-helper/SKILL.md", "data/sales.csv"}


def test_tutorials_that_are_shipped_come_along(shipped, tmp_path) -> None:
    for name in ("02_artifacts.ipynb", "03_docker.ipynb"):
        write_notebook(shipped / name, "1 + 1")
    assert demo.main(["--no-run"]) == 0
    assert (tmp_path / "demo" / "02_artifacts.ipynb").is_file()
    assert (tmp_path / "demo" / "03_docker.ipynb").is_file()


def test_what_the_user_changed_stays(shipped, tmp_path, capsys) -> None:
    demo.main(["--no-run"])
    (tmp_path / "demo" / "data" / "sales.csv").write_text("mine")
    write_notebook(tmp_path / "demo" / demo.NOTEBOOK, "mine = 1")
    capsys.readouterr()

    demo.main(["--no-run"])

    said = capsys.readouterr().out
    assert (tmp_path / "demo" / "data" / "sales.csv").read_text() == "mine"
    assert "mine = 1" in (tmp_path / "demo" / demo.NOTEBOOK).read_text()
    assert said.count("stays") == 2


def test_running_again_is_no_change_of_the_users(shipped, capsys) -> None:
    demo.main([])
    demo.main(["--no-run"])
    assert "stays" not in capsys.readouterr().out


def test_a_folder_that_cannot_be_made_is_one_line(shipped, tmp_path, capsys) -> None:
    (tmp_path / "taken").write_text("")
    assert demo.main(["taken"]) == 1
    assert "cannot be made" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, "no credential"),
        ({"ANTHROPIC_API_KEY": "k"}, "credential from ANTHROPIC_API_KEY; its tool calls run without asking"),
        ({"ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}, "credential from ANTHROPIC_BASE_URL"),
        ({"ANTHROPIC_API_KEY": "k", "CONJURE_CLIENT": "offline"}, "as CONJURE_CLIENT asks"),
        ({"CONJURE_CLIENT": "anthropic"}, "would find no credential"),
    ],
)
def test_it_says_who_answers(shipped, monkeypatch, capsys, environment, expected) -> None:
    monkeypatch.setattr(demo, "_execute", lambda notebook, folder: None)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    demo.main([])
    assert expected in capsys.readouterr().out
