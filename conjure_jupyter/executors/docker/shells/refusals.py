"""What a shell says that it could not do, as this package's errors."""

from __future__ import annotations

import errno
import os

from ....errors import ConjureError, ExecutorError, PermissionDeniedError, ToolError
from ....paths import tool_error

#: The system's words, as the tools of an image end their messages with, and its number for each.
_NUMBERS = {
    os.strerror(number).lower(): number
    for number in (
        *(errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.EROFS, errno.ELOOP, errno.ENOSPC),
        *(errno.EDQUOT, errno.EFBIG, errno.EISDIR, errno.EEXIST, errno.ENOTEMPTY, errno.ENAMETOOLONG),
        *(errno.EIO, errno.ENOMEM, errno.EBUSY, errno.ETXTBSY, errno.EINVAL, errno.ENOTSUP, errno.ESTALE),
        *(errno.EMFILE, errno.ENFILE),
    )
}
_WORDS = {
    "denied": errno.EACCES,
    "folder": errno.EISDIR,
    "irregular": errno.ENXIO,
    "links": errno.ELOOP,
    "long": errno.ENAMETOOLONG,
    "missing": errno.ENOENT,
    "notdir": errno.ENOTDIR,
    "unreadable": errno.EIO,
}
_REASONS = {"no-folder": "not a folder", "names-folder": "names a folder, not a file"}
_MAX_TEXT = 300


def refusal(path: str, words: list[str], outside: str) -> ConjureError:
    """The error for a file call.

    Args:
        path: as it was asked for.
        words: the shell's.
        outside: what to say when it leads outside.
    """
    word = words[0] if words else ""
    denials = {"outside": outside, "readonly": "read-only", "in-use": "the folder is in use"}
    if word in denials:
        return PermissionDeniedError(path, denials[word])
    number = _WORDS.get(word)
    text = " ".join(words[1:])[-_MAX_TEXT:]
    if number is None:
        number = system_number(text)
    if number is not None:
        return tool_error(OSError(number, os.strerror(number)), path)
    if "fork" in text:
        return ExecutorError(f"{path}: no more processes can be started in the container")
    return ToolError(f"{path}: {_REASONS.get(word) or text or 'cannot be written'}")


def system_number(text: str) -> int | None:
    """The system's number for the words that a message ends with."""
    return _NUMBERS.get(text.strip().rpartition(": ")[2].strip().lower())
