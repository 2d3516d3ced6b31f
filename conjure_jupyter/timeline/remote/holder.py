"""What a lease says: who may write to a session's remote log, and until when."""

from __future__ import annotations

import datetime as dt
import json
import os
import secrets
import socket
from dataclasses import dataclass
from pathlib import Path, PurePath

from ...errors import ToolError
from ...paths import read_beneath, write_atomic

#: The name of the file in a session's folder by which a restart knows its own lease.
OWN_LEASE = "remote.json"

#: Seconds by which two machines' clocks may differ before a lease that still holds is taken for expired.
CLOCKS_DIFFER = 10.0

_LIMIT = 10_000


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a lease.

    Attributes:
        token: random; whoever knows it is the holder.
        host: the machine's name.
        pid: the process.
        kernel: the notebook's name, empty when there is none.
        expires: seconds since the epoch, by the holder's clock; 0 when it was let go.
    """

    token: str
    host: str
    pid: int
    kernel: str
    expires: float

    def expired(self, now: float) -> bool:
        """Whether nobody holds the lease any more; ``now`` in seconds since the epoch."""
        return now > self.expires + CLOCKS_DIFFER

    def told(self) -> str:
        """The holder and the end of the lease, for messages."""
        notebook = f", notebook {self.kernel}" if self.kernel else ""
        return f"process {self.pid} on {self.host}{notebook}, until {_time(self.expires)}"

    def encode(self) -> bytes:
        """The lease's bytes."""
        said = {
            "format": 1,
            "token": self.token,
            "host": self.host,
            "pid": self.pid,
            "kernel": self.kernel,
            "expires": _time(self.expires),
        }
        return json.dumps(said, indent=1).encode() + b"\n"


def read_holder(data: bytes) -> Holder | None:
    """The holder that a lease names; None when these bytes are no lease."""
    try:
        if len(data) > _LIMIT:
            return None
        said = json.loads(data)
        return Holder(
            str(said["token"]),
            _printable(said["host"]),
            int(said["pid"]),
            _printable(said["kernel"]),
            dt.datetime.fromisoformat(said["expires"]).timestamp(),
        )
    except (ValueError, KeyError, TypeError, OverflowError, OSError, RecursionError):
        return None


def introduce(token: str, kernel: str | None = None) -> Holder:
    """This process as a holder, whose time is not set yet."""
    if kernel is None:
        kernel = PurePath(os.environ.get("JPY_SESSION_NAME", "")).name
    return Holder(token, socket.gethostname(), os.getpid(), _printable(kernel), 0.0)


def own_token(folder: Path) -> str:
    """The token of a session's folder on this machine, kept there so that a restart knows its own lease.

    It counts on the machine that made it only: a folder that was copied elsewhere gets another. Whoever asks
    holds the session's lock.

    Raises:
        ToolError: it cannot be kept.
    """
    host, real = socket.gethostname(), str(folder.resolve())
    try:
        said = json.loads(read_beneath(folder, OWN_LEASE, limit=_LIMIT))
        token, made = said["token"], (said["host"], said["folder"])
        if isinstance(token, str) and token and made == (host, real):
            return token
    except (ToolError, ValueError, KeyError, TypeError, RecursionError):
        pass  # there is none yet, or a crash or somebody's editor spoiled it
    token = secrets.token_hex(16)
    kept = {"token": token, "host": host, "folder": real}
    write_atomic(folder / OWN_LEASE, json.dumps(kept).encode())
    return token


def _time(seconds: float) -> str:
    return dt.datetime.fromtimestamp(seconds, dt.UTC).isoformat(timespec="seconds")


def _printable(value: object) -> str:
    # It ends up in a message, and a lease comes from outside.
    return "".join(character for character in str(value)[:100] if character.isprintable())
