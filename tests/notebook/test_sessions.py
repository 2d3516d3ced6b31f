"""``%claude sessions`` and ``%claude undo`` as a user types them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from conjure_jupyter.notebook.sessions import ago
from conjure_jupyter.testing import FakeClaude
from tests.builders import bash

from .conftest import Shell

Serve = Callable[..., FakeClaude]

DAY = 86_400


def session(shell: Shell, words: str, *, days: float = 0) -> Path:
    """A session that was closed, and that nobody used for some days; gives its folder."""
    shell.value(f"%%claude --new\n{words}")
    desk = shell.ip.magics_manager.registry["ConjureMagics"].desk
    folder: Path = desk.existing().session.folder
    if days:
        shell.printed("%claude new")
        used = time.time() - days * DAY
        os.utime(folder / "timeline.jsonl", (used, used))
    return folder


def test_they_are_listed_with_size_and_age(shell: Shell, serve: Serve) -> None:
    serve(["one", "two"])
    assert shell.printed("%claude sessions") == "No sessions in this folder yet\n"
    old = session(shell, "the old\x1b[31m question", days=3)
    new = session(shell, "the new one")
    first, second, total = shell.printed("%claude sessions").splitlines()
    assert first.split("  ")[:2] == [old.name, "1 turn"]
    assert first.endswith("3 days ago  the old question")
    assert " KB  " in first
    assert second.startswith(new.name)
    assert second.endswith("[open here as 'main'] the new one")
    assert total.startswith("2 sessions, ")


@pytest.mark.parametrize(
    ("days", "said"),
    [
        (0, "just now"),
        (1 / 1440, "1 minute ago"),
        (3.5 / 24, "3 hours ago"),
        (1, "1 day ago"),
        (400.2, "400 days ago"),
    ],
)
def test_ages(days: float, said: str) -> None:
    assert ago(days) == said


def test_one_is_erased_and_told(shell: Shell, serve: Serve) -> None:
    serve(["one", "two"])
    old = session(shell, "old", days=1)
    new = session(shell, "new")
    assert "is open here" in shell.complaint(f"%claude sessions --delete {new.name}")
    said = shell.printed(f"%claude sessions --delete {old.name}")
    assert said.startswith(f"Erased session {old.name}: ")
    assert not old.exists()
    assert new.exists()
    assert "No session" in shell.complaint(f"%claude sessions --delete {old.name}")
    assert "cannot be a session's name" in shell.complaint("%claude sessions --delete ../..")


def test_what_an_erasure_left_goes_by_its_name(shell: Shell, serve: Serve) -> None:
    serve(["one"])
    old = session(shell, "old", days=1)
    (old / "timeline.jsonl").rename(old / "timeline.erased")
    left = old.rename(old.with_name(f".deleted-{old.name}-0a1b2c3d"))
    assert "was being erased" in shell.printed("%claude sessions")
    assert "Erased" in shell.printed(f"%claude sessions --delete {old.name}")
    assert not left.exists()


def test_old_ones_are_removed_and_can_be_previewed(
    shell: Shell, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(["one", "two", "three"])
    older, old = session(shell, "older", days=90), session(shell, "old", days=10)
    new = session(shell, "new")
    for line in ("--prune 30 --dry-run", "--dry-run --prune 30"):
        preview = shell.printed(f"%claude sessions {line}")
        assert "1 to remove" in preview
        assert f"remove {older.name}" in preview
        assert f"keep   {new.name}: in use" in preview
    assert "takes DAYS, as session_days is not set" in shell.complaint("%claude sessions --prune --dry-run")
    assert older.exists()
    assert f"Erased session {older.name}" in shell.printed("%claude sessions --prune 30")
    assert not older.exists()
    monkeypatch.setenv("CONJURE_SESSION_DAYS", "5")
    assert f"Erased session {old.name}" in shell.printed("%claude sessions --prune")
    assert shell.printed("%claude sessions --prune 0").startswith("No session was removed")
    assert new.exists()


def test_where_tools_work_in_the_notebooks_folder_none_is_pruned(
    shell: Shell, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(["one", "two"])
    old = session(shell, "old", days=90)
    monkeypatch.setenv("CONJURE_WORKSPACE", ".")
    monkeypatch.setenv("CONJURE_SESSION_DAYS", "5")
    assert "is off where the tools work in the notebook's folder" in shell.complaint(
        "%claude sessions --prune 30"
    )
    session(shell, "new")
    time.sleep(0.3)
    assert old.exists()


def test_a_kernel_removes_old_ones_once_and_says_so(
    shell: Shell, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(["one", "two", "three", "four"])
    old, recent = session(shell, "old", days=90), session(shell, "recent", days=2)
    monkeypatch.setenv("CONJURE_SESSION_DAYS", "30")
    said, deadline = shell.printed("%reload_ext conjure_jupyter\n%claude new"), time.monotonic() + 30
    while "Removed" not in said:
        assert time.monotonic() < deadline
        said = shell.printed("%claude status")
    (line,) = (line for line in said.splitlines() if "Removed" in line)
    assert line.startswith("Removed 1 session that nobody used for 30 days (session_days): ")
    assert not old.exists()
    assert recent.exists()
    older = session(shell, "older", days=90)
    shell.printed("%claude new")
    assert "Removed" not in shell.printed("%claude status")
    assert older.exists()


def test_undo_is_previewed_then_carried_out(shell: Shell, serve: Serve, project: Path) -> None:
    claude = serve(
        [
            bash("echo one > outputs/a.txt; echo kept > outputs/b.txt"),
            "one",
            bash("echo two > outputs/a.txt; echo new > outputs/c.txt"),
            "two",
            "three",
        ]
    )
    shell.value("%%claude --approve auto\nfirst")
    shell.value("%%claude --approve auto\nsecond")
    work = next((project / ".conjure" / "sessions").glob("*/work/outputs"))

    for line in ("%claude undo --dry-run", "%claude undo 2 --dry-run", "%claude undo --dry-run 2"):
        preview = shell.printed(line)
        assert preview.startswith("Undo turn 2 (second)\n")
        assert "Put back:\n  outputs/a.txt (changed)" in preview
        assert "Removed:\n  outputs/c.txt" in preview
        assert "Not undone: what these commands did" in preview
    assert (work / "a.txt").read_text() == "two\n"

    (work / "a.txt").write_text("the user's own")
    done = shell.printed("%claude undo")
    assert done.startswith("Undone up to the start of turn 2: 0 files put back, 1 file removed\n")
    assert "outputs/a.txt was left: " in done
    assert sorted(path.name for path in work.iterdir()) == ["a.txt", "b.txt"]

    assert "Turn 2 was undone already" in shell.complaint("%claude undo 2")
    assert "no turn 9" in shell.complaint("%claude undo 9")
    shell.value("%%claude\nthird")
    sent = [str(message["content"]) for message in claude.messages[-1].body["messages"]]
    assert any("first" in text for text in sent)
    assert not any("second" in text for text in sent)
