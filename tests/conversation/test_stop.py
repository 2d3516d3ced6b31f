"""Stopping at any moment: what was said is kept, processes are gone, the session goes on."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from conjure_jupyter.conversation import Session
from conjure_jupyter.errors import StoppedError
from conjure_jupyter.testing import Delay, FakeClaude, HTTPError, message
from conjure_jupyter.types import Event, Retrying, TextDelta, ToolOutput
from tests.builders import bash

from .conftest import MakeSession

Serve = Callable[..., FakeClaude]


def stop_at(session: Session, kind: type[Event]) -> None:
    """Stop the session's turn, from another thread, at its first event of a kind."""

    def listen(event: Event) -> None:
        if isinstance(event, kind):
            threading.Thread(target=session.stop).start()

    session.listener = listen


def alive(marker: str) -> bool:
    """Whether a process with ``marker`` in its command line lives."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if marker.encode() in (entry / "cmdline").read_bytes():
                    return True
            except OSError:
                continue
    return False


def test_while_claude_speaks(serve: Serve, make_session: MakeSession) -> None:
    claude = serve([[Delay(per_event=0.05), message("A long answer. " * 100)], "Going on."])
    session = make_session()
    stop_at(session, TextDelta)
    reply = session.chat("Speak")
    assert reply.stop_reason == "stopped"
    assert reply.text.startswith("A long")
    assert len(reply.text) < 1000
    session.listener = None
    assert session.chat("Go on").text == "Going on."
    assert "A long" in json.dumps(claude.messages[-1].body["messages"])


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes in /proc")
def test_while_a_command_runs(serve: Serve, make_session: MakeSession) -> None:
    marker = f"sleep 97.{os.getpid()}"
    claude = serve([bash(f"echo started; {marker} & setsid {marker}; wait", "t1"), "Going on."])
    session = make_session(settings={"timeout": 60})
    stop_at(session, ToolOutput)
    started = time.monotonic()
    reply = session.chat("Run")
    assert time.monotonic() - started < 30
    assert reply.stop_reason == "stopped"
    assert "started" in reply.tool_calls[0].result.text
    assert not alive(marker)
    session.listener = None
    assert session.chat("Go on").text == "Going on."
    results = claude.messages[-1].body["messages"][2]["content"]
    assert results[0]["tool_use_id"] == "t1"
    assert results[0]["is_error"]


def test_while_waiting_to_try_again(serve: Serve, make_session: MakeSession) -> None:
    serve([HTTPError(429, retry_after=60), "Going on."])
    session = make_session()
    stop_at(session, Retrying)
    assert session.chat("Hi").stop_reason == "stopped"
    session.listener = None
    assert session.chat("Go on").text == "Going on."


def test_an_interrupt_stops_and_is_raised(serve: Serve, make_session: MakeSession) -> None:
    serve([[Delay(per_event=0.05), message("A long answer. " * 100)], "Going on."])
    session = make_session()

    def listen(event: Event) -> None:
        if isinstance(event, TextDelta):
            session.listener = None
            os.kill(os.getpid(), signal.SIGINT)

    session.listener = listen
    with pytest.raises(KeyboardInterrupt):
        session.chat("Speak")
    assert session.last is not None
    assert session.last.stop_reason == "stopped"
    assert session.chat("Go on").text == "Going on."


def test_leaving_a_stream_stops_it(serve: Serve, make_session: MakeSession) -> None:
    serve([[Delay(per_event=0.05), message("A long answer. " * 100)], "Going on."])
    session = make_session()
    for event in session.stream("Speak"):
        if isinstance(event, TextDelta):
            break
    deadline = time.monotonic() + 10
    while session.running and time.monotonic() < deadline:
        time.sleep(0.01)
    assert session.last is not None
    assert session.last.stop_reason == "stopped"
    assert session.chat("Go on").text == "Going on."


def test_a_turn_that_waits_its_turn_can_be_stopped(serve: Serve, make_session: MakeSession) -> None:
    serve([[Delay(per_event=0.05), message("A long answer. " * 20)], "never"])
    session = make_session()
    first = session.start("1")
    deadline = time.monotonic() + 30
    while not first.number and time.monotonic() < deadline:
        time.sleep(0.005)
    second = session.start("2")
    second.stop()
    with pytest.raises(StoppedError):
        second.wait()
    first.stop()
    first.stop()
    assert first.wait().stop_reason == "stopped"


def test_stopping_what_has_ended_is_harmless(serve: Serve, make_session: MakeSession) -> None:
    serve(["Done.", "Again."])
    session = make_session()
    turn = session.start("1")
    turn.wait()
    turn.stop()
    session.stop()
    assert session.chat("2").text == "Again."
