"""Payloads that reach what is not public: our fetcher, guards of others, and a plain client, in one run.

Run: ``python -m tests.benchmarks.bench_fetch``. Each subject has a network namespace of its own, where every
address is local; what counts is which addresses were connected to, not what the subject says about it. The
payloads are those of the tests; the goal is that none arrives. (A rule for ports is not every guard's aim.)
"""

from __future__ import annotations

import statistics
from collections import Counter
from typing import Any

from tests.artifacts.fetch_world import run

SUBJECTS = {
    "ours": "conjure",
    "guarded": "langchain-core client",
    "checked first": "langchain-core check, then httpx",
    "plain": "httpx",
}


def rows() -> list[dict[str, Any]]:
    """One row a subject: how many payloads stayed out, and the classes of those that did not."""
    found = []
    for subject, label in SUBJECTS.items():
        lines = run(subject)
        row = {"bench": "URL payloads", "subject": label, "metric": "median of a payload", "median_ms": None}
        if lines is None:
            found.append({**row, "note": "no network namespace here"})
            continue
        arrived = Counter(line["group"] for line in lines if line["reached"])
        classes = ", ".join(f"{group} {count}" for group, count in arrived.most_common())
        kept_out = len(lines) - arrived.total()
        note = f"{kept_out} of {len(lines)} kept out" + (f"; arrived: {classes}" if classes else "")
        found.append({**row, "median_ms": statistics.median(line["ms"] for line in lines), "note": note})
    return found


def main() -> None:
    """Print the table."""
    for row in rows():
        print(f"{row['subject']:34} {row['note']}")


if __name__ == "__main__":
    main()
