from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from conjure_jupyter.conversation import Reply
from conjure_jupyter.testing import FakeClaude, HTTPError, tool_use
from tests.builders import write_skill

from .conftest import Shell

Serve = Callable[..., FakeClaude]


def test_a_cell_gives_a_reply(shell: Shell, serve: Serve) -> None:
    serve(["Four."])
    reply = shell.value("%%claude --out kept\nWhat is 2 + 2?")
    assert isinstance(reply, Reply)
    assert reply.text == "Four."
    assert shell.ip.user_ns["_"] is shell.ip.user_ns["kept"] is reply


def test_free_text_is_never_a_shell_line(shell: Shell, serve: Serve) -> None:
    claude = serve(["ok"] * 3)
    shell.value("%%claude it's \"odd $HOME `ls` \\\nand 'this isn't\n")
    sent = claude.messages[0].body["messages"][0]["content"][-1]["text"]
    assert sent == "it's \"odd $HOME `ls` \\\nand 'this isn't"
    shell.value("%%claude --max-iterations 2 -- --not an option\nbody")
    assert claude.messages[1].body["messages"][-1]["content"][-1]["text"] == "--not an option\nbody"
    shell.value("%%claude a prompt on the line alone")
    assert "a prompt on the line alone" in str(claude.messages[2].body["messages"][-1])


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("%%claude --bujet 1\nhi", "SettingsError: --bujet: no such option; did you mean '--budget'?"),
        ("%%claude --budget\nhi", "--budget: needs a value"),
        ("%%claude --budget 'x\nhi", "--budget: the quote ' does not end"),
        ("%%claude --budget lots\nhi", "'lots' is neither dollars"),
        ("%%claude --raw=1\nhi", "--raw: takes no value"),
        ("%%claude --max-iterations few\nhi", "--max-iterations: invalid int value: 'few'"),
        ("%%claude --max-iterations 0\nhi", "max_iterations"),
        ("%%claude --approve perhaps\nhi", "--approve: invalid choice: 'perhaps'"),
        ("%%claude --skill nope\nhi", "SkillNotFoundError: Skill 'nope' not found"),
        ("%%claude --file nope.csv\nhi", "PathNotFoundError: nope.csv: no such file"),
        ("%%claude --out 1x\nhi", "--out: '1x' cannot be the name of a variable"),
        ("%%claude --on hosted\nhi", "--on hosted: comes in a later version"),
        ("%%claude --session ../x\nhi", "cannot be a session's name"),
        ("%%claude --retry\nhi", "--retry: this session has no turn yet"),
        ("%%claude\n\n", "the prompt is empty"),
        ("%claude tell me", "no such sub-command"),
        ("%claude stats", "did you mean 'status'?"),
        ("%claude undo", "no session yet"),
        ("%claude undo --yes", "takes [TURN] [--dry-run]"),
        ("%claude sessions --all", "takes nothing, --delete ID, or --prune"),
        ("%claude sessions --prune lots", "'lots' is no number of days"),
        ("%claude sessions --delete nope", "No session 'nope'"),
        ("%claude trace 5", "no session yet"),
        ("%claude approve", "No call waits"),
        ("%claude resume nope", "No session 'nope'"),
        ("%claude fix", "nothing to fix"),
        ("%skills nope", "Skill 'nope' not found"),
        ("%skills_load", "name a folder or a .skill file"),
    ],
)
def test_what_is_wrong_is_one_line(shell: Shell, cell: str, said: str) -> None:
    assert said in shell.complaint(cell)


def test_an_unknown_model_is_one_line(shell: Shell, serve: Serve) -> None:
    serve(["never"], models=["claude-known"])
    result, captured = shell.run("%%claude --model claude-nope\nhi")
    assert not result.success
    assert type(result.error_in_exec).__name__ == "ModelNotFoundError"
    assert "Traceback" not in captured.stdout + captured.stderr


def test_a_failed_turn_keeps_its_reply(shell: Shell, serve: Serve) -> None:
    serve([HTTPError(400, message="no good")])
    result, _ = shell.run("%%claude --out r\nhi")
    assert not result.success
    assert shell.ip.user_ns["r"].stop_reason == "error"
    assert "no good" in shell.ip.user_ns["r"].error


def test_help_documents_every_option(shell: Shell) -> None:
    from conjure_jupyter.notebook.magics import OPTIONS

    shown = shell.printed("%%claude --help")
    assert all(name in shown for names in OPTIONS for name in names.split())
    assert shell.ip.object_inspect_mime("%%claude")["text/plain"].count("--max-iterations") >= 1
    assert "%claude fix" in shell.printed("%claude help")


def test_skills_are_loaded_shown_and_used(shell: Shell, project: Path) -> None:
    write_skill(project / "skills", "csv-helper")
    (project / "skills" / "broken").mkdir()
    (project / "skills" / "broken" / "SKILL.md").write_text("no frontmatter")
    _, loaded = shell.run("%skills_load ./skills")
    shown = loaded.outputs[0].data["text/plain"]
    assert "1 skill\n" in shown
    assert "csv-helper" in shown
    assert "broken" in shown
    _, one = shell.run("%skills csv-helper")
    assert "Summarises CSV files" in one.outputs[0].data["text/html"]
    assert "csv-helper" in shell.printed("%claude status")


