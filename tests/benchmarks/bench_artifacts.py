"""Staging a file of 1 GB, as ``stage_artifacts`` does, beside the copy and digest of the standard library.

Staging keeps the bytes by digest, on disk for good, and puts a copy into the working directory. The peer is
the least that a simple design does: ``shutil.copyfile`` into the working directory and ``hashlib`` over it,
without ``fsync``. ``keep`` and ``checkout`` are the two halves of ours by themselves. A note says whether the
file system shares blocks between copies (``FICLONE``); then neither half writes anything. Digesting takes
most of the time: its row is the floor for whoever wants to know what is in a file.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from conjure_jupyter.artifacts import copying
from conjure_jupyter.artifacts.blobs import BlobStore

SIZE = 1 << 30
REPEATS = 3


def rows(size: int = SIZE, repeats: int = REPEATS) -> list[dict[str, Any]]:
    """One row a step and subject: medians in milliseconds; every run starts from an empty folder."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        source = folder / "source.bin"
        _fill(source, size)
        clones = _clones(folder)
        how = "cloned (FICLONE)" if clones else "copied: this file system cannot clone"
        steps: list[tuple[str, str, Callable[[Path], float], str]] = [
            ("stage", "copyfile + hashlib", lambda work: _peer(source, work), "peer, nothing kept, no fsync"),
            ("stage", "conjure", lambda work: _staged(source, work, size), how),
            ("digest alone", "hashlib", lambda _: _digested(source), "the floor"),
            ("keep", "conjure", lambda work: _kept(source, work, size), f"{how}; on disk for good"),
            ("checkout", "copyfile", lambda work: _copied(source, work, size), "peer, of the same blob"),
            ("checkout", "conjure", lambda work: _checked_out(source, work, size), how),
        ]
        times: dict[tuple[str, str], list[float]] = {(metric, subject): [] for metric, subject, *_ in steps}
        for _ in range(repeats):
            for metric, subject, step, _note in steps:
                work = folder / "work"
                work.mkdir()
                times[metric, subject].append(step(work))
                shutil.rmtree(work)
        return [
            {
                "bench": "artifact",
                "subject": subject,
                "metric": f"{metric}, {size / (1 << 30):g} GB",
                "median_ms": statistics.median(times[metric, subject]) * 1000,
                "note": note,
            }
            for metric, subject, _, note in steps
        ]


def _fill(path: Path, size: int) -> None:
    block = os.urandom(1 << 20)
    with path.open("wb") as stream:
        for at in range(0, size, len(block)):
            stream.write(block[: size - at])
        stream.flush()
        os.fsync(stream.fileno())


def _clones(folder: Path) -> bool:
    with (folder / "source.bin").open("rb") as source, (folder / "probe").open("w+b") as probe:
        return copying.clone(source.fileno(), probe.fileno())


def _peer(source: Path, work: Path) -> float:
    started = time.perf_counter()
    shutil.copyfile(source, work / "source.bin")
    with (work / "source.bin").open("rb") as stream:
        hashlib.file_digest(stream, "sha256").hexdigest()
    return time.perf_counter() - started


def _digested(source: Path) -> float:
    started = time.perf_counter()
    with source.open("rb") as stream:
        hashlib.file_digest(stream, "sha256").hexdigest()
    return time.perf_counter() - started


def _copied(source: Path, work: Path, size: int) -> float:
    store = BlobStore(work / "blobs")
    digest, _ = store.put_file(source, limit=size)
    started = time.perf_counter()
    shutil.copyfile(store.path(digest), work / "source.bin")
    return time.perf_counter() - started


def _kept(source: Path, work: Path, size: int) -> float:
    store = BlobStore(work / "blobs")
    started = time.perf_counter()
    store.put_file(source, limit=size)
    return time.perf_counter() - started


def _staged(source: Path, work: Path, size: int) -> float:
    store = BlobStore(work / "blobs")
    started = time.perf_counter()
    digest, _ = store.put_file(source, limit=size)
    store.checkout(digest, work, "uploads/source.bin", 0o600)
    return time.perf_counter() - started


def _checked_out(source: Path, work: Path, size: int) -> float:
    store = BlobStore(work / "blobs")
    digest, _ = store.put_file(source, limit=size)
    started = time.perf_counter()
    store.checkout(digest, work, "uploads/source.bin", 0o600)
    return time.perf_counter() - started


def main() -> None:
    """Print the table."""
    for row in rows():
        subject = f"{row['metric']:20} {row['subject']:20}"
        print(f"{row['bench']:10} {subject} {row['median_ms']:9.1f} ms  {row['note']}")


if __name__ == "__main__":
    main()
