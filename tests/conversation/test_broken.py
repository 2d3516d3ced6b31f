"""Turns that break in the middle: each has an end in the log, and the session goes on."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import shutil
import subprocess
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from conjure_jupyter.conversation import ApprovalRequest, Session, Turn, Verdict
from conjure_jupyter.engine import engine
from conjure_jupyter.errors import (
    ApprovalRequiredError,
    PathNotFoundError,
    SessionError,
    StoppedError,
    TimelineError,
)
from conjure_jupyter.settings import Settings
from conjure_jupyter.skills import load
from conjure_jupyter.testing import FakeClaude, message, tool_use
from conjure_jupyter.timeline import MessageProjection, Timeline
from conjure_jupyter.types import Event
from tests.builders import bash, write_skill

from .conftest import MakeSession

Serve = Callable[..., FakeClaude]


def kinds(session: Session) -> list[str]:
    """The kinds of the log's blocks, as they are on disk."""
    return [block.kind for block in Timeline.open(session.folder, readonly=True).blocks]


def test_a_client_s_own_fault_ends_the_turn(make_session: MakeSession) -> None:
    answers = iter([KeyError("ours"), message("Fine.")])

    def answer(messages: Any) -> Any:
        given = next(answers)
        if isinstance(given, Exception):
            raise given
        return given

    session = make_session(client=answer)
    with pytest.raises(Exception, match="ours"):
        session.chat("1")
    assert kinds(session)[-1] == "turn_end"
    assert session.last is not None
    assert session.last.stop_reason == "error"
    assert session.chat("2").text == "Fine."


def test_a_callback_that_exits_leaves_the_engine_alive(make_session: MakeSession) -> None:
    answers = iter([SystemExit(3), message("Fine.")])

    def answer(messages: Any) -> Any:
        given = next(answers)
        if isinstance(given, SystemExit):
            raise given
        return given

    session = make_session(client=answer)
    with pytest.raises(SystemExit):
        session.chat("1")
    assert session.chat("2").text == "Fine."
    assert kinds(session).count("turn_end") == 2


def test_an_approver_that_fails_leaves_nothing_open(serve: Serve, make_session: MakeSession) -> None:
    serve([bash("touch outputs/a"), "Fine."])

    async def approver(request: ApprovalRequest) -> Verdict:
        raise RuntimeError("no front end")

    session = make_session(settings={"approve": "ask"}, approver=approver)
    with pytest.raises(RuntimeError, match="no front end"):
        session.chat("1")
    assert kinds(session)[-1] == "turn_end"
    assert session.pending_approval == []
    assert session.chat("2").text == "Fine."


def test_a_retry_that_cannot_begin_undoes_nothing(serve: Serve, make_session: MakeSession) -> None:
    claude = serve(["One.", "Two."])
    session = make_session()
    session.chat("1")
    with pytest.raises(PathNotFoundError):
        session.chat("1, better", retry=True, files=["nowhere.csv"])
    assert "undo" not in kinds(session)
    session.chat("2")
    assert "One." in json.dumps(claude.messages[-1].body["messages"])


def test_a_turn_that_cannot_begin_refuses_no_waiting_call(serve: Serve, make_session: MakeSession) -> None:
    serve([bash("touch outputs/a"), "Made."])
    session = make_session(settings={"approve": "ask"})
    with pytest.raises(ApprovalRequiredError):
        session.chat("1")
    with pytest.raises(PathNotFoundError):
        session.chat("2", files=["nowhere.csv"])
    assert len(session.pending_approval) == 1
    assert session.approve().wait().text == "Made."


def test_a_word_given_twice_counts_once(serve: Serve, make_session: MakeSession) -> None:
    claude = serve([bash("sleep 0.2; echo x >> outputs/a"), "Made.", "never"])
    session = make_session(settings={"approve": "ask"})
    with pytest.raises(ApprovalRequiredError):
        session.chat("1")
    with engine_held():
        first, second = session.approve(), session.approve()
    first.wait()
    with pytest.raises(SessionError, match="No call waits"):
        second.wait()
    assert (session.workspace / "outputs" / "a").read_text() == "x\n"
    assert len(claude.messages) == 2