def test_one_bad_path_does_not_stop_the_others(shell: Shell, project: Path) -> None:
    write_skill(project / "it's here", "csv-helper")
    _, loaded = shell.run('%skills_load nowhere "it\'s here"')
    assert "csv-helper" in loaded.outputs[0].data["text/plain"]
    assert "nowhere" in loaded.outputs[0].data["text/plain"]


def test_a_dry_run_sends_and_writes_nothing(shell: Shell, serve: Serve, project: Path) -> None:
    claude = serve(["never"])
    shell.value("x = 41")
    _, captured = shell.run("%%claude --dry-run --file sales.csv --budget 0.50\nIs it {x}?")
    shown = captured.outputs[0].data["text/plain"]
    assert "Is it 41?" in shown
    assert "uploads/sales.csv" in shown
    assert "USD" in shown
    assert not claude.messages
    assert not list((project / ".conjure" / "sessions").glob("*"))


def test_files_and_variables_reach_claude(shell: Shell, serve: Serve, project: Path) -> None:
    claude = serve(["ok"])
    shell.value("notes = {'a': 1}")
    shell.value("%%claude\nRead @sales.csv and @notes, not @missing nor me@sales.csv.")
    work = next((project / ".conjure" / "sessions").glob("*/work/uploads"))
    assert sorted(path.name for path in work.iterdir()) == ["notes.json", "sales.csv"]
    assert "uploads/notes.json" in str(claude.messages[0].body["messages"][0])


def test_sessions_by_name_new_and_resume(shell: Shell, serve: Serve) -> None:
    claude = serve(["one", "two", "three", "four"])
    first = shell.value("%%claude\na").session_id
    assert shell.value("%%claude --session other\nb").session_id == "other"
    assert shell.value("%%claude --new\nc").session_id not in (first, "other")
    assert first in shell.printed("%claude sessions")
    assert "1 turn so far" in shell.printed(f"%claude resume {first}")
    assert shell.value("%%claude\nd").session_id == first
    assert [m["role"] for m in claude.messages[3].body["messages"]] == ["user", "assistant", "user"]
    assert "together" in shell.printed("%claude cost")
    (other,) = (line for line in shell.printed("%claude sessions").splitlines() if line.endswith("  c"))
    assert "Erased" in shell.printed("%claude sessions --delete " + other.split()[0])


def test_retry_branches_from_before_the_turn(shell: Shell, serve: Serve) -> None:
    claude = serve(["one", "two"])
    shell.value("%%claude\nfirst try")
    shell.value("%%claude --retry\nsecond try")
    sent = claude.messages[1].body["messages"]
    assert [message["role"] for message in sent] == ["user"]
    assert "second try" in str(sent)


def test_fix_asks_about_the_last_error(shell: Shell, serve: Serve) -> None:
    claude = serve(["Divide by one."])
    result, _ = shell.run("denominator = 0\nvalue = '{denominator}'\n1 / denominator")
    assert not result.success
    assert shell.value("%claude fix it's broken").text == "Divide by one."
    sent = claude.messages[0].body["messages"][0]["content"][-1]["text"]
    assert "it's broken" in sent
    assert "value = '{denominator}'\n1 / denominator" in sent
    assert "ZeroDivisionError: division by zero" in sent
    assert "interactiveshell.py" not in sent


def test_trace_shows_the_calls_of_a_turn(shell: Shell, serve: Serve) -> None:
    serve([tool_use("view", {"path": "."}), "done"])
    shell.value("%%claude --approve auto\nlook")
    _, captured = shell.run("%claude trace 1")
    assert "view" in captured.outputs[0].data["text/plain"]
    assert "<details" in captured.outputs[0].data["text/html"]


def test_the_model_is_changed_for_good(shell: Shell, serve: Serve) -> None:
    claude = serve(["a", "b"])
    assert "claude-opus-9" in shell.printed("%claude model claude-opus-9")
    shell.value("%%claude\nhi")
    shell.value("%%claude --model claude-haiku-9\nhi")
    assert [request.body["model"] for request in claude.messages] == ["claude-opus-9", "claude-haiku-9"]


def test_headless_a_call_that_needs_a_word_pauses_the_turn(shell: Shell, serve: Serve) -> None:
    claude = serve([tool_use("bash_tool", {"command": "echo made > outputs/x.txt"}), "I made x.txt."])
    result, _ = shell.run("%%claude\nmake x.txt")
    assert type(result.error_in_exec).__name__ == "ApprovalRequiredError"
    assert "Waiting:" in shell.printed("%claude status")
    reply = shell.value("%claude approve")
    assert reply.text == "I made x.txt."
    assert [ref.path for ref in reply.files] == ["outputs/x.txt"]
    assert len(claude.messages) == 2


def test_a_refusal_with_words_reaches_claude(shell: Shell, serve: Serve) -> None:
    claude = serve([tool_use("bash_tool", {"command": "echo x > outputs/x.txt"}), "Understood."])
    shell.run("%%claude\nmake x.txt")
    shell.value("%claude approve no not on a Sunday")
    assert "not on a Sunday" in str(claude.messages[1].body["messages"][-1])
