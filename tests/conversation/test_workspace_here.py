"""``workspace="."``: the notebook's folder is the tools' working directory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from conjure_jupyter.skills import Skill
from conjure_jupyter.testing import FakeClaude, tool_use

from .conftest import MakeSession


def test_tools_work_in_the_notebook_s_folder(
    serve: Callable[..., FakeClaude], make_session: MakeSession, csv_skill: Skill, project: Path
) -> None:
    def answer(body: dict) -> object:
        told = body["system"]
        if len(body["messages"]) == 1:
            location = told.split("<location>")[1].split("</location>")[0]
            assert location.startswith(".conjure/sessions/")
            assert f"- {location.split('skills/')[0]}uploads/" in told
            return tool_use("view", {"path": location})
        if len(body["messages"]) == 3:
            command = "wc -l < sales.csv > outputs.txt; mkdir -p outputs; cp outputs.txt outputs/"
            return tool_use("bash_tool", {"command": command, "description": "x"})
        if len(body["messages"]) == 5:
            log = f".conjure/sessions/{session.id}/timeline.jsonl"
            return tool_use("create_file", {"path": log, "file_text": "gone", "description": "x"})
        return "Done."

    serve(answer)
    session = make_session(settings={"workspace": "."}, skills=[csv_skill])
    reply = session.chat("Count", files=[project / "sales.csv"])
    assert session.workspace == project
    assert [record.result.is_error for record in reply.tool_calls] == [False, False, True]
    assert (project / "outputs.txt").read_text().strip() == "3"
    assert [file.path for file in reply.files] == ["outputs/outputs.txt"]
    assert (session.folder / "work" / "uploads" / "sales.csv").is_file()
