"""What the command prints: results to standard output, its own failure in one line to standard error."""

from __future__ import annotations

import sys


def say(line: str) -> None:
    """Print a line of the result, at once: what is slow is watched while it runs."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def fail(reason: str) -> int:
    """Say why the command did nothing; returns its exit code."""
    sys.stderr.write(f"conjure: {reason}\n")
    return 2
