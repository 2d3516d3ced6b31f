"""Run a command with an engine and its test image named in the environment.

    python -m tests.with_engine COMMAND…

Where there is no engine, the notebook about containers is left out, which is told in one line.
"""

from __future__ import annotations

import os
import subprocess
import sys

from tests.executors.docker import images
from tests.executors.docker.engine import NoEngineError, engine

NOTEBOOK = "notebooks/03_docker.ipynb"


def main(command: list[str]) -> int:
    """Run it; its exit code."""
    try:
        with engine() as address:
            named = {"DOCKER_HOST": address, "CONJURE_DOCKER_IMAGE": images.base(address)}
            return subprocess.run(command, env={**os.environ, **named}, check=False).returncode
    except NoEngineError as error:
        print(f"{NOTEBOOK} is left out: {error}")
    command = [word for word in command if word != NOTEBOOK]
    ignore = [f"--ignore={NOTEBOOK}"] if command[0].endswith("pytest") else []
    return subprocess.run([*command, *ignore], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
