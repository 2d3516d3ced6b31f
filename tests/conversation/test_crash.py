"""``kill -9`` at random points: nothing acknowledged is lost, and every session goes on."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from conjure_jupyter.artifacts import BlobStore
from conjure_jupyter.conversation import Session
from conjure_jupyter.settings import Settings
from conjure_jupyter.testing import validate_messages
from conjure_jupyter.timeline import Timeline

from .crash_child import answer
from .nursery import started

KILLS = 200
KILLS_A_SESSION = 20


@pytest.fixture
def nursery() -> Iterator[subprocess.Popen[str]]:
    with started("tests.conversation.crash_child") as process:
        yield process


def acks(project: Path, name: str) -> list[str]:
    """The prompts whose turns were acknowledged."""
    path = project / "acks"
    lines = path.read_text().splitlines() if path.exists() else []
    return [line.split(" ", 1)[1] for line in lines if line.startswith(f"{name} ")]


def two_turns(project: Path, name: str) -> None:
    """Wait until a session has acknowledged two turns."""
    deadline = time.monotonic() + 60
    while len(acks(project, name)) < 2 and time.monotonic() < deadline:
        time.sleep(0.005)


def run_and_kill(
    nursery: subprocess.Popen[str], project: Path, name: str, wait: Callable[[], object]
) -> None:
    assert nursery.stdin is not None
    assert nursery.stdout is not None
    nursery.stdin.write(f"{project} {name}\n")
    nursery.stdin.flush()
    child = int(nursery.stdout.readline())
    wait()
    os.kill(child, signal.SIGKILL)
    assert nursery.stdout.readline() == "gone\n"
    failed = project / "failed"
    assert not failed.exists(), failed.read_text()


def check(project: Path, name: str) -> int:
    """Everything acknowledged is in the log; the number of acknowledged turns."""
    folder = project / ".conjure" / "sessions" / name
    mine = acks(project, name)
    if not (folder / "timeline.jsonl").exists():
        assert mine == []
        return 0
    timeline = Timeline.open(folder, readonly=True)
    said = {
        part["text"]
        for block in timeline.blocks
        if block.kind == "assistant"
        for part in block.data["message"]["content"]
        if part["type"] == "text"
    }
    timeline.close()
    assert [prompt for prompt in mine if f"Answer to {prompt}" not in said] == []
    made = [block.data for block in timeline.blocks if block.kind == "artifact"]
    blobs = BlobStore(folder / "blobs")
    assert [data["size"] for data in made] == [len(blobs.read(data["sha256"])) for data in made]
    assert len(made) >= len(mine), "each acknowledged turn has what its command made"
    return len(mine)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_killed_at_random_points(nursery: subprocess.Popen[str], tmp_path: Path) -> None:
    chance = random.Random(20)
    started = time.monotonic()
    run_and_kill(nursery, tmp_path, "first", lambda: two_turns(tmp_path, "first"))
    # Machines differ: the points lie anywhere between the start and the end of the third turn or so.
    span = 1.2 * (time.monotonic() - started)
    acknowledged = 0
    for kill in range(KILLS):
        name = f"s{kill // KILLS_A_SESSION}"
        run_and_kill(nursery, tmp_path, name, partial(time.sleep, chance.uniform(0.0, span)))
        seen = check(tmp_path, name)
        if (kill + 1) % KILLS_A_SESSION == 0 and seen:
            acknowledged += seen
            with Session.resume(name, Settings(approve="auto"), project=tmp_path, client=answer) as session:
                assert session.chat("the last").text == "Answer to the last"
                validate_messages([*session.messages, {"role": "user", "content": "next"}])
    assert acknowledged > KILLS / 10
