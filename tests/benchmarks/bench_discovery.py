"""Listing and finding artifacts in a history of 10,000 of them.

Run: ``python -m tests.benchmarks.bench_discovery``. The goal for listing, which is ``current()`` and the
digest of each, is 50 ms; the peer reads the same facts from the blocks with nothing kept between two
questions.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from conjure_jupyter.timeline import Discovery, MessageProjection
from conjure_jupyter.types import Block

ARTIFACTS = 10_000
TURNS = 200
GOAL = 50
REPEATS = 9


def history(artifacts: int = ARTIFACTS) -> list[Block]:
    """Blocks as a session writes them, each for a file of its own."""
    blocks = []
    each = artifacts // TURNS
    for seq in range(artifacts):
        turn = 1 + seq // each
        name = f"charts/region {seq}.png"
        data = {
            "artifact_path": f"fi:turn_{turn:04d}.files/{name}",
            "path": f"outputs/{name}",
            "name": name,
            "version": 0,
            "mime": "image/png",
            "size": 1000 + seq,
            "sha256": f"{seq:064x}",
            "kind": "file",
            "visibility": "external",
            "source_type": "file",
            "tool_call_id": f"toolu_{seq // 5}",
            "tool_call_ids": [f"toolu_{seq // 5}"],
            "edited": False,
            "sources_used": [],
            "kept": True,
        }
        blocks.append(Block(seq, turn, "artifact", data, "2026-11-21T10:00:00.000+00:00"))
    return blocks


def rows(repeats: int = REPEATS) -> list[dict[str, Any]]:
    """One row a question: medians in milliseconds."""
    blocks = history()
    discovery = fed(Discovery(), blocks)
    wanted = [block.data["artifact_path"] for block in blocks[:: len(blocks) // 1000]]
    goal = f"goal {GOAL} ms; {len(discovery.current()):,} current"
    subjects: list[tuple[str, str, Callable[[], object], str]] = [
        ("list", "conjure", lambda: listed(discovery), goal),
        ("list", "the blocks themselves", lambda: scanned(blocks), "peer, without digests"),
        ("list as JSON", "conjure", lambda: texts(discovery), "one line each, safe in a prompt"),
        ("section", "conjure", lambda: discovery.artifacts_section(TURNS), "200 lines for a summary"),
        ("at a turn", "conjure", lambda: discovery.at(TURNS // 2), "when half of the turns were over"),
        ("find 1,000", "conjure", lambda: [discovery.find(path) for path in wanted], "by logical path"),
        ("feed", "conjure", lambda: fed(Discovery(), blocks), f"{len(blocks):,} blocks, once a session"),
        ("feed messages", "conjure", lambda: fed(MessageProjection(), blocks), "the same for the history"),
    ]
    return [
        {
            "bench": f"discovery of {len(blocks):,}",
            "subject": subject,
            "metric": metric,
            "median_ms": median(call, repeats),
            "note": note,
        }
        for metric, subject, call, note in subjects
    ]


def fed(projection: Any, blocks: list[Block]) -> Any:
    for block in blocks:
        projection.feed(block)
    return projection


def listed(discovery: Discovery) -> list[dict[str, Any]]:
    return [artifact.digest() for artifact in discovery.current()]


def texts(discovery: Discovery) -> list[str]:
    return [artifact.digest_text() for artifact in discovery.current()]


def scanned(blocks: list[Block]) -> list[dict[str, Any]]:
    return list({block.data["path"]: block.data for block in blocks if block.kind == "artifact"}.values())


def median(call: Callable[[], object], repeats: int) -> float:
    """Milliseconds."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1000


def main() -> None:
    """Print the table."""
    for row in rows():
        told = f"{row['metric']:14} {row['subject']:22} {row['median_ms']:8.2f} ms  {row['note']}"
        print(f"{row['bench']:22} {told}")


if __name__ == "__main__":
    main()
