"""What a path that Claude writes means: one name for one place, and how it is shown.

Nothing here touches a disk or guards anything; the executor does both.
"""

from __future__ import annotations

import posixpath
import unicodedata

from ..errors import InvalidToolInputError
from ..executors.contract import ExecutionContext

#: The longest path that common file systems take.
LONGEST = 4_096


def check_path(tool: str, path: str) -> str:
    """The path as it is, when it can be one.

    Raises:
        InvalidToolInputError: it is empty, too long, or holds a NUL.
    """
    if not path.strip():
        raise InvalidToolInputError(
            tool, "path is empty; send a path such as outputs/report.md, or . for here", field="path"
        )
    if "\x00" in path:
        raise InvalidToolInputError(tool, "path holds a NUL character; leave it out", field="path")
    if len(path) > LONGEST:
        raise InvalidToolInputError(tool, f"path is longer than {LONGEST} characters", field="path")
    return path


def normalize(path: str, context: ExecutionContext) -> str:
    """The absolute path, ``.`` and ``..`` taken away, links not followed."""
    return posixpath.normpath(posixpath.join(context.working_directory.as_posix(), path))


def in_workspace(path: str, context: ExecutionContext) -> str | None:
    """The path relative to the working directory, or None when it is not inside."""
    root = posixpath.normpath(context.working_directory.as_posix())
    whole = normalize(path, context)
    if whole == root:
        return "."
    inside = root.rstrip("/") + "/"
    return whole[len(inside) :] if whole.startswith(inside) else None


def shown(path: str, context: ExecutionContext) -> str:
    """How a path is named to Claude and the user: short inside the working directory, absolute outside."""
    relative = in_workspace(path, context)
    return relative if relative is not None else normalize(path, context)


def printable(path: str) -> str:
    """A name that cannot make itself look like another line."""
    return path if path.isprintable() else path.encode("unicode_escape").decode("ascii")


def lock_key(path: object, context: ExecutionContext) -> str | None:
    """One key for every spelling of a path, also on file systems that ignore case."""
    if not isinstance(path, str) or "\x00" in path:
        return None
    return unicodedata.normalize("NFC", normalize(path, context)).casefold()
