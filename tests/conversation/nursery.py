"""A process that forks the children which kill tests kill."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]


@contextlib.contextmanager
def started(module: str) -> Iterator[subprocess.Popen[str]]:
    """Start a module that reads a line for each child; closing its input ends it."""
    process = subprocess.Popen(
        [sys.executable, "-m", module], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        yield process
        process.stdin.close()  # type: ignore[union-attr]
