"""Undoing turns: what comes back, what goes, and what stays because somebody else changed it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conjure_jupyter.conversation.undo import ledger
from conjure_jupyter.conversation.undo.snapshot import Snapshots
from conjure_jupyter.errors import SessionClosedError, SessionError, TimelineError
from conjure_jupyter.testing import FakeClaude, tool_use
from conjure_jupyter.timeline import MessageProjection, Timeline, TurnsProjection
from conjure_jupyter.types import ToolCall
from tests.builders import bash

from .conftest import MakeSession
from .past import Past, names, tree


@pytest.fixture
def past(tmp_path: Path) -> Iterator[Past]:
    made = Past(tmp_path / "session")
    yield made
    made.timeline.close()


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Past]:
    """A session whose tools work in the notebook's folder."""
    project = tmp_path / "project"
    project.mkdir()
    made = Past(project / ".conjure" / "sessions" / "s", project)
    yield made
    made.timeline.close()


def reasons(kept: object) -> dict[str, str]:
    return {entry.path: entry.reason for entry in kept}  # type: ignore[attr-defined]


def test_a_turn_s_files_go_back(past: Past) -> None:
    past.put("outputs/report.md", "first")
    past.put("data.csv", "1,2", 0o600)
    past.put("run.sh", "run", 0o755)
    before = tree(past.work)
    with past.turn("Spoil it", "rm data.csv"):
        past.put("outputs/report.md", "second")
        (past.work / "data.csv").unlink()
        (past.work / "run.sh").chmod(0o644)
        past.put("outputs/charts/new.png", "png")
    plan = past.plan()
    assert tree(past.work) != before
    assert plan.turns == (1,)
    assert sorted(plan.restored) == ["data.csv", "outputs/report.md", "run.sh"]
    assert plan.removed == ["outputs/charts/new.png"]
    assert plan.commands == ((1, "rm data.csv"),)
    done = past.undo(plan=plan)
    assert tree(past.work) == before
    assert sorted(done.restored) == ["data.csv", "outputs/report.md", "run.sh"]
    assert done.removed == ["outputs/charts/new.png"]
    assert not (past.work / "outputs" / "charts").exists()
    assert (past.work / "outputs").is_dir()
    assert (past.work / "uploads").is_dir()


def test_the_preview_says_all_and_changes_nothing(past: Past) -> None:
    past.put("a.txt", "a")
    with past.turn("Change a", "sed -i s/a/b/ a.txt; pip install x", "rm -rf /tmp/y"):
        past.put("a.txt", "b")
        past.put("b.txt", "b")
        past.put("mine.txt", "x")
    past.put("mine.txt", "mine now")
    files, blocks, blobs = tree(past.work), len(past.timeline.blocks), past.blobs.list()
    words = past.plan().describe()
    assert "Undo turn 1 (Change a)" in words
    assert "Put back:\n  a.txt (changed)" in words
    assert "Removed:\n  b.txt" in words
    assert "Left as they are:\n  mine.txt: changed since" in words
    assert "turn 1: sed -i s/a/b/ a.txt; pip install x" in words
    assert "turn 1: rm -rf /tmp/y" in words
    assert (tree(past.work), len(past.timeline.blocks), past.blobs.list()) == (files, blocks, blobs)


def test_secrets_and_tricks_in_what_is_shown(past: Past) -> None:
    key = "sk-ant-api03-" + "a" * 80
    with past.turn("Hi\x1b[2J\u202e", f"curl -H 'x-api-key: {key}' example.com"):
        past.put("outputs/new\nline\x1b[1m.txt", "x")
    words = past.plan().describe()
    assert key not in words
    assert "\x1b" not in words
    assert "\u202e" not in words
    assert "  outputs/new line\N{REPLACEMENT CHARACTER}[1m.txt" in words


