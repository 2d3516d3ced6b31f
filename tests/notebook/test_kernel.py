"""What a user of a notebook sees, with a real kernel."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import ipykernel
import psutil
import pytest

from conjure_jupyter.notebook.render import MIME
from conjure_jupyter.testing import Delay, FakeClaude, HTTPError, tool_use

from .kernels import Kernel, Run, kernel

Script = Callable[..., object]

#: Seconds within which a stopped cell ends: 2 by promise, and room for a busy machine.
SOON = 6.0


@pytest.fixture(scope="module")
def answers() -> Iterator[tuple[list[object], FakeClaude]]:
    """A scripted Claude whose answers each test sets."""
    script: list[object] = []
    with FakeClaude(lambda _: script.pop(0), chunk=5) as claude:  # type: ignore[arg-type,return-value]  # any answers
        yield script, claude


@pytest.fixture(scope="module")
def running(
    answers: tuple[list[object], FakeClaude], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kernel]:
    folder = tmp_path_factory.mktemp("notebook")
    with kernel(folder, answers[1].env) as started:
        assert started.run("%load_ext conjure").outputs == []
        yield started


@pytest.fixture
def say(answers: tuple[list[object], FakeClaude], running: Kernel) -> Script:
    """Set what Claude answers next, in a new session."""
    running.run("%claude new")

    def say(*script: object) -> None:
        answers[0][:] = script

    return say


def shows(text: str) -> Callable[[Run], bool]:
    return lambda run: any(text in bundle.get("text/plain", "") for bundle in run.shown)


def test_the_answer_streams_and_ends_as_one_static_record(running: Kernel, say: Script) -> None:
    say([Delay(per_event=0.05), "Hello **world**, and a good many more words than fit into one piece."])
    run = running.run("%%claude\nhi")
    kinds = [kind for kind, _ in run.outputs]
    assert kinds[0] == "display_data"
    assert kinds.count("update_display_data") > 2
    assert len(run.shown) == 1
    assert set(run.shown[0]) == {"text/html", "text/markdown", "text/plain", MIME}
    assert "<strong>world</strong>" in run.shown[0]["text/html"]
    assert running.value("_.text").startswith("'Hello **world**")


def test_updates_come_at_most_twenty_times_a_second(running: Kernel, say: Script) -> None:
    say([Delay(per_event=0.001), "word " * 2_000])
    started = time.monotonic()
    run = running.run("%%claude\nhi")
    assert len(run.of("update_display_data")) <= (time.monotonic() - started) * 20 + 2


@pytest.mark.parametrize("presses", [1, 2, 5])
def test_an_interrupt_keeps_the_text(running: Kernel, say: Script, presses: int) -> None:
    say([Delay(per_event=0.1), "kept " * 1_000], "next")
    request, run = running.start("%%claude --out stopped\nlong"), Run()
    running.until(request, run, shows("kept"))
    pressed = time.monotonic()
    for _ in range(presses):
        running.manager.interrupt_kernel()
        time.sleep(0.01)
    running.finish(request, run)
    assert time.monotonic() - pressed < SOON
    assert run.error is None
    assert running.value("stopped.stop_reason, stopped.text[:4]") == "('stopped', 'kept')"
    assert "Stopped." in run.shown[-1]["text/plain"]
    assert running.run("%%claude\nhi").shown[-1][MIME]["text"] == "next"


def test_an_interrupt_ends_the_cells_that_wait(running: Kernel, say: Script) -> None:
    say([Delay(per_event=0.1), "kept " * 1_000], "never asked for")
    first, run = running.start("%%claude\nlong"), Run()
    second = running.start("ran = True")
    running.until(first, run, shows("kept"))
    running.manager.interrupt_kernel()
    running.finish(first, run)
    assert run.error is None
    assert running.finish(second).reply["status"] == "aborted"
    assert running.value("'ran' in globals(), _.stop_reason") == "(False, 'stopped')"


def test_an_interrupt_ends_the_processes_of_a_tool(running: Kernel, say: Script) -> None:
    say(tool_use("bash_tool", {"command": "echo begun; sleep 987.6"}), "after")
    request, run = running.start("%%claude --approve auto\nrun"), Run()
    running.until(request, run, lambda _: bool(sleepers(running)))
    running.manager.interrupt_kernel()
    running.finish(request, run)
    assert run.error is None
    assert not sleepers(running)
    assert running.run("%%claude\nhi").shown[-1][MIME]["text"] == "after"


def sleepers(running: Kernel) -> list[psutil.Process]:
    """Commands of the test that still run, by what they are, not by name: children of the kernel."""
    children = psutil.Process(running.manager.provisioner.pid).children(recursive=True)  # type: ignore[union-attr]
    return [child for child in children if "987.6" in " ".join(_command_line(child))]


def _command_line(process: psutil.Process) -> list[str]:
    try:
        return [] if process.status() == psutil.STATUS_ZOMBIE else process.cmdline()[:2]
    except psutil.Error:
        return []


def test_an_interrupt_before_claude_answers_is_no_traceback(
    running: Kernel, say: Script, answers: tuple[list[object], FakeClaude]
) -> None:
    say()
    request, run = running.start("%%claude\nhi"), Run()
    answers[0].append([Delay(seconds=30), "too late"])
    running.until(request, run, lambda run: bool(run.shown))
    running.manager.interrupt_kernel()
    running.finish(request, run)
    assert run.error is None
    assert running.value("_.stop_reason") == "'stopped'"
    answers[0][:] = ["next"]
    run = running.run("%%claude\nhi")
    assert run.error is None
    assert run.shown[-1][MIME]["text"] == "next"


@pytest.mark.skipif(ipykernel.version_info < (7,), reason="ipykernel 6 handles messages after the cell")
def test_messages_are_handled_while_the_cell_waits(running: Kernel, say: Script) -> None:
    running.run(
        "heard = []\n"
        "get_ipython().kernel.comm_manager.register_target('probe', lambda comm, msg: heard.append(busy()))\n"
        "def busy():\n"
        "    magics = get_ipython().magics_manager.registry['ConjureMagics']\n"
        "    return magics.desk.current().session.running is not None"
    )
    say([Delay(per_event=0.1), "slow " * 10])
    request, run = running.start("%%claude\nhi"), Run()
    running.until(request, run, shows("slow"))
    content = {"comm_id": "c1", "target_name": "probe", "data": {}}
    running.client.shell_channel.send(running.client.session.msg("comm_open", content))
    running.finish(request, run)
    assert running.value("heard") == "[True]"


def test_a_call_is_approved_through_the_front_end(running: Kernel, say: Script) -> None:
    calls = [tool_use("bash_tool", {"command": "echo made > outputs/made.txt"}) for _ in range(2)]
    say(calls[0], "done", calls[1], "refused")
    run = running.run("%%claude\nmake it", answers=["what?", "y"])
    assert "Claude wants to run bash_tool: echo made > outputs/made.txt" in run.text
    assert [ref["path"] for ref in run.shown[-1][MIME]["files"]] == ["outputs/made.txt"]
    run = running.run("%%claude\nagain", answers=["n no more files"])
    assert run.shown[-1][MIME]["tool_calls"][0]["is_error"]
    assert "no more files" in running.value("_.tool_calls[0].result.text")


def test_stop_is_an_answer_and_an_interrupt_is_one_too(running: Kernel, say: Script) -> None:
    say(*(tool_use("bash_tool", {"command": "echo made > outputs/never.txt"}) for _ in range(2)))
    running.run("%%claude\nmake it", answers=["s"])
    assert running.value("_.stop_reason, _.files") == "('stopped', ())"
    request, run = running.start("%%claude\nmake it"), Run()
    running.until(request, run, lambda run: "Claude wants" in run.text)
    running.client.get_stdin_msg(timeout=30)
    running.manager.interrupt_kernel()
    running.finish(request, run)
    assert run.error is None
    assert running.value("_.stop_reason, _.files") == "('stopped', ())"


def test_in_the_background_the_cell_returns_and_its_output_goes_on(running: Kernel, say: Script) -> None:
    say([Delay(per_event=0.1), "slowly " * 8])
    request, run = running.start("%%claude --background --out later\nhi"), Run()
    running.finish(request, run)
    assert "Running:" in running.run("%claude status").text
    assert "under way" in (running.run("%%claude\nme too").error or "")
    running.until(request, run, lambda run: MIME in run.shown[0])
    assert run.shown[0][MIME]["text"].startswith("slowly slowly")
    assert running.value("later.stop_reason") == "'end_turn'"


def test_the_background_is_stopped(running: Kernel, say: Script) -> None:
    say([Delay(per_event=0.2), "slowly " * 1_000])
    request, run = running.start("%%claude --background --out later\nhi"), Run()
    running.finish(request, run)
    running.until(request, run, shows("slowly"))
    assert "Stopped 1 turn" in running.run("%claude stop").text
    running.until(request, run, shows("Stopped."))
    assert "Nothing runs" in running.run("%claude stop").text


def test_inside_other_magics_the_cell_blocks_and_works(running: Kernel, say: Script) -> None:
    say("timed", "captured", "called")
    run = running.run("%%time\n%%claude\nhi")
    assert run.error is None
    assert shows("timed")(run)
    assert running.run("%%capture kept\n%%claude\nhi").outputs == []
    assert running.value("[set(out.data) >= {'text/html'} for out in kept.outputs][:1]") == "[True]"
    run = running.run("reply = get_ipython().run_cell_magic('claude', '', 'hi')\nreply")
    assert len(run.shown) == 1
    assert len(running.run("reply").of("execute_result")) == 1


def test_an_error_is_one_line_and_fails_the_cell(running: Kernel, say: Script) -> None:
    say(HTTPError(400, message="no good"))
    run = running.run("%%claude --out failed\nhi")
    assert run.reply["status"] == "error"
    assert run.error is not None
    assert "no good" in run.error
    assert "\n" not in run.error
    assert running.value("failed.stop_reason") == "'error'"


def test_a_turn_that_cannot_start_leaves_no_display(running: Kernel, say: Script) -> None:
    say("one")
    running.run("%%claude\nhi")
    run = running.run("%%claude --system other\nhi")
    assert "fixed by its first turn" in (run.error or "")
    assert run.shown == []


def test_retry_goes_back_to_the_turn_of_its_own_cell(
    running: Kernel, say: Script, answers: tuple[list[object], FakeClaude]
) -> None:
    say("one", "two", "three")
    running.run("%%claude --new\nfirst", cell_id="cell-a")
    running.run("%%claude\nsecond", cell_id="cell-b")
    running.run("%%claude --retry\nfirst, anew", cell_id="cell-a")
    assert [message["role"] for message in answers[1].messages[-1].body["messages"]] == ["user"]


def test_headless_there_is_one_final_output(running: Kernel, say: Script) -> None:
    say(tool_use("view", {"path": "."}), "seen", "late")
    run = running.run("%%claude --approve auto\nlook", stdin=False)
    assert [kind for kind, _ in run.outputs] == ["display_data"]
    assert "session" not in run.shown[0][MIME]
    assert str(Path.cwd()) not in str(run.shown)
    run = running.run("%%claude --background\nlater", stdin=False)
    assert run.shown[-1][MIME]["text"] == "late"


def test_artifacts_are_named_picked_up_and_undone(
    running: Kernel, say: Script, answers: tuple[list[object], FakeClaude]
) -> None:
    running.run("facts = {'region': ['north'], 'amount': [1]}")
    assert running.run("%artifacts add facts facts").text.startswith("file://facts: dict, application/json")
    say_next = tool_use(
        "bash_tool", {"command": "cp $ARTIFACT_FACTS outputs/copy.json; echo a,b > outputs/t.csv"}
    )
    answers[0][:] = [say_next, "copied"]
    run = running.run("%%claude --approve auto --out reply\nCopy file://facts.")
    assert run.error is None
    assert "outputs/copy.json" in run.shown[-1]["text/html"]

    assert running.run("file = %artifacts get copy.json").outputs == []
    assert running.value("file.bytes() == reply.files[0].bytes(), file.version") == "(True, 0)"
    (shown,) = running.run("%artifacts get t.csv").of("execute_result")
    assert "<th>a</th><th>b</th>" in shown["data"]["text/html"]
    assert shown["data"]["text/plain"] == "<FileRef outputs/t.csv (text/csv, 4 B, v0)>"
    assert "outputs/t.csv (text/csv, 4 B, v0)" in running.run("%artifacts").shown[-1]["text/plain"]

    assert "Removed:\n  outputs/copy.json" in running.run("%claude undo --dry-run").text
    assert "removed" in running.run("%claude undo").text
    assert "outputs/t.csv" not in running.run("%artifacts").shown[-1]["text/plain"]
    assert running.value("reply.files[0].bytes() == file.bytes()") == "True"


def test_files_are_looked_for_beside_the_notebook(tmp_path: Path) -> None:
    beside = tmp_path / "notebooks"
    beside.mkdir()
    (beside / "data.csv").write_text("a\n1\n")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    environment = {"JPY_SESSION_NAME": str(beside / "mine.ipynb"), "CONJURE_CLIENT": "offline"}
    with kernel(elsewhere, environment) as started:
        started.run("%load_ext conjure")
        run = started.run("%%claude --file data.csv\nhi")
        assert run.error is None
        uploads = list(beside.glob(".conjure/sessions/*/work/uploads/data.csv"))
        assert len(uploads) == 1
        session = uploads[0].parents[2].name
    with kernel(elsewhere, environment) as started:
        started.run("%load_ext conjure")
        assert f"The last session here was {session}" in started.run("%%claude\nhi").text
        assert "The last session" not in started.run("%%claude\nhi").text
        assert session in started.run("%claude resume").text


def test_a_kernel_without_a_credential_works_offline(tmp_path: Path) -> None:
    with kernel(tmp_path) as started:
        assert not any(name.startswith("ANTHROPIC_") for name in os.environ)
        started.run("%load_ext conjure")
        assert "Offline" in started.run("%%claude\nhi").shown[-1]["text/plain"]
