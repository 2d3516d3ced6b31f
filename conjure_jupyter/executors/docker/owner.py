"""Which process of which machine made a container or volume, and whether it still lives.

The label reads ``boot:namespace:pid:start:machine``. A process is judged only by one that can see it: of the
same boot and the same namespace of process ids. After a reboot of the same machine all earlier owners are
dead. About any other nothing is known.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import platform
import subprocess
import sys
import uuid
from pathlib import Path

#: Labels on everything that is made on an engine.
MARK = "conjure.jupyter"
SESSION = "conjure.session"
OWNER = "conjure.owner"
KIND = "conjure.kind"

#: Where the system keeps its programs.
_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"


def labels(session: str, kind: str) -> dict[str, str]:
    """What a container, volume or helper of this process is labelled with.

    Args:
        kind: ``container``, ``volume`` or ``helper``.
    """
    return {MARK: "1", SESSION: session, OWNER: owner(), KIND: kind}


def owner() -> str:
    """This process; differs in a fork."""
    pid = os.getpid()
    return f"{boot()}:{_namespace()}:{pid}:{_start(pid) or ''}:{machine()}"


def alive(text: str) -> bool | None:
    """Whether the process that a label names lives.

    Returns:
        None where this process cannot know: another machine, another container, a label it cannot read.
    """
    parts = text.split(":")
    if len(parts) != 5 or not all(parts[:4]) or not parts[2].isdecimal():
        return None
    booted, namespace, pid, start, there = parts
    if booted != boot():
        return False if there and there == machine() else None
    if namespace != _namespace():
        return None
    return _start(int(pid)) == start


@functools.cache
def boot() -> str:
    """The start of the machine, in a word that no other start shares; empty when it cannot be had."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return ""
    return _said_by("sysctl", "-n", "kern.bootsessionuuid").replace(":", "-")


@functools.cache
def machine() -> str:
    """The machine, across its starts; empty when it has nothing of its own, as in most containers.

    A digest: others that use the engine can read labels. The name alone is no proof, many are ``localhost``.
    """
    own = ""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            own = Path("/etc/machine-id").read_text().strip()
    elif not (node := uuid.getnode()) >> 40 & 1:  # that bit marks a number made up for this process alone
        own = f"{node:012x}"
    return hashlib.sha256(f"{own}\n{platform.node()}".encode()).hexdigest()[:16] if own else ""


def _namespace() -> str:
    """In which namespace of process ids this process is; the same number means the same processes."""
    with contextlib.suppress(OSError):
        return str(Path("/proc/self/ns/pid").stat().st_ino)
    return "0"


def _start(pid: int) -> str | None:
    """When a process was started, in the system's own terms; None when there is none, or only its remains."""
    if sys.platform == "linux":
        try:
            text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        except OSError:
            return None
        fields = text.rpartition(")")[2].split()  # the name before it may hold anything
        return None if fields[0] in "ZX" else fields[19]
    started = _said_by("ps", "-o", "lstart=", "-p", str(pid))
    return "-".join(started.replace(":", ".").split()) or None


def _said_by(*command: str) -> str:
    """What a program of the system prints; nothing when it fails."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
            env={"LC_ALL": "C", "PATH": _PATH},
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