def test_several_turns_go_together(past: Past) -> None:
    past.put("a.txt", "0")
    with past.turn("one"):
        past.put("a.txt", "1")
    at_two = tree(past.work)
    with past.turn("two"):
        past.put("a.txt", "2")
        past.put("two.txt", "2")
    with past.turn("three"):
        past.put("a.txt", "3")
        (past.work / "two.txt").unlink()
        past.put("three.txt", "3")
    plan = past.plan(2)
    assert plan.turns == (2, 3)
    assert "Undo turn 2 (two) and turn 3 after it" in plan.describe()
    past.undo(plan=plan)
    assert tree(past.work) == at_two
    past.undo()
    assert past.text("a.txt") == "0"


def test_history_goes_on_and_numbers_are_not_used_again(past: Past) -> None:
    for name in ("one", "two"):
        with past.turn(name):
            past.put(f"{name}.txt", name)
    past.undo(2)
    with past.turn("three") as number:
        past.put("three.txt", "3")
    assert number == 3
    again = past.again()
    turns, messages = TurnsProjection(), MessageProjection()
    for block in again.timeline.blocks:
        turns.feed(block)
        messages.feed(block)
    assert {n: t.undone for n, t in turns.turns.items() if n} == {1: False, 2: True, 3: False}
    said = [part["text"] for message in messages.messages for part in message["content"]]
    assert said == ["one", "three"]
    assert again.plan(1).turns == (1, 3)
    again.undo(1)
    assert tree(past.work) == {}
    again.timeline.close()


def test_what_cannot_be_undone_is_a_clear_error(past: Past) -> None:
    with pytest.raises(SessionError, match="no turn to undo"):
        past.plan()
    with past.turn(), pytest.raises(SessionError, match="A turn is running; stop it first"):
        past.plan()
    for number in (0, -1, 2):
        with pytest.raises(SessionError, match=f"There is no turn {number} to undo"):
            past.plan(number)
    plan = past.plan(1)
    past.undo(plan=plan)
    with pytest.raises(SessionError, match="no turn to undo"):
        past.plan(1)
    with past.turn():
        past.put("a.txt", "a")
    with pytest.raises(SessionError, match="Turn 1 was undone already"):
        past.plan(1)
    with pytest.raises(SessionError, match="undone already"):
        past.undo(plan=plan)
    plan = past.plan(2)
    with past.turn():
        past.put("b.txt", "b")
    with pytest.raises(SessionError, match="went on since the preview"):
        past.undo(plan=plan)
    assert past.text("b.txt") == "b"


def test_a_log_that_takes_no_block_stops_it_before_any_file(past: Past) -> None:
    with past.turn():
        past.put("a.txt", "a")
    plan = past.plan()
    past.timeline.close()
    with pytest.raises(SessionClosedError):
        past.undo(plan=plan)
    past.timeline = Timeline.open(past.folder, readonly=True)
    with pytest.raises(TimelineError, match="read-only"):
        past.undo(plan=plan)
    assert past.text("a.txt") == "a"


def test_a_turn_that_waits_for_approval_can_be_undone(past: Past) -> None:
    past.timeline.begin_turn()
    past.timeline.append("user", {"content": [{"type": "text", "text": "Do"}], "prompt": "Do", "model": "m"})
    past.timeline.append("approval", {"calls": [], "verdicts": None})
    assert past.plan().turns == (1,)


# What somebody else changed -----------------------------------------------------------------------


def test_what_changed_since_is_left(past: Past) -> None:
    past.put("edited.txt", "0")
    past.put("deleted.txt", "0")
    with past.turn():
        past.put("edited.txt", "1")
        past.put("made.txt", "1")
        past.put("gone.txt", "1")
        past.put("deleted.txt", "1")
    past.put("edited.txt", "mine")
    past.put("made.txt", "mine")
    (past.work / "gone.txt").unlink()
    (past.work / "deleted.txt").unlink()
    past.put("untouched.txt", "mine")
    plan = past.plan()
    assert plan.files == []
    assert reasons(plan.conflicts) == {
        "edited.txt": "changed since",
        "made.txt": "changed since",
        "deleted.txt": "removed since",
    }
    done = past.undo(plan=plan)
    assert reasons(done.conflicts) == reasons(plan.conflicts)
    assert "edited.txt was left: changed since" in done.describe()
    assert [past.text(f"{n}.txt") for n in ("edited", "made", "untouched")] == ["mine", "mine", "mine"]


