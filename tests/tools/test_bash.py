from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conjure_jupyter.executors.contract import CommandResult, ExecutionContext, Executor
from conjure_jupyter.executors.local import LocalExecutor
from conjure_jupyter.tools import Toolbox
from conjure_jupyter.tools.terminal import plain

from .conftest import Run, call


async def test_the_result_is_what_it_printed(run: Run) -> None:
    result = await run("bash_tool", command="echo out; echo err >&2", description="x")
    assert (result.content, result.is_error) == ("out\nerr", False)
    assert result.meta["exit_code"] == 0
    assert result.meta["duration"] > 0


async def test_a_command_without_output_says_so(run: Run) -> None:
    assert (await run("bash_tool", command="true")).content == "(no output)"


async def test_a_failure_states_its_exit_code(run: Run) -> None:
    result = await run("bash_tool", command="echo partial; exit 3")
    assert result.is_error
    assert result.content == "partial\n[exit code 3]"


async def test_a_signal_is_named(run: Run) -> None:
    result = await run("bash_tool", command="kill -TERM $$")
    assert "exit code 143: ended by signal 15" in result.text


async def test_a_timeout_keeps_the_partial_output(executor: Executor, work: Path) -> None:
    toolbox = Toolbox(executor, ExecutionContext(work, timeout=0.5))
    result = await toolbox.execute(call("bash_tool", command="echo begun; sleep 30"))
    assert result.is_error
    assert result.text.startswith("begun\n[ended at its time limit of 0.5 s")
    assert result.meta["timed_out"] is True


@pytest.mark.parametrize("command", ["", "  \n", "echo a\0b"])
async def test_a_command_that_cannot_be_is_refused(run: Run, command: str) -> None:
    assert (await run("bash_tool", command=command)).is_error


async def test_long_output_keeps_head_tail_and_notes(run: Run) -> None:
    result = await run("bash_tool", command="seq 1 20000; exit 2")
    assert len(result.text) <= 30_000
    assert result.text.startswith("1\n2\n")
    assert result.text.rstrip().endswith("left out; write it to a file and look at parts of that]")
    assert "\n20000\n[exit code 2]\n" in result.text
    assert "characters left out" in result.text


class Told(LocalExecutor):
    """Gives a result as it is told."""

    def __init__(self, result: CommandResult) -> None:
        super().__init__()
        self.result = result

    async def run(self, *args: object, **options: object) -> CommandResult:
        return self.result


@pytest.mark.parametrize(
    ("result", "says"),
    [
        (
            CommandResult(b"x", 0, False, 0.1, total_bytes=2**30, truncated_bytes=2**30 - 100_000),
            "1.0 GB of output",
        ),
        (CommandResult(b"x", 0, False, 0.1, leftovers=2), "2 processes left running, ended with the call"),
        (CommandResult(b"x", 0, False, 12.4), "took 12 s"),
    ],
)
async def test_what_the_executor_cut_or_ended_is_told(work: Path, result: CommandResult, says: str) -> None:
    toolbox = Toolbox(Told(result), ExecutionContext(work))
    told = await toolbox.execute(call("bash_tool", command="x"))
    assert says in told.text
    assert not told.is_error


async def test_output_is_heard_while_it_runs_without_secrets(toolbox: Toolbox) -> None:
    heard: list[str] = []
    token = "ghp_" + "a1B2" * 9
    command = f"echo one; printf 'tok ghp_a1B2'; sleep 0.2; echo {token[8:]}; printf last"
    await toolbox.execute(call("bash_tool", command=command), on_output=heard.append)
    assert "".join(heard) == "one\ntok [redacted]\nlast"


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("10%\r50%\r100%\ndone", "100%\ndone"),
        ("a\r\nb\r\n", "a\nb\n"),
        ("100%\r", "100%"),
        ("a\x08b", "b"),
        ("nul\0bell\x07", "nul\ufffdbell\ufffd"),
        ("tab\tstays", "tab\tstays"),
    ],
)
def test_what_is_meant_for_a_terminal_becomes_text(printed: str, shown: str) -> None:
    assert plain(printed) == shown


@given(st.text(st.sampled_from("\x1b[]0;m\r\n\b\x07aé\\P^ ")))
def test_nothing_that_moves_a_cursor_is_left(text: str) -> None:
    assert not set(plain(text)) & {"\x1b", "\r", "\b", "\x07"}
