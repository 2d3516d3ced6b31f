"""What ``%load_ext conjure`` adds to an IPython that runs, and what it would add if it imported the SDK."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

#: Fresh interpreters for each subject, and the promise in milliseconds.
ROUNDS, GOAL = 15, 60

_TIMED = """
import json, sys, time
import ipykernel.ipkernel, ipykernel.zmqshell  # what a kernel has imported before its first cell
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
began, cpu = time.perf_counter(), time.process_time()
{statement}
print(json.dumps([(time.perf_counter() - began) * 1000, (time.process_time() - cpu) * 1000]))
import os; os._exit(0)
"""

SUBJECTS = {
    "%load_ext conjure": "shell.run_line_magic('load_ext', 'conjure')",
    "import anthropic": "import anthropic",
    "%load_ext of an empty module": "shell.run_line_magic('load_ext', 'bench_empty_extension')",
}


def rows(rounds: int = ROUNDS) -> list[dict[str, Any]]:
    """Medians over fresh interpreters, the subjects taken in turn; bytecode is warm."""
    wall: dict[str, list[float]] = {subject: [] for subject in SUBJECTS}
    cpu: dict[str, list[float]] = {subject: [] for subject in SUBJECTS}
    failed: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "bench_empty_extension.py").write_text("def load_ipython_extension(shell): pass\n")
        environment = {
            **os.environ,
            "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
            "PYTHONPATH": os.pathsep.join([str(Path.cwd()), made]),
            "IPYTHONDIR": str(folder / "ipython"),
        }
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for number in range(rounds + 1):
            for subject, statement in SUBJECTS.items():
                if subject in failed:
                    continue
                code = _TIMED.format(statement=statement)
                done = subprocess.run(
                    [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
                )
                if done.returncode:
                    failed[subject] = "not installed"
                elif number:  # the first round writes the bytecode
                    took = json.loads(done.stdout.splitlines()[-1])
                    wall[subject].append(took[0])
                    cpu[subject].append(took[1])
    return [
        {
            "bench": "load_ext",
            "subject": subject,
            "metric": "added to a running IPython",
            "median_ms": statistics.median(wall[subject]) if wall[subject] else None,
            "note": failed.get(subject) or _note(subject, cpu[subject]),
        }
        for subject in SUBJECTS
    ]


def _note(subject: str, cpu: list[float]) -> str:
    taken = f"{statistics.median(cpu):.0f} ms CPU"
    return f"{taken}; goal {GOAL} ms" if subject == "%load_ext conjure" else taken
