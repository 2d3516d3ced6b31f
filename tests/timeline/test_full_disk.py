"""A disk that is really full: a small tmpfs of its own, and a limit on the size of files."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def run(command: list[str]) -> dict[str, Any]:
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def check(said: dict[str, Any]) -> None:
    written = said["written"]
    assert written >= 3
    assert said["again"] == said["error"]
    assert said["during"] == [written + 1, []]
    assert said["seqs"] == list(range(written + 2))
    assert said["problems"] == []
    assert said["durable"] == written + 2


def test_a_full_file_system(tmp_path: Path) -> None:
    unshare = ["unshare", "--map-root-user", "--user", "--mount", "sh", "-c"]
    mount = f"mount -t tmpfs -o size=80k tmpfs '{tmp_path}'"
    if (
        not shutil.which("unshare")
        or subprocess.run([*unshare, mount], capture_output=True, check=False).returncode
    ):
        pytest.skip("no right to mount a small file system here")
    said = run(
        [*unshare, f"{mount} && exec '{sys.executable}' -m tests.timeline.full_disk '{tmp_path}/s1' ''"]
    )

    assert "the disk is full; free some space and go on" in said["error"]
    check(said)


def test_a_limit_on_the_size_of_files(tmp_path: Path) -> None:
    said = run([sys.executable, "-m", "tests.timeline.full_disk", str(tmp_path / "s1"), "30000"])

    assert "may not grow further" in said["error"]
    check(said)