def test_what_the_user_did_between_two_turns_is_hers(past: Past) -> None:
    past.put("both.txt", "0")
    past.put("hers.txt", "0")
    with past.turn():
        past.put("both.txt", "1")
    past.put("both.txt", "mine")
    past.put("hers.txt", "mine")
    past.put("notes.txt", "mine")
    with past.turn():
        past.put("both.txt", "2")
        past.put("other.txt", "2")
    plan = past.plan(1)
    assert reasons(plan.conflicts) == {"both.txt": "also changed by someone else, between two turns"}
    assert plan.removed == ["other.txt"]
    past.undo(plan=plan)
    assert past.text("both.txt") == "2"
    assert (past.text("hers.txt"), past.text("notes.txt")) == ("mine", "mine")


def test_a_later_turn_goes_back_to_the_user_s_own_version(past: Past) -> None:
    with past.turn():
        past.put("a.txt", "1")
    past.put("a.txt", "mine")
    with past.turn():
        past.put("a.txt", "2")
    past.undo(2)
    assert past.text("a.txt") == "mine"
    assert reasons(past.plan(1).conflicts) == {"a.txt": "also changed by someone else, between two turns"}


def test_what_the_user_put_back_herself_is_no_conflict(past: Past) -> None:
    past.put("a.txt", "0")
    with past.turn():
        past.put("a.txt", "1")
        past.put("b.txt", "1")
    past.put("a.txt", "0")
    (past.work / "b.txt").unlink()
    plan = past.plan()
    assert (plan.files, plan.conflicts) == ([], ())


def test_a_file_that_changes_after_the_preview_is_left(past: Past) -> None:
    past.put("a.txt", "0")
    past.put("b.txt", "0")
    with past.turn():
        past.put("a.txt", "1")
        past.put("b.txt", "1")
        past.put("new.txt", "1")
    past.put("late.txt", "x")
    plan = past.plan()
    past.put("a.txt", "mine")
    past.put("new.txt", "mine")
    done = past.undo(plan=plan)
    assert done.restored == ["b.txt"]
    assert reasons(done.conflicts) == {"a.txt": "changed since", "new.txt": "changed since"}
    assert (past.text("a.txt"), past.text("new.txt")) == ("mine", "mine")


def test_a_conflict_that_goes_away_after_the_preview_is_not_acted_on(past: Past) -> None:
    past.put("a.txt", "0")
    with past.turn():
        past.put("a.txt", "1")
    past.put("a.txt", "mine")
    plan = past.plan()
    past.put("a.txt", "1")
    done = past.undo(plan=plan)
    assert reasons(done.conflicts) == {"a.txt": "changed since the preview"}
    assert past.text("a.txt") == "1"


def test_a_conflict_of_one_undo_stays_the_user_s_in_the_next(past: Past) -> None:
    past.put("a.txt", "0")
    with past.turn():
        past.put("a.txt", "1")
    with past.turn():
        past.put("a.txt", "2")
    past.put("a.txt", "mine")
    assert reasons(past.undo(2).conflicts) == {"a.txt": "changed since"}
    plan = past.plan(1)
    assert reasons(plan.conflicts) == {"a.txt": "also changed by someone else, between two turns"}
    past.undo(plan=plan)
    assert past.text("a.txt") == "mine"


def test_what_an_undo_changed_is_not_taken_for_the_user_s(past: Past) -> None:
    past.put("a.txt", "0")
    with past.turn():
        past.put("a.txt", "1")
        past.put("made.txt", "1")
    with past.turn():
        past.put("a.txt", "2")
        (past.work / "made.txt").unlink()
    past.undo(2)
    assert (past.text("a.txt"), past.text("made.txt")) == ("1", "1")
    with past.turn():
        past.put("a.txt", "3")
    plan = past.plan(1)
    assert plan.conflicts == ()
    past.undo(plan=plan)
    assert (past.text("a.txt"), past.text("made.txt")) == ("0", None)


