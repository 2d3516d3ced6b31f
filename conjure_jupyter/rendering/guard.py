"""The limits of the process that renders, set by itself before it looks at a document.

The renderer gets what a document refers to from its parent and has no reason to open a file, a connection or
a process of its own. Should a library do so all the same, the audit hook here refuses it. It sees what Python
does, not what a C library does, and is the second line: the first is that no library is given a path.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

from . import limits

_REFUSED = (
    "socket.",
    "subprocess.",
    "os.exec",
    "os.fork",
    "os.posix_spawn",
    "os.spawn",
    "os.system",
    "pty.",
    "ctypes.dlopen",
)
_CHANGES = frozenset(
    {"os.chmod", "os.chown", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink"}
    | {"os.truncate", "os.utime", "os.setxattr"}
)
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def set_limits(seconds: float) -> None:
    """Bound what this process may use; where the system knows a limit not (memory on macOS), it has none.

    Args:
        seconds: after which the process ends, should its parent be gone and not have ended it.
    """
    whole = int(seconds) + 2
    for kind, wanted in (
        (resource.RLIMIT_AS, limits.MEMORY),
        (resource.RLIMIT_CPU, whole),
        (resource.RLIMIT_FSIZE, limits.ALL_RESOURCES),
        (resource.RLIMIT_NOFILE, 256),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(ValueError, OSError):
            _, hard = resource.getrlimit(kind)
            value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(kind, (value, hard))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, whole)


def close_doors() -> None:
    """From here on: reading only below the folders of modules, writing only in the temporary folder."""
    sys.dont_write_bytecode = True
    own = os.path.realpath(tempfile.gettempdir())
    modules = tuple({os.path.realpath(folder) for folder in sys.path if folder})

    def hook(event: str, arguments: Sequence[Any]) -> None:
        if event == "open":
            path, mode, flags = (*arguments, None, None, None)[:3]
            if isinstance(path, int):
                return
            writes = (isinstance(flags, int) and flags & _WRITES) or (
                isinstance(mode, str) and not set(mode).isdisjoint("wax+")
            )
            if not _below(path, (own,) if writes else (own, *modules)):
                raise PermissionError(f"the renderer opens no file: {event}")
        elif event in _CHANGES:
            if not _below(arguments[0], (own,)):
                raise PermissionError(f"the renderer changes no file: {event}")
        elif event.startswith(_REFUSED):
            raise PermissionError(f"the renderer may not: {event}")

    sys.addaudithook(hook)


def _below(path: Any, folders: Sequence[str]) -> bool:
    try:
        whole = os.path.realpath(os.fsdecode(path))
    except (TypeError, ValueError):
        return False
    return any(whole == folder or whole.startswith(folder + os.sep) for folder in folders)
