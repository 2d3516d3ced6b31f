"""``kill -9`` in the middle of an undo and of an erasure: the next one does the rest, and nothing is lost."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from conjure_jupyter.conversation.pruning import list_sessions, plan_prune, prune
from conjure_jupyter.errors import SessionError

from .nursery import started
from .past import Past, tree

KILLS = 25
FILES = 40


@pytest.fixture
def nursery() -> Iterator[subprocess.Popen[str]]:
    with started("tests.conversation.undo_child") as process:
        yield process


def run_and_kill(nursery: subprocess.Popen[str], what: str, folder: Path, after: float | None) -> float:
    """Let a child work, and kill it after some seconds; returns how long it took."""
    assert nursery.stdin is not None
    assert nursery.stdout is not None
    started = time.monotonic()
    nursery.stdin.write(f"{what} {folder}\n")
    nursery.stdin.flush()
    child = int(nursery.stdout.readline())
    if after is not None:
        time.sleep(after)
        os.kill(child, signal.SIGKILL)
    nursery.stdin.write("reap\n")
    nursery.stdin.flush()
    assert nursery.stdout.readline() == "gone\n"
    failed = folder.with_name("failed")
    assert not failed.exists(), failed.read_text()
    return time.monotonic() - started


@pytest.fixture
def template(tmp_path: Path) -> Path:
    """A session whose turn changed, deleted and made files, one of which the user changed since."""
    past = Past(tmp_path / "template")
    for number in range(FILES):
        past.put(f"outputs/{number % 5}/{number}.txt", f"before {number}")
    with past.turn():
        for number in range(FILES):
            place = past.work / f"outputs/{number % 5}/{number}.txt"
            if number % 4 == 3:
                place.unlink()
            else:
                place.write_text(f"after {number}")
            past.put(f"made/{number % 3}/{number}.txt", f"made {number}")
    past.put("outputs/0/0.txt", "mine")
    past.timeline.close()
    return past.folder


def test_an_undo_killed_at_random_points(
    nursery: subprocess.Popen[str], template: Path, tmp_path: Path
) -> None:
    chance = random.Random(7)
    before = tree(template / "work")
    wanted = {f"outputs/{n % 5}/{n}.txt": (f"before {n}".encode(), 0o644) for n in range(1, FILES)}
    wanted["outputs/0/0.txt"] = (b"mine", 0o644)
    span = 0.0
    for first in (tmp_path / "first", tmp_path / "second"):  # the first one waits for the nursery to start
        shutil.copytree(template, first, symlinks=True)
        span = run_and_kill(nursery, "undo", first, None)
        assert tree(first / "work") == wanted
    halfway = 0
    for kill in range(KILLS):
        folder = tmp_path / f"s{kill}"
        shutil.copytree(template, folder, symlinks=True)
        run_and_kill(nursery, "undo", folder, chance.uniform(0, 1.1 * span))
        now = tree(folder / "work")
        halfway += now not in (before, wanted)
        for path, found in now.items():
            assert found in (before.get(path), wanted.get(path)), path
        past = Past(folder)
        try:
            done = past.undo()
        except SessionError as error:
            assert "no turn to undo" in str(error)  # noqa: PT017  it was done before the kill
        else:
            assert [kept.path for kept in done.conflicts] == ["outputs/0/0.txt"]
        assert tree(past.work) == wanted
        assert not (past.work / "made").exists()
        kept = {past.blobs.read(digest) for digest in past.blobs.list()}
        assert {data for data, _ in before.values()} <= kept
        past.timeline.close()
        shutil.rmtree(folder)
    assert halfway


async def test_an_erasure_killed_at_random_points(
    nursery: subprocess.Popen[str], template: Path, tmp_path: Path
) -> None:
    chance = random.Random(11)
    sessions = tmp_path / "sessions"
    sessions.mkdir()
    before = tree(template)
    span = 0.0
    for _ in range(2):
        shutil.copytree(template, sessions / "first", symlinks=True)
        span = run_and_kill(nursery, "erase", sessions / "first", None)
        assert list(sessions.iterdir()) == []
    halfway = 0
    for kill in range(KILLS):
        folder = sessions / f"s{kill}"
        shutil.copytree(template, folder, symlinks=True)
        run_and_kill(nursery, "erase", folder, chance.uniform(0, 1.1 * span))
        uses = list_sessions(sessions)
        if any(not use.leftover for use in uses):
            found = tree(folder)
            assert {path: found[path] for path in before if path != "lock"} == {
                path: data for path, data in before.items() if path != "lock"
            }
            shutil.rmtree(folder)
            continue
        halfway += bool(uses)
        assert not (folder / "timeline.jsonl").exists()
        done = await prune(plan_prune(sessions, None))
        assert [erased.id for erased in done.erased] == [f"s{kill}"] * len(uses)
        assert list(sessions.iterdir()) == []
    assert halfway
