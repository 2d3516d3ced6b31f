"""What a sandbox adds to a local bash call, and to its start.

Run: ``python -m tests.benchmarks.bench_sandbox``. The goal is at most 10 ms more a call; where a kind of
sandbox does not work, its row says so.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Literal

from conjure_jupyter.engine import engine
from conjure_jupyter.executors import ExecutionContext, LocalExecutor
from conjure_jupyter.executors.contract import Network
from conjure_jupyter.executors.sandbox import Kind
from conjure_jupyter.executors.sandbox.choice import trouble

GOAL_MS = 10.0
REPEATS = 200
STARTS = 5
KINDS: tuple[Literal["off"] | Kind, ...] = ("off", "bubblewrap", "landlock")


def rows(repeats: int = REPEATS) -> list[dict[str, Any]]:
    """Two rows a kind: medians in milliseconds of calls made in turn, and of starts."""
    return engine().run(_rows(repeats))


async def _rows(repeats: int) -> list[dict[str, Any]]:
    found = []
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncExitStack() as stack:
            running: dict[str, tuple[LocalExecutor, ExecutionContext]] = {}
            starts: dict[str, list[float]] = {kind: [] for kind in KINDS}
            for kind in KINDS:
                why = None if kind == "off" else trouble(kind, network=False)
                if why is not None:
                    found.append(_row(kind, "true", None, why))
                    continue
                for number in range(STARTS):
                    executor = LocalExecutor(sandbox=kind)
                    network: Network = "full" if kind == "off" else "none"
                    context = ExecutionContext(working_directory=Path(folder), network_access=network)
                    begun = time.perf_counter()
                    context = await executor.start(context)
                    await executor.run("true", context)
                    starts[kind].append(time.perf_counter() - begun)
                    if number == STARTS - 1:
                        stack.push_async_callback(executor.close)
                        running[kind] = executor, context
                    else:
                        await executor.close()
            times: dict[str, list[float]] = {kind: [] for kind in running}
            for _ in range(repeats):
                for name, (executor, context) in running.items():
                    begun = time.perf_counter()
                    await executor.run("true", context)
                    times[name].append(time.perf_counter() - begun)
        bare = statistics.median(times["off"]) * 1000
        for name, each in times.items():
            median = statistics.median(each) * 1000
            note = "none" if name == "off" else f"{median - bare:+.2f} ms, goal {GOAL_MS:.0f} ms"
            found.append(_row(name, "true", median, note))
            found.append(_row(name, "start", statistics.median(starts[name]) * 1000, "with a first call"))
    return found


def _row(kind: str, metric: str, median: float | None, note: str) -> dict[str, Any]:
    return {"bench": "local sandbox", "subject": kind, "metric": metric, "median_ms": median, "note": note}


def main() -> None:
    """Print the table."""
    for row in rows():
        figure = "" if row["median_ms"] is None else f"{row['median_ms']:8.3f} ms"
        print(f"{row['bench']:14} {row['metric']:6} {row['subject']:11} {figure}  {row['note']}")


if __name__ == "__main__":
    main()
