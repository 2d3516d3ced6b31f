"""What the kernel's Python needs to be the tools' Python, wherever it lies."""

from __future__ import annotations

import os
import site
import sys
from pathlib import Path

from ..environment import CERTIFICATES, python_folders

#: Variables of a command that name folders or files programs must find.
_VARIABLES = ("PYTHONPATH", "LD_LIBRARY_PATH", "CONDA_PREFIX", *CERTIFICATES)


def prefixes() -> list[Path]:
    """Where the kernel's Python and its packages lie: what is put there runs in the kernel later."""
    return [Path(text) for text in dict.fromkeys((sys.prefix, sys.base_prefix)) if text != "/usr"]


def needed(home: Path) -> list[Path]:
    """Folders and files that must stay readable; links on the way are not followed yet.

    A folder that holds the home folder is never one of them: a notebook started there has it on its path.
    """
    found = [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, *python_folders()]
    if site.ENABLE_USER_SITE:
        found.append(site.getusersitepackages())
    found += sys.path
    for name in _VARIABLES:
        found += os.environ.get(name, "").split(os.pathsep)
    # The supervisor and what it imports.
    found.append(str(Path(__file__).parent.parent))
    paths = {Path(text) for text in found if text.startswith("/")}
    hops: set[Path] = set()
    hop = Path(sys.executable)
    while sys.executable and hop not in hops:
        hops.add(hop)
        hop = hop.parent / hop.readlink() if hop.is_symlink() else hop
    return sorted(path for path in paths | hops if path.exists() and not home.is_relative_to(path))