class engine_held:  # noqa: N801  reads as a statement
    """Keep the engine from running anything for a while."""

    def __enter__(self) -> None:
        self._go = threading.Event()
        held = threading.Event()

        def hold() -> None:
            held.set()
            self._go.wait(10)

        engine().loop.call_soon_threadsafe(hold)
        held.wait(10)

    def __exit__(self, *_: object) -> None:
        self._go.set()


def test_a_paused_turn_keeps_to_its_skill(serve: Serve, make_session: MakeSession, tmp_path: Path) -> None:
    write_skill(tmp_path / "s", name="maker", description="Makes.", allowed_tools="Write")
    write = tool_use("create_file", {"path": "outputs/a", "file_text": "1", "description": "x"})
    serve([write, bash("touch outputs/b"), "Done."])
    session = make_session(settings={"approve": "ask"}, skills=load(tmp_path / "s"))
    with pytest.raises(ApprovalRequiredError):
        session.chat("1", skill="maker")
    reply = session.approve(approve="auto").wait()
    assert [file.path for file in reply.files] == ["outputs/a"]
    assert "not allowed" in reply.tool_calls[-1].result.text


def test_resume_trusts_no_skill_that_was_not_loaded_again(
    serve: Serve, make_session: MakeSession, tmp_path: Path, project: Path
) -> None:
    write_skill(tmp_path / "s", name="maker", description="Makes.", allowed_tools="Bash")
    serve(["Hi."])
    session = make_session(skills=load(tmp_path / "s"), id="mine")
    session.chat("1")
    session.close()
    with Session.resume("mine", project=project) as again:
        assert [(skill.name, skill.trusted) for skill in again.registry.list()] == [("maker", False)]


def test_resume_announces_skills_that_are_new(
    serve: Serve, make_session: MakeSession, csv_skill: Any, project: Path
) -> None:
    claude = serve(["One.", "Two."])
    session = make_session(id="mine")
    session.chat("1")
    session.close()
    with Session.resume("mine", project=project, skills=[csv_skill]) as again:
        again.chat("2")
    assert "csv-helper" in json.dumps(claude.messages[-1].body["messages"][-1])


