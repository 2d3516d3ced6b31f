"""Write the lock files: exact versions and hashes of what a developer's environment holds.

    python -m scripts.lock [--upgrade]

They name no index and no path, so that they are good on any machine, and hold for every platform.
Versions already locked stay unless ``pyproject.toml`` rules them out or ``--upgrade`` is given.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
HEADER = "# Written by `make lock` from pyproject.toml; edit that instead.\n"
EXTRAS = {
    "requirements-dev.txt": (["demo", "docker", "render", "s3"], "dev"),
    "requirements-bench.txt": (["demo", "docker", "s3"], "bench"),
}


def main(options: list[str]) -> int:
    """Write each lock file anew, passing ``options`` on to uv."""
    uv = str(Path(sys.executable).with_name("uv"))
    shape = ["--universal", "--generate-hashes", "--no-annotate", "--no-header", "--no-emit-index-url"]
    for name, (extras, group) in EXTRAS.items():
        wanted = [word for extra in extras for word in ("--extra", extra)] + ["--group", group]
        out = PROJECT / name
        command = [uv, "pip", "compile", "--quiet", *shape, *wanted, *options, "--output-file", str(out)]
        subprocess.run([*command, "pyproject.toml"], cwd=PROJECT, check=True)
        out.write_text(HEADER + out.read_text(encoding="utf-8"), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