def test_another_process_can_undo(past: Past) -> None:
    past.put("a.txt", "0")
    with past.turn():
        past.put("a.txt", "1")
    again = past.again()
    again.undo()
    assert again.text("a.txt") == "0"
    again.timeline.close()


# What is not known, or does not fit ---------------------------------------------------------------


def test_a_turn_before_the_first_snapshot_leaves_the_files(past: Past) -> None:
    past.timeline.begin_turn()
    past.timeline.append("user", {"content": [{"type": "text", "text": "Do"}], "prompt": "Do", "model": "m"})
    past.put("a.txt", "1")
    past.timeline.append("turn_end", {"reason": "end_turn", "usage": {}, "cost": None, "files": []})
    plan = past.plan()
    assert plan.target is None
    assert "was not kept: its files stay" in plan.describe()
    past.undo(plan=plan)
    assert past.text("a.txt") == "1"
    with pytest.raises(SessionError, match="no turn to undo"):
        past.plan()


def test_a_snapshot_that_failed_makes_its_changes_nobody_s(past: Past) -> None:
    past.put("a.txt", "0")
    past.put("b.txt", "0")
    with past.turn():
        past.put("a.txt", "1")
    past.put("a.txt", "mine")
    ledger.note_failure(past.timeline, "start", "no room")
    past.timeline.begin_turn()
    past.timeline.append("user", {"content": [{"type": "text", "text": "Do"}], "prompt": "Do", "model": "m"})
    past.put("b.txt", "2")
    past.timeline.append("turn_end", {"reason": "end_turn", "usage": {}, "cost": None, "files": []})
    assert past.plan(2).target is None
    ledger.note(past.timeline, past.snapshots.take(), "end")
    plan = past.plan(1)
    assert plan.files == []
    assert reasons(plan.conflicts) == {"a.txt": "also changed by someone else, between two turns"}


def test_of_a_turn_that_was_cut_short_only_what_was_captured_goes(past: Past) -> None:
    past.put("outputs/a.txt", "0")
    past.put("b.txt", "0")
    with past.turn():
        pass
    ledger.note(past.timeline, past.snapshots.take(), "start")
    past.timeline.begin_turn()
    past.timeline.append("user", {"content": [{"type": "text", "text": "Do"}], "prompt": "Do", "model": "m"})
    past.put("outputs/a.txt", "1")
    past.put("outputs/new.txt", "1")
    past.put("b.txt", "1")
    for path, digest in (("outputs/a.txt", past.blobs.put(b"1")), ("outputs/new.txt", past.blobs.put(b"1"))):
        artifact = {"path": path, "sha256": digest, "tool_call_id": "c", "source_type": "file"}
        past.timeline.append("artifact", artifact)
    past.timeline.append("turn_end", {"reason": "interrupted", "usage": {}, "cost": None, "files": []})
    for _ in range(2):
        plan = past.plan()
        assert (plan.restored, plan.removed) == (["outputs/a.txt"], ["outputs/new.txt"])
        assert reasons(plan.conflicts) == {
            "b.txt": "changed by a turn that was cut short, or by someone else"
        }
        ledger.note(past.timeline, past.snapshots.take(), "start")  # as the next turn does
    past.undo()
    assert (past.text("outputs/a.txt"), past.text("outputs/new.txt"), past.text("b.txt")) == ("0", None, "1")


def test_without_the_last_snapshot_nothing_is_overwritten(past: Past) -> None:
    past.put("a.txt", "0")
    with past.turn():
        past.put("a.txt", "1")
        past.put("b.txt", "1")
    last = ledger.latest(past.timeline.blocks)
    assert last is not None
    past.blobs.path(last).unlink()
    again = past.again()
    plan = again.plan()
    assert plan.files == []
    assert set(reasons(plan.conflicts)) == {"a.txt", "b.txt"}
    again.timeline.close()


