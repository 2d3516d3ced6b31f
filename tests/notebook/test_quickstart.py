"""The quick start's notebook, by the real SDK against a scripted Claude in place of the offline client."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conjure_jupyter.notebook import demo
from conjure_jupyter.notebook.render import MIME
from conjure_jupyter.testing import FakeClaude, message, tool_use

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


def like_claude(body: dict[str, Any]) -> dict[str, Any]:
    """Reads the skill, runs its script from its folder, then answers with a number it was given."""
    results = [
        block
        for entry in body["messages"]
        if entry["role"] == "user"
        for block in entry["content"]
        if block["type"] == "tool_result"
    ]
    if not results:
        return message("I will read the skill.", tool_use("view", {"path": "skills/csv-helper/SKILL.md"}))
    if len(results) == 1:
        script = "python scripts/summarize_csv.py ../../uploads/sales.csv --out ../../outputs"
        command = f"cd skills/csv-helper && {script}; ls ../../outputs"
        return message(tool_use("bash_tool", {"command": command, "description": "Summarise"}))
    rows = next(line for line in str(results[1]["content"]).splitlines() if "rows" in line)
    return message(f"**Done.** {rows}")


@pytest.mark.filterwarnings("ignore::DeprecationWarning:nbclient", "ignore::DeprecationWarning:zmq")
def test_with_claude(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "shipped", lambda: NOTEBOOKS)
    monkeypatch.chdir(tmp_path)
    with FakeClaude(like_claude) as claude:
        for name, value in claude.env.items():
            monkeypatch.setenv(name, value)
        assert demo.main([]) == 0, capsys.readouterr().out
        requests = claude.messages
    said = capsys.readouterr().out
    assert "361 rows" in said
    assert "✓ bash_tool" in said
    assert len(requests) == 3
    notebook = json.loads((tmp_path / "demo" / demo.NOTEBOOK).read_text())
    outputs = [output.get("data", {}) for cell in notebook["cells"] for output in cell.get("outputs", ())]
    replies = [data[MIME] for data in outputs if MIME in data]
    assert [reply["stop_reason"] for reply in replies] == ["end_turn"]
    assert {file["path"] for file in replies[0]["files"]} >= {"outputs/sales-summary.md"}
