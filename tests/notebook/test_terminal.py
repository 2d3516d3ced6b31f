"""IPython in a terminal: text only, and interrupts as signals."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from conjure_jupyter.testing import Delay, FakeClaude, StreamError, tool_use

from .conftest import Shell

Serve = Callable[..., FakeClaude]


def run(shell: Shell, cell: str, capsys: pytest.CaptureFixture[str]) -> tuple[Any, str]:
    """Run a cell as a terminal does: with stdout only, nothing captured by IPython."""
    result = shell.ip.run_cell(cell)
    return result, capsys.readouterr().out


def test_text_streams_and_the_value_is_short(
    shell: Shell, serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    serve([tool_use("view", {"path": "."}), "It is\x1b[31m red\u202e."])
    result, out = run(shell, "%%claude --approve auto\nlook", capsys)
    assert "✓ view: ." in out
    assert "It is red\\u202e." in out
    assert "tokens in" in out
    assert out.count("It is") == 1
    assert "<Reply: turn 1, end_turn, 1 tool calls" in out
    assert result.result.text.startswith("It is")


def test_an_answer_that_is_asked_for_again_is_said_to_be(
    shell: Shell, serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    serve([[StreamError(after_events=4), "first words"], "second words"])
    _, out = run(shell, "%%claude\nhi", capsys)
    assert out.count("second words") == 1
    assert "attempt 2" in out or "asked for again" in out


@pytest.mark.parametrize("presses", [1, 3])
def test_ctrl_c_keeps_the_text_and_the_session(
    shell: Shell, serve: Serve, capsys: pytest.CaptureFixture[str], presses: int
) -> None:
    claude = serve([[Delay(per_event=0.1), "kept " * 500], "next"])
    before = signal.getsignal(signal.SIGINT)

    def press() -> None:
        wait_for(lambda: bool(claude.messages))
        time.sleep(0.8)
        for _ in range(presses):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.02)

    pressing = threading.Thread(target=press)
    pressing.start()
    result, out = run(shell, "%%claude\nlong", capsys)
    pressing.join()
    assert result.success
    assert result.result.stop_reason == "stopped"
    assert result.result.text.startswith("kept")
    assert "Stopped." in out
    assert signal.getsignal(signal.SIGINT) is before
    assert run(shell, "%%claude\nhi", capsys)[0].result.text == "next"


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("answers", "allowed"),
    [(["y"], True), (["maybe", "always"], True), (["n never"], False)],
)
def test_a_call_is_asked_about(
    *,
    shell: Shell,
    serve: Serve,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    answers: list[str],
    allowed: bool,
) -> None:
    calls = [tool_use("create_file", {"path": f"outputs/{n}.txt", "file_text": "a\u202eb"}) for n in range(2)]
    serve([calls[0], calls[1], "done"])
    script = [*answers, *(["y"] if answers[-1] != "always" else [])]
    monkeypatch.setattr("builtins.input", lambda prompt: script.pop(0))
    result, out = run(shell, "%%claude\nmake", capsys)
    assert "Claude wants to run create_file" in out
    assert "a\\u202eb" in out
    assert result.result.tool_calls[0].result.is_error is not allowed
    assert not result.result.tool_calls[1].result.is_error
    assert not script


def test_a_shell_without_a_kernel_never_awaits(shell: Shell) -> None:
    ip: InteractiveShell = shell.ip
    assert "await" not in ip.transform_cell("%%claude\nhi")
