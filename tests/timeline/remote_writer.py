"""A writer for the kill test: goes on with a session, mirrors it, and acknowledges what is remote."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import os
import random
from collections.abc import Callable
from pathlib import Path

from conjure_jupyter.timeline import Timeline
from conjure_jupyter.timeline.remote import LogMirror

from .builders import prompt, turn_end
from .remote_stores import Remote, s3_bucket


def work(ack: Callable[[str], None], folder: str, port: str, name: str, seed: str) -> None:
    """Write turns without end; acknowledge the size of the log whenever all of it is remote."""
    asyncio.run(_work(ack, Path(folder), s3_remote(int(port), name), random.Random(seed)))


def s3_remote(port: int, name: str) -> Remote:
    return Remote(s3_bucket(port, name))


async def _work(ack: Callable[[str], None], folder: Path, remote: Remote, chance: random.Random) -> None:
    timeline = (Timeline.open if (folder / "timeline.jsonl").exists() else Timeline.create)(folder)
    (folder / "blobs").mkdir(exist_ok=True)
    mirror = LogMirror(timeline, remote, interval=0.005)
    assert await mirror.start()
    for turn in itertools.count(1):
        timeline.begin_turn()
        timeline.append("user", prompt(f"prompt {turn}"))
        for _ in range(chance.randint(0, 3)):
            data = os.urandom(chance.choice([10, 1000, 100_000]))
            digest = hashlib.sha256(data).hexdigest()
            (folder / "blobs" / digest).write_bytes(data)
            timeline.append("artifact", {"path": "outputs/x", "sha256": digest, "kept": True})
            timeline.append("notice", {"text": "x" * chance.choice([10, 500, 60_000])})
            await asyncio.sleep(chance.choice([0, 0.003]))
        timeline.append("turn_end", turn_end())
        size = (folder / "timeline.jsonl").stat().st_size
        if chance.random() < 0.7:
            assert await mirror.synced()
            ack(str(size))
