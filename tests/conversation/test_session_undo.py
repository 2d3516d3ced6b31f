"""Undo as the user of a session has it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from conjure_jupyter.conversation import Session
from conjure_jupyter.errors import SessionError
from conjure_jupyter.testing import FakeClaude, tool_use
from tests.builders import bash

from .conftest import MakeSession

Serve = Callable[..., FakeClaude]


def test_undo_puts_files_back_and_history_goes_on_from_before(
    serve: Serve, make_session: MakeSession
) -> None:
    claude = serve(
        [
            bash("echo one > outputs/a.txt; echo keep > outputs/k.txt"),
            "first",
            bash("echo two > outputs/a.txt; rm outputs/k.txt; echo new > outputs/n.txt"),
            "second",
            "third",
        ]
    )
    session = make_session()
    session.chat("one")
    session.chat("two")
    plan = session.plan_undo()
    said = plan.describe()
    assert "a.txt" in said
    assert "outputs/n.txt" in said
    assert "echo two" in said, "what bash did beyond the files is listed"
    assert (session.workspace / "outputs/a.txt").read_text() == "two\n", "a preview changes nothing"

    done = session.undo(plan)
    outputs = session.workspace / "outputs"
    assert sorted(path.name for path in outputs.iterdir()) == ["a.txt", "k.txt"]
    assert (outputs / "a.txt").read_text() == "one\n"
    assert (outputs / "k.txt").read_text() == "keep\n"
    assert sorted(done.restored) == ["outputs/a.txt", "outputs/k.txt"]

    reply = session.chat("three")
    assert reply.turn == 3, "numbers are never used again"
    sent = json.dumps(claude.messages[-1].body["messages"])
    assert "first" in sent
    assert "second" not in sent
    assert session.artifacts.get("a.txt").text() == "one\n"
    assert session.artifacts.get("fi:turn_0002.files/a.txt").text() == "two\n", "nothing leaves the log"
    assert [ref.version for ref in session.artifacts.versions("outputs/a.txt")] == [0, 1]


def test_what_the_user_changed_since_is_never_overwritten(serve: Serve, make_session: MakeSession) -> None:
    serve([bash("echo one > outputs/a.txt"), "ok"])
    session = make_session()
    session.chat("one")
    mine = session.workspace / "outputs/a.txt"
    mine.write_text("mine\n")
    done = session.undo()
    assert mine.read_text() == "mine\n"
    assert [kept.path for kept in done.conflicts] == ["outputs/a.txt"]


def test_edits_in_the_notebooks_folder_are_put_back(
    serve: Serve, make_session: MakeSession, project: Path
) -> None:
    edit = {"path": "sales.csv", "old_str": "north", "new_str": "NORTH", "description": "d"}
    serve([tool_use("str_replace", edit), "ok"])
    session = make_session(settings={"workspace": "."})
    session.chat("one")
    assert "NORTH" in (project / "sales.csv").read_text()
    session.undo(1)
    assert "north" in (project / "sales.csv").read_text()


def test_an_undo_survives_resuming(serve: Serve, make_session: MakeSession, project: Path) -> None:
    claude = serve([bash("echo one > outputs/a.txt"), "first", "second", "third"])
    session = make_session()
    session.chat("one")
    session.chat("two")
    session.undo(2)
    session.close()
    again = Session.resume(session.id, project=project)
    try:
        again.chat("three")
    finally:
        again.close()
    sent = json.dumps(claude.messages[-1].body["messages"])
    assert "first" in sent
    assert "two" not in sent


def test_wrong_turns_are_refused(serve: Serve, make_session: MakeSession) -> None:
    serve(["ok"])
    session = make_session()
    with pytest.raises(SessionError, match="no turn to undo"):
        session.undo()
    session.chat("one")
    for wrong in (0, 7):
        with pytest.raises(SessionError, match=str(wrong)):
            session.undo(wrong)
    session.undo()
    with pytest.raises(SessionError):
        session.undo(1)


def test_a_running_session_is_not_undone(serve: Serve, make_session: MakeSession) -> None:
    serve([bash("touch outputs/x; sleep 30"), "ok"])
    session = make_session()
    turn = session.start("one")
    while not (session.workspace / "outputs/x").exists():
        pass
    with pytest.raises(SessionError, match="under way"):
        session.undo()
    turn.stop()
    turn.wait()
