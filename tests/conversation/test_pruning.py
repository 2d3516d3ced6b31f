"""Old sessions are listed, previewed and removed; one in use, or not sure to be unused, never is."""

from __future__ import annotations

import asyncio
import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conjure_jupyter.conversation import trees
from conjure_jupyter.conversation.erasing import erase_session
from conjure_jupyter.conversation.pruning import PrunePlan, is_live, list_sessions, plan_prune, prune
from conjure_jupyter.errors import SessionError, SessionLockedError
from conjure_jupyter.storage.contract import Storage
from conjure_jupyter.timeline import Timeline

from .past import Past, names, tree

DAY = 86_400


def make(sessions: Path, name: str, days: float = 0, *, prompt: str = "Hello") -> Path:
    """A session that was used so many days ago."""
    past = Past(sessions / name)
    with past.turn(prompt):
        past.put("outputs/a.txt", "a" * 1000)
    past.timeline.close()
    aged(past.folder, days)
    return past.folder


def aged(folder: Path, days: float) -> None:
    then = time.time() - days * DAY
    os.utime(folder / "timeline.jsonl", (then, then))


def sorted_out(plan: PrunePlan) -> tuple[list[str], dict[str, str]]:
    return [use.id for use, _ in plan.removed], {use.id: why for use, why in plan.kept}


def test_the_list_says_how_sessions_are_used(tmp_path: Path) -> None:
    make(tmp_path, "new", 0, prompt="Count  the\nrows")
    old = make(tmp_path, "old", 10)
    (tmp_path / "no-session").mkdir()
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(old)
    uses = list_sessions(tmp_path)
    assert [use.id for use in uses] == ["old", "new"]
    assert 9.9 < uses[0].age < 10.1
    assert (uses[1].turns, uses[1].prompt, uses[1].live) == (1, "Count the rows", False)
    assert uses[1].files >= 4
    assert uses[1].size > 1000
    assert list_sessions(tmp_path / "nowhere") == []


async def test_old_ones_go_and_the_preview_changes_nothing(tmp_path: Path) -> None:
    for name, days in (("a", 100), ("b", 31), ("c", 29), ("d", 0)):
        make(tmp_path, name, days)
    before = tree(tmp_path)
    locks = (tmp_path / "a" / "lock").stat()
    plan = plan_prune(tmp_path, 30)
    assert tree(tmp_path) == before
    assert (tmp_path / "a" / "lock").stat() == locks
    removed, kept = sorted_out(plan)
    assert removed == ["a", "b"]
    assert kept == {"c": "used 29 days ago", "d": "used 0 days ago"}
    assert plan.size > 2000
    assert "remove a (1 turn," in plan.describe()
    assert "not used for 100 days" in plan.describe()
    done = await prune(plan)
    assert [erased.id for erased in done.erased] == ["a", "b"]
    assert "Erased session a: " in done.describe()
    assert names(tmp_path) == ["c", "d"]


def test_by_default_none_grows_too_old(tmp_path: Path) -> None:
    make(tmp_path, "a", 10_000)
    assert sorted_out(plan_prune(tmp_path, None)) == ([], {"a": "sessions are kept for ever (session_days)"})
    assert "No session is to be removed; 1 kept" in plan_prune(tmp_path, None).describe()


def test_those_to_keep_and_those_of_the_notebook_s_folder_stay(tmp_path: Path) -> None:
    make(tmp_path, "a", 100)
    here = make(tmp_path, "b", 100)
    subprocess.run(["rm", "-r", str(here / "work" / "outputs")], check=True)
    removed, kept = sorted_out(plan_prune(tmp_path, 30, keep={"a"}))
    assert removed == []
    assert kept == {"a": "asked to keep", "b": "its tools work in the notebook's folder"}


async def test_one_in_use_here_is_never_removed(tmp_path: Path) -> None:
    folder = make(tmp_path, "a", 100)
    plan = plan_prune(tmp_path, 30)
    timeline = Timeline.open(folder)
    assert is_live(folder)
    aged(folder, 100)
    assert sorted_out(plan_prune(tmp_path, 30)) == ([], {"a": "in use"})
    done = await prune(plan)
    assert done.erased == []
    assert "in use by process" in done.kept[0][1]
    with pytest.raises(SessionLockedError):
        await erase_session(folder)
    assert "work/outputs/a.txt" in tree(folder)
    timeline.close()
    assert not is_live(folder)


def test_one_in_use_by_another_process_is_never_removed(tmp_path: Path) -> None:
    folder = make(tmp_path, "a", 100)
    code = (
        "import sys; from pathlib import Path; from conjure_jupyter.timeline import Timeline\n"
        f"t = Timeline.open(Path({str(folder)!r})); print('open', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        aged(folder, 100)
        assert sorted_out(plan_prune(tmp_path, 30)) == ([], {"a": "in use"})
        other.kill()
    assert sorted_out(plan_prune(tmp_path, 30))[0] == ["a"]


async def test_one_that_was_used_since_the_preview_stays(tmp_path: Path) -> None:
    folder = make(tmp_path, "a", 100)
    plan = plan_prune(tmp_path, 30)
    past = Past(folder)
    with past.turn():
        past.put("b.txt", "b")
    past.timeline.close()
    done = await prune(plan)
    assert done.kept == [("a", "Session a was used since")]
    assert "Kept a: Session a was used since" in done.describe()
    assert "timeline.jsonl" in tree(folder)


async def test_one_that_is_gone_since_the_preview_is_no_failure(tmp_path: Path) -> None:
    folder = make(tmp_path, "a", 100)
    make(tmp_path, "b", 90)
    plan = plan_prune(tmp_path, 30)
    trees.clear(folder)
    done = await prune(plan)
    assert [erased.id for erased in done.erased] == ["b"]
    assert [name for name, _ in done.kept] == ["a"]


def test_where_nobody_can_tell_whether_it_is_in_use_it_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, "a", 100)

    def no_locks(*_: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    assert sorted_out(plan_prune(tmp_path, 30)) == (
        [],
        {"a": "this file system cannot tell whether it is in use"},
    )


def test_a_damaged_log_still_has_an_age(tmp_path: Path) -> None:
    folder = make(tmp_path, "a", 0)
    (folder / "timeline.jsonl").write_bytes(b"\xff\x00garbage")
    aged(folder, 50)
    assert sorted_out(plan_prune(tmp_path, 30))[0] == ["a"]


def test_a_folder_that_cannot_be_read_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(SessionError, match="cannot be read"):
        list_sessions(tmp_path / "file")


def test_copies_elsewhere_go_too(tmp_path: Path) -> None:
    from .test_erasing import Cloud

    make(tmp_path, "a", 100)
    clouds: dict[str, Cloud] = {}

    async def elsewhere(folder: Path) -> Storage:
        clouds[folder.name] = Cloud(["timeline/0001", "blobs/x"])
        return clouds[folder.name]

    done = asyncio.run(prune(plan_prune(tmp_path, 30), elsewhere))
    assert done.erased[0].remote == ["timeline/0001", "blobs/x"]
    assert clouds["a"].closed
