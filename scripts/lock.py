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
FILES = {
    "requirements-dev.txt": ["--extra", "demo", "--extra", "render", "--extra", "s3", "--group", "dev"],
    "requirements-bench.txt": ["--extra", "demo", "--extra", "s3", "--group", "bench"],
}


def main(options: list[str]) -> int:
    """Write each lock file anew, passing ``options`` on to uv."""
    uv = str(Path(sys.executable).with_name("uv"))
    shape = ["--universal", "--generate-hashes", "--no-annotate", "--no-header", "--no-emit-index-url"]
    for name, wanted in FILES.items():
        out = PROJECT / name
        command = [uv, "pip", "compile", "--quiet", *shape, *wanted, *options, "--output-file", str(out)]
        subprocess.run([*command, "pyproject.toml"], cwd=PROJECT, check=True)
        out.write_text(HEADER + out.read_text(encoding="utf-8"), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