def test_what_did_not_fit_is_told_and_never_removed(tmp_path: Path) -> None:
    past = Past(tmp_path / "s", limit=100)
    past.put("small.txt", "0")
    past.put("big.bin", "x" * 200)
    with past.turn():
        past.put("small.txt", "1")
        past.put("big.bin", "y" * 200)
        past.put("made.bin", "z" * 200)
        past.put("shrunk.bin", "w" * 200)
    with past.turn():
        past.put("shrunk.bin", "w")
    plan = past.plan(1)
    assert sorted(plan.restored + plan.removed) == ["shrunk.bin", "small.txt"]
    assert set(reasons(plan.conflicts)) == {"made.bin", "big.bin"}
    past.undo(plan=plan)
    assert past.text("small.txt") == "0"
    assert past.text("made.bin") == "z" * 200
    past.timeline.close()


def test_earlier_bytes_that_are_gone_are_told(past: Past) -> None:
    past.put("a.txt", "0")
    with past.turn():
        past.put("a.txt", "1")
    start = past.snapshots.load(past.plan().target or "")
    past.blobs.path(start.files["a.txt"].sha256).unlink()
    plan = past.plan()
    assert plan.files == []
    assert set(reasons(plan.lost)) == {"a.txt"}
    assert "Cannot be put back" in plan.describe()
    assert past.text("a.txt") == "1"


# Outside work/ ------------------------------------------------------------------------------------


async def test_edits_in_the_notebook_s_folder_go_back(here: Past, tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "analysis.py").write_text("print(1)\n")
    (project / "analysis.py").chmod(0o755)
    with here.turn("Edit", "ruff format .", "touch other.txt"):
        await here.write("analysis.py", "print(2)\n")
        await here.write("analysis.py", "print(3)\n")
        await here.write("new/deep/notes.md", "notes")
        (project / "analysis.py").write_text("print(3)  # formatted\n")
        (project / "other.txt").write_text("by bash")
    plan = here.plan()
    assert sorted(plan.restored + plan.removed) == [
        str(project / "analysis.py"),
        str(project / "new/deep/notes.md"),
    ]
    assert "ruff format ." in plan.describe()
    here.undo(plan=plan)
    assert (project / "analysis.py").read_text() == "print(1)\n"
    assert (project / "analysis.py").stat().st_mode & 0o777 == 0o755
    assert not (project / "new").exists()
    assert (project / "other.txt").read_text() == "by bash"
    with here.turn():
        await here.write("analysis.py", "print(4)\n")
    assert here.undo().restored == [str(project / "analysis.py")]
    assert (project / "analysis.py").read_text() == "print(1)\n"


async def test_outside_the_user_s_changes_are_hers_too(here: Past, tmp_path: Path) -> None:
    project = tmp_path / "project"
    for name in ("since", "between", "fine"):
        (project / f"{name}.txt").write_text("0")
    with here.turn():
        for name in ("since", "between", "fine", "made"):
            await here.write(f"{name}.txt", "1")
    (project / "between.txt").write_text("mine")
    with here.turn():
        await here.write("between.txt", "2")
    (project / "since.txt").write_text("mine")
    (project / "made.txt").unlink()
    plan = here.plan(1)
    assert plan.restored == [str(project / "fine.txt")]
    assert reasons(plan.conflicts) == {
        str(project / "since.txt"): "changed since",
        str(project / "between.txt"): "also changed by someone else, between two turns",
    }
    (project / "fine.txt").write_text("late")
    done = here.undo(plan=plan)
    assert set(reasons(done.conflicts)) == {str(project / f"{n}.txt") for n in ("since", "between", "fine")}
    assert (project / "fine.txt").read_text() == "late"


async def test_an_edit_that_was_cut_short_is_not_guessed_at(here: Past, tmp_path: Path) -> None:
    place = tmp_path / "project" / "a.txt"
    place.write_text("0")
    with here.turn():
        await here.edits.before(ToolCall("c", "str_replace", {"path": "a.txt"}))
        place.write_text("1")
        del here.edits._pending["c"]
    assert here.plan().restored == [str(place)]
    with here.turn():
        await here.edits.before(ToolCall("d", "str_replace", {"path": "a.txt"}))
    assert here.plan().files == []


