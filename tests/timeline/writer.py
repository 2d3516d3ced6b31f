"""A writer for the kill test: opens or makes a session, repairs it, and writes turns without end."""

from __future__ import annotations

import itertools
import random
import zlib
from collections.abc import Callable
from pathlib import Path

from conjure_jupyter.errors import SessionNotFoundError
from conjure_jupyter.timeline import Timeline, repair
from conjure_jupyter.types import Block

from .builders import answer, prompt, result, text, thinking, tool_use, turn_end


def work(ack: Callable[[str], None], folder: str, seed: str) -> None:
    """Write to the session in ``folder``; acknowledge each block as ``seq checksum``."""
    chance = random.Random(seed)
    try:
        timeline = Timeline.open(Path(folder))
    except SessionNotFoundError:
        timeline = Timeline.create(Path(folder), {"notebook": None})
        ack(mark(timeline.blocks[0]))
    timeline.subscribe(lambda block: ack(mark(block)))
    append = timeline.append
    repair(timeline)
    for turn in itertools.count(1):
        timeline.begin_turn()
        append("user", prompt(f"prompt {turn}"))
        for round_ in range(chance.randint(0, 3)):
            calls = [f"toolu_{seed}_{turn}_{round_}_{i}" for i in range(chance.randint(1, 3))]
            append("assistant", answer(thinking("hm"), text("I look."), *map(tool_use, calls)))
            chance.shuffle(calls)
            for id_ in calls:
                append("tool_call", {"id": id_, "name": "view", "decision": "allow"})
                # Now and then a long result, so that kills fall inside writes too.
                append("tool_result", result(id_, "x" * chance.choice([10, 500, 2_000, 60_000])))
            if chance.random() < 0.3:
                append("notice", {"text": "a skill was loaded"})
        append("assistant", answer(text("Done.")))
        append("turn_end", turn_end())
        if chance.random() < 0.2:
            timeline.sync()


def mark(block: Block) -> str:
    """What identifies a block and its whole content."""
    return f"{block.seq} {zlib.crc32(repr((block.kind, block.turn, block.data)).encode()):08x}"
