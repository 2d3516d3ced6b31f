"""A call over attached shells against ``docker exec`` by the SDK, in an image without Python.

Run: ``python -m tests.benchmarks.bench_shells``; needs an engine. Calls are made one after the other: with a
pause, as a conversation makes them, and without one, where each waits for a shell that is still starting.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from conjure_jupyter.engine import engine
from conjure_jupyter.executors import ExecutionContext
from tests.executors.docker import images
from tests.executors.docker.engine import engine as docker_engine
from tests.executors.docker.shells.thin import ThinExecutor

REPEATS = 30
#: Seconds between calls: shells are replaced meanwhile.
PAUSE = 0.3


def rows(repeats: int = REPEATS) -> list[dict[str, Any]]:
    """One row a subject: medians in milliseconds."""
    with docker_engine() as address, tempfile.TemporaryDirectory() as folder:
        times = engine().run(_times(address, images.bare(address), Path(folder), repeats))
    medians = {name: statistics.median(each) * 1000 for name, each in times.items()}
    peer = medians["docker exec (SDK)"]
    return [
        {
            "bench": "docker call without Python",
            "subject": name,
            "metric": "true",
            "median_ms": median,
            "note": "peer" if median == peer else f"{peer / median:.1f} times as fast",
        }
        for name, median in medians.items()
    ]


async def _times(address: str, image: str, folder: Path, repeats: int) -> dict[str, list[float]]:
    executor = ThinExecutor(address, image)
    context = await executor.start(ExecutionContext(working_directory=folder))
    times: dict[str, list[float]] = {"docker exec (SDK)": [], "shells": [], "shells, no pause": []}
    try:
        for _ in range(repeats):
            await asyncio.sleep(PAUSE)
            times["shells"].append(await _call(executor, context))
            await asyncio.sleep(PAUSE)
            times["docker exec (SDK)"].append(await _exec(executor))
        for _ in range(repeats):
            times["shells, no pause"].append(await _call(executor, context))
    finally:
        await executor.close()
    return times


async def _call(executor: ThinExecutor, context: ExecutionContext) -> float:
    started = time.perf_counter()
    await executor.run("true", context)
    return time.perf_counter() - started


async def _exec(executor: ThinExecutor) -> float:
    container, connection = executor.container, executor.engine
    assert container is not None
    assert connection is not None
    api = connection.api

    def run() -> float:
        started = time.perf_counter()
        made = api.exec_create(container.id, ["bash", "-c", "true"])
        api.exec_start(made)
        api.exec_inspect(made)
        return time.perf_counter() - started

    return await asyncio.to_thread(run)


def main() -> None:
    """Print the table."""
    for row in rows():
        print(f"{row['subject']:20} {row['metric']:6} {row['median_ms']:8.2f} ms  {row['note']}")


if __name__ == "__main__":
    main()