async def test_a_log_from_elsewhere_writes_only_where_tools_may(here: Past, tmp_path: Path) -> None:
    victim = tmp_path / "victim.txt"
    victim.write_text("mine")
    log = here.folder / "x"
    log.write_text("mine")
    evil = here.blobs.put(b"evil")
    mine = here.blobs.put(b"mine")
    with here.turn():
        for path in (str(victim), str(log), f"{tmp_path}/project/../victim.txt", "relative.txt"):
            data = {"path": path, "before": evil, "after": mine, "mode": 0o600, "made": None, "by": "tool"}
            here.timeline.append("edit", data)
        odd = {"path": f"{tmp_path}/project/a", "before": "../../etc", "after": mine, "by": "tool"}
        here.timeline.append("edit", odd)
    (tmp_path / "project" / "a").write_text("mine")
    done = here.undo()
    assert done.restored == []
    assert victim.read_text() == "mine"
    assert log.read_text() == "mine"
    assert reasons(done.conflicts)[str(victim)] == "outside the folders that may be written"


async def test_files_that_no_tool_may_write_are_not_kept(here: Past, tmp_path: Path) -> None:
    secret = tmp_path / "id_rsa"
    secret.write_text("secret")
    (tmp_path / "project" / "link").symlink_to(secret)
    with here.turn():
        for path in (str(secret), "../id_rsa", "link", "", "x/"):
            await here.edits.before(ToolCall(path, "create_file", {"path": path, "file_text": ""}))
    assert [block for block in here.timeline.blocks if block.kind == "edit"] == []
    assert here.blobs.list() == [ledger.latest(here.timeline.blocks)]


async def test_in_work_edits_are_left_to_the_snapshots(past: Past) -> None:
    with past.turn():
        await past.write("outputs/a.txt", "a")
    assert [block for block in past.timeline.blocks if block.kind == "edit"] == []
    assert past.undo().removed == ["outputs/a.txt"]


# A real session -----------------------------------------------------------------------------------


def test_a_real_turn_is_undone(
    serve: Callable[..., FakeClaude], make_session: MakeSession, project: Path
) -> None:
    write = {"path": "outputs/a.txt", "file_text": "second\n", "description": "x"}
    serve(
        [
            bash("echo first > outputs/a.txt; echo kept > outputs/b.txt"),
            "Done.",
            tool_use("create_file", write),
            bash("rm outputs/b.txt; mkdir -p outputs/c; echo new > outputs/c/new.txt"),
            "Done again.",
        ]
    )
    session = make_session(id="s")
    session.chat("one")
    folder = session.folder
    session.close()
    past = Past(folder)
    ledger.note(past.timeline, past.snapshots.take(), "end")
    before = tree(past.work)
    past.timeline.close()
    again = type(session).resume("s", session.settings, project=project)
    again.chat("two")
    again.close()
    past = Past(folder)
    ledger.note(past.timeline, past.snapshots.take(), "end")
    plan = past.plan()
    assert sorted(plan.restored) == ["outputs/a.txt", "outputs/b.txt"]
    assert plan.removed == ["outputs/c/new.txt"]
    past.undo(plan=plan)
    assert tree(past.work) == before
    past.timeline.close()
    once_more = type(session).resume("s", session.settings, project=project)
    said = [part.get("text") for message in once_more.messages for part in message["content"]]
    assert "one" in said
    assert "two" not in said
    once_more.close()


def test_snapshots_of_two_roots_do_not_mix(tmp_path: Path) -> None:
    one, two = Past(tmp_path / "one"), Past(tmp_path / "two")
    one.put("a.txt", "a")
    assert Snapshots(two.work, one.blobs, 100).take().files == {}
    assert names(two.work / "outputs") == []
    for past in (one, two):
        past.timeline.close()