def test_a_failed_resume_lets_go_of_the_log(
    serve: Serve, make_session: MakeSession, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(["One.", "Two."])
    session = make_session(id="mine")
    session.chat("1")
    session.close()
    with monkeypatch.context() as patch:
        patch.setattr("conjure_jupyter.conversation.runner.load_all", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            Session.resume("mine", project=project)
    with Session.resume("mine", project=project) as again:
        assert again.chat("2").text == "Two."


def test_a_link_in_the_place_of_the_project_s_folder_is_not_followed(project: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (project / ".conjure").symlink_to(tmp_path / "elsewhere")
    session = Session(Settings(), project=project)
    assert not session.folder.is_relative_to(tmp_path / "elsewhere")
    assert list((tmp_path / "elsewhere").iterdir()) == []
    (project / ".conjure").unlink()
    (project / ".conjure").mkdir()
    (project / ".conjure" / ".gitignore").symlink_to(tmp_path / "made")
    (project / ".conjure" / "sessions").symlink_to(tmp_path / "elsewhere")
    session = Session(Settings(), project=project)
    assert not session.folder.is_relative_to(project)
    assert not (tmp_path / "made").exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if not mounted or mounted.returncode:
        pytest.skip("mounting a small file system needs root")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_disk_that_fills_up_in_a_turn(
    serve: Serve, make_session: MakeSession, small_disk: Path, tmp_path: Path
) -> None:
    mark = tmp_path / "ran"
    fill = f"echo x >> {mark}; cat /dev/zero > outputs/fill 2> /dev/null; seq 9000"
    claude = serve([bash(fill, "t1"), "Going on."])
    session = make_session(settings={"approve": "ask"}, project=small_disk, approver=say_yes)
    with pytest.raises(TimelineError, match="full"):
        session.chat("1")
    assert session.pending_approval == []
    with pytest.raises(SessionError):
        session.chat("still full " * 3000)
    (session.workspace / "outputs" / "fill").unlink()
    assert session.chat("2").text == "Going on."
    result = claude.messages[-1].body["messages"][2]["content"][0]
    assert result["tool_use_id"] == "t1"
    assert "may have run" in result["content"]
    assert mark.read_text() == "x\n"
    assert kinds(session)[-1] == "turn_end"


async def say_yes(_: ApprovalRequest) -> Verdict:
    return Verdict(allow=True)


def children() -> set[str]:
    """Commands of this process's descendants that sleep as the test's do."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if f"sleep 93.{os.getpid()}".encode() in (entry / "cmdline").read_bytes():
                    found.add(entry.name)
            except OSError:
                continue
    return found


async def stop_after(steps: int, turn: Turn, *, from_number: bool) -> None:
    """Stop a turn after a number of steps of the loop, counted from its start or from its first block."""
    if from_number:  # what comes before is mostly waiting for threads
        while not turn.number and not turn.done():  # noqa: ASYNC110  a step of the loop is the unit here
            await asyncio.sleep(0)
    for _ in range(steps):
        await asyncio.sleep(0)
        if turn.done():
            return
    turn.stop()


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes in /proc")
def test_cancelled_anywhere(make_session: MakeSession) -> None:
    """A stop after any number of steps of the loop leaves a whole log, no process, and a usable session."""
    dice = random.Random(7)
    runs = f"sleep 93.{os.getpid()} & echo $RANDOM > outputs/a; wait"

    async def answer(messages: list[dict[str, Any]]) -> dict[str, Any]:
        await asyncio.sleep(0)
        if messages[-1]["content"][-1].get("text") == "check":
            return message("Checked.")
        if messages[-1]["content"][0]["type"] == "tool_result":
            return message("Done.")
        command = runs if dice.random() < 0.3 else "echo $RANDOM > outputs/a"
        return message("Working.", bash(command, os.urandom(6).hex()))

    session = make_session(client=answer, settings={"timeout": 5})
    ended: dict[str, int] = {}

    for _ in range(120):
        turn = session.start("go")
        steps, from_number = int(dice.expovariate(1 / 60)), dice.random() < 0.6
        engine().run(stop_after(steps, turn, from_number=from_number))
        turn.stop()
        try:
            reason = turn.wait().stop_reason
        except StoppedError:
            reason = "before"
        ended[reason] = ended.get(reason, 0) + 1
    assert session.chat("check").text == "Checked."
    assert ended.get("stopped", 0) > 20, ended
    assert not children()
    check_whole(session, 121 - ended.get("before", 0))


def check_whole(session: Session, turns: int) -> None:
    """Each turn has its end in the log, each call its result, and the log says what the session thinks."""
    blocks = Timeline.open(session.folder, readonly=True).blocks
    users = [block.turn for block in blocks if block.kind == "user"]
    assert users == [block.turn for block in blocks if block.kind == "turn_end"]
    assert len(users) == turns
    history = MessageProjection()
    for block in blocks:
        history.feed(block)
    assert history.messages == session.messages
    assert history.pending_calls() == []


async def test_cancelling_the_async_twin_leaves_nothing_running(make_session: MakeSession) -> None:
    session = make_session(client=forever)
    waiter = asyncio.ensure_future(session.achat("1"))
    while session.running is None or not session.running.number:  # noqa: ASYNC110  another thread makes it so
        await asyncio.sleep(0.01)
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    assert session.running is None
    assert session.last is not None
    assert session.last.stop_reason == "stopped"


async def test_leaving_an_async_stream_leaves_nothing_running(make_session: MakeSession) -> None:
    session = make_session(client=forever)
    async with contextlib.aclosing(cast("AsyncGenerator[Event]", session.astream("1"))) as events:
        async for _ in events:
            break
    assert session.running is None
    assert session.last is not None


def test_a_stream_outlived_by_its_turn_raises_nothing(
    make_session: MakeSession, caplog: pytest.LogCaptureFixture
) -> None:
    session = make_session(client=forever)

    async def leave() -> None:
        waiter = asyncio.ensure_future(anext(aiter(session.astream("1"))))
        await waiter

    asyncio.run(leave())
    deadline = time.monotonic() + 10
    while session.running and time.monotonic() < deadline:
        time.sleep(0.01)
    assert session.running is None
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_a_stream_that_is_never_read_starts_nothing(make_session: MakeSession) -> None:
    session = make_session(client=forever)
    cast("Generator[Event]", session.stream("1")).close()
    assert not session.folder.exists()


async def forever(messages: Any) -> dict[str, Any]:
    await asyncio.sleep(60)
    return message("never")
