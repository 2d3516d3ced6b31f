"""The catalogue of 1,000 skills of 7 KB each, against five libraries, and who reads odd skills right.

Every subject runs in a process of its own, in the same environment, one after the other in three rounds,
with the files in the system's cache. ``conjure`` drops what it remembers before each load; ``conjure,
again`` is a second load in the same process.
"""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TypedDict

from tests.benchmarks.odd_skills import cases
from tests.benchmarks.peers.catalogue import SUBJECTS
from tests.builders import write_skill

SKILLS = 1_000
SIZE = 7_000
ROUNDS = 3
RUNS = 3
_ROOT = Path(__file__).resolve().parents[2]
_DRIVER = Path(__file__).parent / "peers" / "catalogue.py"
_WORDS = (
    "file",
    "table",
    "chart",
    "convert",
    "extract",
    "merge",
    "report",
    "summary",
    "colour",
    "page",
    "sheet",
)


class Row(TypedDict):
    """One line of the combined table; ``median_ms`` is None when there was nothing to measure."""

    bench: str
    subject: str
    metric: str
    median_ms: float | None
    note: str


def rows() -> list[Row]:
    """Measure everything; takes about a minute."""
    with tempfile.TemporaryDirectory() as folder:
        catalogue = Path(folder, "skills")
        write_catalogue(catalogue)
        times: dict[str, list[float]] = {subject: [] for subject in SUBJECTS}
        notes: dict[str, str] = {}
        for _ in range(ROUNDS):
            for subject in SUBJECTS:
                result = _ask(subject, {"folder": str(catalogue), "runs": RUNS})
                if isinstance(result, str):
                    notes[subject] = result
                else:
                    times[subject] += result["times"]
                    notes[subject] = f"{result['count']} skills"
        odd = _odd(Path(folder))
        return [
            Row(
                bench="catalogue",
                subject=subject,
                metric=f"{SKILLS} skills",
                median_ms=statistics.median(taken) if taken else None,
                note="; ".join(part for part in (notes[subject], odd.get(subject)) if part),
            )
            for subject, taken in times.items()
        ]


def write_catalogue(folder: Path) -> None:
    """Skills such as people write: most with plain lines, some with metadata, some with folded text."""
    dice = random.Random(7)
    for number in range(SKILLS):
        name = f"skill-{number:04d}"
        words = " ".join(dice.choice(_WORDS) for _ in range(30))
        description = f"{words}. Use when the user asks for it."
        if number % 10 == 9:
            description = f">-\n  {description[:90]}\n  {description[90:]}"
        frontmatter = f"name: {name}\ndescription: {description}\n"
        if number % 2:
            frontmatter += "license: MIT\n"
        if number % 10 < 3:
            frontmatter += 'metadata:\n  author: someone\n  version: "1.0"\n'
        body = "\n".join(" ".join(dice.choice(_WORDS) for _ in range(12)) for _ in range(95))
        write_skill(folder, name, frontmatter=frontmatter, body=body[: SIZE - 300])


def _odd(folder: Path) -> dict[str, str]:
    """How many odd skills each subject reads right, and which it does not."""
    expected = {}
    folders = {}
    for number, (name, build, skills) in enumerate(cases()):
        root = folder / "odd" / str(number)
        build(root)
        expected[name], folders[name] = skills, str(root)
    verdicts = {}
    for subject in SUBJECTS:
        found = _ask(subject, {"cases": folders})
        if not isinstance(found, str):
            wrong = [name for name, skills in expected.items() if not _same(found[name], skills)]
            verdicts[subject] = f"{len(expected) - len(wrong)} of {len(expected)} odd skills right"
            if wrong:
                verdicts[subject] += f" (not: {', '.join(wrong)})"
    return verdicts


def _same(found: object, expected: list[tuple[str, str]]) -> bool:
    return isinstance(found, list) and [tuple(skill) for skill in found] == expected


def _ask(subject: str, order: dict[str, object]) -> dict[str, list[float]] | str:
    """What a subject's process answers, or a line that says why it does not."""
    done = subprocess.run(
        [python(), str(_DRIVER), subject],
        input=json.dumps(order),
        capture_output=True,
        text=True,
        timeout=300,
        env={"PYTHONPATH": str(_ROOT), "PATH": "/usr/bin:/bin", "HOME": tempfile.gettempdir()},
        check=False,
    )
    if done.returncode:
        return f"not measured: {(done.stderr.strip().splitlines() or ['it failed'])[-1]}"
    answer: dict[str, list[float]] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


def python() -> str:
    """The interpreter of the environment that the peers are in."""
    peers = _ROOT / ".bench-venv" / "bin" / "python"
    return str(peers) if peers.exists() else sys.executable


if __name__ == "__main__":
    for row in rows():
        took = "-" if row["median_ms"] is None else f"{row['median_ms']:.1f} ms"
        print(f"{row['subject']:16} {took:>12}  {row['note']}")
