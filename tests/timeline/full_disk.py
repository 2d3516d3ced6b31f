"""Run in a process of its own: fills the disk, makes room, goes on, and prints what it saw."""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

from conjure_jupyter.errors import TimelineError
from conjure_jupyter.timeline import Timeline


def main(folder: Path, limit: str) -> None:
    ballast = folder.parent / "ballast"
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), resource.RLIM_INFINITY))
    else:
        ballast.write_bytes(b"x" * 40_000)
    timeline = Timeline.create(folder, {})
    written, error = 0, ""
    try:
        while True:
            timeline.append("notice", {"i": written, "text": "x" * 5_000})
            written += 1
    except TimelineError as caught:
        error = str(caught)
    try:
        timeline.append("notice", {"text": "x" * 5_000})
    except TimelineError as caught:
        again = str(caught)
    during = len(Timeline.open(folder, readonly=True).blocks), Timeline.open(folder, readonly=True).problems
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    else:
        ballast.unlink()
    timeline.append("notice", {"i": written, "text": "x" * 5_000})
    timeline.sync()
    timeline.close()
    after = Timeline.open(folder)
    seqs = [block.seq for block in after.blocks]
    said = {"written": written, "error": error, "again": again, "during": during, "seqs": seqs}
    print(json.dumps({**said, "problems": after.problems, "durable": timeline.durable}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
