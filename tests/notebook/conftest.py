"""A shell of our own with the extension loaded, in a folder of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import CapturedIO, capture_output
from traitlets.config import Config

from conjure_jupyter.notebook.extension import load_ipython_extension, unload_ipython_extension


class Shell:
    """A real IPython shell and what its cells gave."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.ip = shell

    def run(self, code: str) -> tuple[Any, CapturedIO]:
        """Run a cell; its value, and what it printed and displayed."""
        with capture_output() as captured:
            result = self.ip.run_cell(code, store_history=True)
        return result, captured

    def value(self, code: str) -> Any:
        """The value of a cell that must succeed."""
        result, captured = self.run(code)
        assert result.success, captured.stdout + captured.stderr
        return result.result

    def printed(self, code: str) -> str:
        """What a cell that must succeed printed."""
        result, captured = self.run(code)
        assert result.success, captured.stdout + captured.stderr
        return captured.stdout

    def complaint(self, code: str) -> str:
        """The one line that a cell failed with."""
        result, captured = self.run(code)
        assert not result.success
        shown = (captured.stdout + captured.stderr).strip()
        assert "Traceback" not in shown
        assert "\n" not in shown, f"more than one line: {shown}"
        return shown


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "sales.csv").write_text("region,amount\nnorth,1\nsouth,2\n")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    return folder


@pytest.fixture
def bare(project: Path) -> Iterator[Shell]:
    """A shell without the extension."""
    config = Config()
    config.HistoryManager.hist_file = ":memory:"
    config.InteractiveShell.colors = "nocolor"
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance(config=config)
    yield Shell(shell)
    shell.history_manager.end_session()
    InteractiveShell.clear_instance()


@pytest.fixture
def shell(bare: Shell) -> Iterator[Shell]:
    """A shell with the extension."""
    load_ipython_extension(bare.ip)
    yield bare
    unload_ipython_extension(bare.ip)
