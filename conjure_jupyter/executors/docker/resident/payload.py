"""The modules that the resident process is made of, as one compressed text.

They are this package's own, unchanged, so that a call means the same here and there; packages whose
``__init__`` would load more than that get an empty one.
"""

from __future__ import annotations

import functools
import json
import zlib
from pathlib import Path

_PACKAGE = Path(__file__).parents[3]

#: Modules of the package, as they are.
MODULES = (
    "errors.py",
    "wording.py",
    *(f"paths/{name}.py" for name in ("__init__", "opening", "translation", "walk", "writing")),
    *(f"executors/{name}.py" for name in ("calls", "commands", "contract", "files", "groups", "output")),
    *(f"executors/{name}.py" for name in ("reaper", "supervisor", "workers")),
    *(f"executors/docker/resident/{name}.py" for name in ("answers", "frames", "limits", "outbox")),
    *(f"executors/docker/resident/{name}.py" for name in ("server", "surroundings")),
)
#: Packages that are empty over there.
EMPTY = ("", "executors/", "executors/docker/", "executors/docker/resident/")


def files() -> dict[str, str]:
    """The text of each file by its path, the package's name included."""
    found = {f"{_PACKAGE.name}/{folder}__init__.py": "" for folder in EMPTY}
    for name in MODULES:
        found[f"{_PACKAGE.name}/{name}"] = (_PACKAGE / name).read_text(encoding="utf-8")
    return found


@functools.cache
def payload() -> bytes:
    """What ``boot`` reads: 4 bytes of length, big-endian, and as many of compressed JSON, path to text.

    Raises:
        OSError: this package's own files cannot be read.
    """
    packed = zlib.compress(json.dumps(files()).encode("ascii"), 9)
    return len(packed).to_bytes(4, "big") + packed
