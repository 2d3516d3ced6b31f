"""Which kind of sandbox works on this machine: each is tried once in a process."""

from __future__ import annotations

import sys

from ...errors import ExecutorError
from . import bubblewrap, landlock, seatbelt
from .confinement import Kind, Wish

#: From what confines most to what confines least.
_ORDER: tuple[Kind, ...] = ("bubblewrap", "landlock")
_NEXT = {
    "bubblewrap": (
        "install the package 'bubblewrap' and let users make namespaces "
        "(sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns), "
        "or use sandbox='auto', or run the tools in Docker"
    ),
    "landlock": "use sandbox='bubblewrap' or 'auto', or run the tools in Docker",
    "seatbelt": "use sandbox='auto', or run the tools in Docker",
}


_dismissed: dict[Kind, str] = {}


def dismiss(kind: Kind, why: str) -> None:
    """Do not choose a kind again in this process: it works in a trial, and not for real folders."""
    _dismissed[kind] = why


def trouble(kind: Kind, *, network: bool) -> str | None:
    """Why a kind does not work here; None when it does. Blocks while it is tried for the first time."""
    if kind == "bubblewrap":
        return bubblewrap.trouble(network=network) if sys.platform == "linux" else "bubblewrap is Linux's"
    return landlock.trouble() if kind == "landlock" else seatbelt.trouble()


def choose(wish: Wish, *, network: bool) -> tuple[Kind | None, str]:
    """The kind to use, and when there is none, why.

    Args:
        wish: as the user set it, not ``off``.
        network: whether commands have one.

    Raises:
        ExecutorError: one was asked for by name and does not work here.
    """
    if wish in ("bubblewrap", "landlock", "seatbelt"):
        why = trouble(wish, network=network)
        if why is not None:
            raise ExecutorError(f"sandbox={wish!r}: {why}; {_NEXT[wish]}")
        return wish, ""
    reasons = []
    for kind in ("seatbelt",) if sys.platform == "darwin" else _ORDER:
        why = _dismissed.get(kind) or trouble(kind, network=network)
        if why is None:
            return kind, ""
        reasons.append(why)
    return None, "; ".join(reasons)
