"""macOS: a plan as a profile for ``sandbox-exec``.

The supervisor stays outside, because ``ps``, by which it finds what a command left, may not run inside: each
shell is started through a two-line script that confines it. In a profile the last rule that matches wins,
so the rules stand from the root down, as the deepest one wins in a plan.

The profile is the same as on every macOS since 10.15; ``sandbox-exec`` is called deprecated and works.
"""

from __future__ import annotations

import functools
import shlex
import subprocess
import sys
from pathlib import Path

from .plan import Access, Plan
from .scratch import Scratch

PROGRAM = "/usr/bin/sandbox-exec"
_PATIENCE = 10.0

#: Services that read the keychain or the clipboard, or start programs outside the sandbox.
_SERVICES = (
    "com.apple.SecurityServer",
    "com.apple.securityd",
    "com.apple.securityd.xpc",
    "com.apple.pasteboard.1",
    "com.apple.coreservices.launchservicesd",
    "com.apple.coreservices.quarantine-resolver",
    "com.apple.lsd.mapdb",
    "com.apple.lsd.open",
    "com.apple.coreservices.appleevents",
    "com.apple.xpc.smd",
)
_DEVICES = ("/dev/null", "/dev/zero", "/dev/tty", "/dev/stdout", "/dev/stderr", "/dev/ptmx")


@functools.cache
def trouble() -> str | None:
    """Why it does not work here, by a trial; None when it does."""
    if sys.platform != "darwin":
        return "sandbox-exec is macOS's"
    try:
        done = subprocess.run(
            [PROGRAM, "-p", "(version 1)(allow default)", "/usr/bin/true"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"sandbox-exec cannot be run: {error}"
    return None if done.returncode == 0 else f"sandbox-exec does not work here: {done.stderr.strip()}"


def profile(plan: Plan, scratch: Scratch) -> str:
    """The text of the profile."""
    lines = ["(version 1)", "(allow default)", "(deny file-write*)"]
    lines += [f"(allow file-write* (literal {_quoted(Path(path))}))" for path in _DEVICES]
    lines.append('(allow file-write* (regex #"^/dev/(fd/|ttys[0-9])"))')
    for path, access in plan.ordered():
        where = f"(subpath {_quoted(path)})"
        if access in (Access.HIDDEN, Access.PRIVATE):
            lines.append(f"(deny file-read* file-write* {where})")
            # Looking a path up asks for the metadata of every folder on its way.
            lines.append(f"(allow file-read-metadata (literal {_quoted(path)}))")
        elif access is Access.READ:
            lines.append(f"(allow file-read* {where})(deny file-write* {where})")
        else:
            lines.append(f"(allow file-read* file-write* {where})")
    for folder in (scratch.tmp, scratch.home):
        lines.append(f"(allow file-read* file-write* (subpath {_quoted(folder)}))")
    for path in (*plan.guarded, *plan.missing):
        lines.append(f"(deny file-write* (subpath {_quoted(path)}))")
        lines += [
            f"(deny file-write-unlink (literal {_quoted(parent)}))"
            for parent in path.parents
            if plan.access(parent) is Access.WRITE and parent not in plan.roots
        ]
    ways = sorted(_ways(plan, scratch))
    lines += [f"(allow file-read-metadata (literal {_quoted(path)}))" for path in ways]
    lines.append("(deny appleevent-send)")
    lines += [f'(deny mach-lookup (global-name "{name}"))' for name in _SERVICES]
    lines.append("(deny signal)(allow signal (target same-sandbox))")
    if not plan.network:
        lines.append("(deny network*)")
    else:
        # Sockets of agents and engines are files, and so is the one that names are looked up through.
        lines.append("(deny network-outbound (remote unix-socket))")
        lines.append('(allow network-outbound (literal "/private/var/run/mDNSResponder"))')
    return "\n".join(lines) + "\n"


def _ways(plan: Plan, scratch: Scratch) -> set[Path]:
    readable = [path for path, access in plan.rules.items() if access in (Access.READ, Access.WRITE)]
    return {parent for path in (*readable, scratch.tmp, scratch.home) for parent in path.parents}


def shell(profile_path: Path, bash: str) -> str:
    """A script that stands for bash and runs it confined."""
    return f'#!/bin/sh\nexec {PROGRAM} -f {shlex.quote(str(profile_path))} {shlex.quote(bash)} "$@"\n'


def _quoted(path: Path) -> str:
    """A path as a string of the profile's language."""
    return '"' + str(path).replace("\\", "\\\\").replace('"', '\\"') + '"'
