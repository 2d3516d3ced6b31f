"""Snapshots of a working directory of 1,000 files against a plain copy of it.

Run: ``python -m tests.benchmarks.bench_snapshot``. The first snapshot puts every file on disk for good; every
later one that finds nothing changed reads no file at all.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from conjure_jupyter.artifacts.blobs import BlobStore
from conjure_jupyter.conversation.undo.snapshot import Snapshots

FILES = 1_000
SIZE = 4_096
REPEATS = 20


def rows(files: int = FILES, repeats: int = REPEATS) -> list[dict[str, Any]]:
    """One row a subject: medians in milliseconds."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "work")
        for number in range(files):
            place = root / "outputs" / str(number % 20) / f"{number}.bin"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(os.urandom(SIZE))
        time.sleep(0.1)  # the files' times become old enough to be trusted
        measured = f"{files:,} files of {SIZE // 1024} KB"

        def first(run: int) -> None:
            Snapshots(root, BlobStore(Path(folder, f"blobs-{run}")), 1 << 30).take()

        def copied(run: int) -> None:
            shutil.copytree(root, Path(folder, f"copy-{run}"))

        snapshots = Snapshots(root, BlobStore(Path(folder, "blobs")), 1 << 30)
        snapshots.take()
        reads = snapshots.reads
        unchanged = _median(lambda _: snapshots.take(), repeats)
        read = snapshots.reads - reads
        resumed = _median(
            lambda _: Snapshots(root, BlobStore(Path(folder, "blobs")), 1 << 30).take(), min(repeats, 5)
        )
        (root / "outputs" / "0" / "0.bin").write_bytes(b"changed")
        copy = _median(copied, min(repeats, 5))
        found = {
            "shutil.copytree": (copy, "peer"),
            "first snapshot": (_median(first, min(repeats, 3)), "every file synced to disk"),
            "snapshot, all known to the blobs": (resumed, "a session that was resumed"),
            "snapshot, nothing changed": (unchanged, f"{unchanged / copy:.2f}x, {read} files read"),
        }
    return [
        {
            "bench": "snapshot",
            "subject": subject,
            "metric": measured,
            "median_ms": took,
            "note": note,
        }
        for subject, (took, note) in found.items()
    ]


def _median(work: Callable[[int], object], repeats: int) -> float:
    times = []
    for run in range(repeats):
        started = time.perf_counter()
        work(run)
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1000


def main() -> None:
    """Print the table."""
    for row in rows():
        print(f"{row['metric']:22} {row['subject']:34} {row['median_ms']:9.1f} ms  {row['note']}")


if __name__ == "__main__":
    main()
