"""Run the benchmarks and print one table: ``python -m tests.benchmarks [NAME…]``.

Each ``bench_NAME.py`` beside this file has a function ``rows()`` that measures its subjects and gives for
each the keys ``bench``, ``subject``, ``metric``, ``median_ms`` (None when not measured) and ``note``.
"""

from __future__ import annotations

import importlib
import os
import platform
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

HEAD = ("benchmark", "subject", "measured", "median", "")


def main(wanted: Sequence[str]) -> int:
    names = sorted(path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py"))
    unknown = sorted(set(wanted) - set(names))
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are: {', '.join(names)}", file=sys.stderr)
        return 2
    lines: list[tuple[str, ...]] = []
    failed = False
    for name in wanted or names:
        began = time.monotonic()
        print(f"{name} …", end=" ", file=sys.stderr, flush=True)
        try:
            rows = importlib.import_module(f"tests.benchmarks.bench_{name}").rows()
        except Exception:  # noqa: BLE001  a benchmark that breaks must not hide the others
            traceback.print_exc()
            failed = True
            continue
        print(f"{time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
        lines += [as_line(row) for row in rows]
    print(
        f"Python {platform.python_version()}, {platform.system()} {platform.machine()}, {os.cpu_count()} CPUs"
    )
    print(table([HEAD, *lines]))
    return int(failed)


def as_line(row: Mapping[str, Any]) -> tuple[str, ...]:
    took = row["median_ms"]
    told = "not measured" if took is None else f"{took:,.{0 if took >= 1000 else 1 if took >= 10 else 2}f} ms"
    return (str(row["bench"]), str(row["subject"]), str(row["metric"]), told, str(row["note"]))


def table(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column == 3 else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
