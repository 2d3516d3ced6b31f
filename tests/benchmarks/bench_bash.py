"""A local bash call against a bare ``subprocess.run``, which ends nothing it leaves behind.

Run: ``python -m tests.benchmarks.bench_bash``. The goal is 1.5 times the bare call at most.
"""

from __future__ import annotations

import statistics
import subprocess
import tempfile
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from conjure_jupyter.engine import engine
from conjure_jupyter.executors import ExecutionContext, LocalExecutor

GOAL = 1.5
REPEATS = 200
COMMANDS = ("true", "echo hi")


def rows(repeats: int = REPEATS) -> list[dict[str, Any]]:
    """One row a command and subject: medians in milliseconds of calls made in turn."""
    found = []
    executor = LocalExecutor()
    with tempfile.TemporaryDirectory() as folder:
        context = engine().run(executor.start(ExecutionContext(working_directory=Path(folder))))
        for command in COMMANDS:
            times: dict[str, list[float]] = {"subprocess.run": [], "async": [], "sync": []}
            for _ in range(repeats):
                times["subprocess.run"].append(_bare(command, folder))
                times["async"].append(engine().run(_timed(executor.run(command, context))))
                started = time.perf_counter()
                engine().run(executor.run(command, context))
                times["sync"].append(time.perf_counter() - started)
            medians = {name: statistics.median(each) * 1000 for name, each in times.items()}
            bare = medians["subprocess.run"]
            for name, label in (
                ("subprocess.run", "subprocess.run"),
                ("async", "conjure (async)"),
                ("sync", "conjure (sync)"),
            ):
                note = "peer" if name == "subprocess.run" else f"{medians[name] / bare:.2f}x, goal {GOAL}x"
                found.append(
                    {
                        "bench": "local bash call",
                        "subject": label,
                        "metric": command,
                        "median_ms": medians[name],
                        "note": note,
                    }
                )
    engine().run(executor.close())
    return found


def _bare(command: str, folder: str) -> float:
    started = time.perf_counter()
    subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=True,
    )
    return time.perf_counter() - started


async def _timed(call: Awaitable[object]) -> float:
    started = time.perf_counter()
    await call
    return time.perf_counter() - started


def main() -> None:
    """Print the table."""
    for row in rows():
        subject, note = f"{row['metric']:8} {row['subject']:16}", row["note"]
        print(f"{row['bench']:16} {subject} {row['median_ms']:7.3f} ms  {note}")


if __name__ == "__main__":
    main()
