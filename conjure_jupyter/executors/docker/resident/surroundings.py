"""What a command in the container sees of its environment: the image's, and what it needs besides.

Nothing of the kernel's environment ever comes here. Runs in the container: standard library only.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

#: The home folder of containers that were made for tools; in memory, and the user's own.
HOME = "/home/sandbox"
#: Where programs are looked for when the image does not say.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Surroundings:
    """The environment of commands.

    Args:
        given: what this process was started with; read from the system when None, because Python changes
            its own copy.
        folder: where a program may be put that the image lacks: ``python`` where there is only ``python3``.
    """

    def __init__(self, given: Mapping[str, str] | None, folder: str) -> None:
        found = dict(_original() if given is None else given)
        found.setdefault("PATH", PATH)
        if not _usable_home(found.get("HOME", "")) and _usable_home(HOME):
            found["HOME"] = HOME
        if not any(name in found for name in ("LANG", "LC_ALL", "LC_CTYPE")):
            found["LANG"] = "C.UTF-8"
        found.setdefault("TERM", "dumb")
        python = which("python3", found["PATH"])
        if python is not None and which("python", found["PATH"]) is None:
            found["PATH"] += f":{_python(python, folder)}"
        self._found = found

    @property
    def home(self) -> str:
        """The home folder of commands."""
        return self._found.get("HOME", "/")

    def of(self, extra: Mapping[str, str]) -> dict[str, str]:
        """All that a command sees; ``extra`` wins."""
        return {**self._found, **extra}


def which(name: str, search: str) -> str | None:
    """The absolute path of a program; ``shutil`` has the same and takes long to import."""
    for folder in search.split(":"):
        path = f"{folder or '.'}/{name}"
        if os.path.isfile(path) and os.access(path, os.X_OK):  # noqa: PTH113  strings are what is needed
            return os.path.abspath(path)  # noqa: PTH100
    return None


def _original() -> dict[str, str]:
    try:
        with open("/proc/self/environ", "rb") as file:  # noqa: PTH123
            pairs = [pair.partition(b"=") for pair in file.read().split(b"\0") if b"=" in pair]
    except OSError:
        return dict(os.environ)
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}


def _usable_home(path: str) -> bool:
    """Engines set ``/`` for a user whom the image does not know; a read-only root has no other either."""
    return path not in ("", "/") and os.access(path, os.W_OK | os.X_OK)


def _python(python: str, folder: str) -> str:
    """A folder with ``python``: a script, for virtual environments' sake, or a link where none may run."""
    shims = f"{folder}/bin"
    os.mkdir(shims, 0o700)  # noqa: PTH102
    if os.statvfs(shims).f_flag & os.ST_NOEXEC:
        os.symlink(python, f"{shims}/python")  # noqa: PTH211
        return shims
    with open(f"{shims}/python", "w", encoding="utf-8") as file:  # noqa: PTH123
        quoted = python.replace("'", "'\\''")
        file.write(f"#!/bin/sh\nexec '{quoted}' \"$@\"\n")
        os.fchmod(file.fileno(), 0o700)
    return shims
