"""The system's errors as this package's."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator

from ..errors import ConjureError, ExecutorError, PathNotFoundError, PermissionDeniedError, ToolError

#: What the system says, and what Claude or the user is told; kinds not listed keep the system's words.
_REASONS = {
    errno.ELOOP: "too many symbolic links",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file would be larger than the system allows",
    errno.EISDIR: "is a folder",
    errno.EEXIST: "exists already",
    errno.ENOTEMPTY: "the folder is not empty",
    errno.ENXIO: "not a regular file",
}


def tool_error(error: OSError, subject: str) -> ConjureError:
    """This package's error for one of the system's, most specific first.

    Descriptors running out is our fault, not the call's: that one is an ``ExecutorError``.
    """
    if isinstance(error, FileNotFoundError):
        return PathNotFoundError(subject)
    if isinstance(error, NotADirectoryError):
        return PathNotFoundError(subject, "a part of the path is not a folder")
    if isinstance(error, PermissionError):
        return PermissionDeniedError(subject, "the system does not allow it")
    if error.errno == errno.EROFS:
        return PermissionDeniedError(subject, "the file system is read-only")
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return ExecutorError(f"{subject}: too many files are open")
    reason = _REASONS.get(error.errno or 0) or error.strerror or str(error) or "cannot be used"
    return ToolError(f"{subject}: {reason}")


@contextlib.contextmanager
def translated(subject: str) -> Iterator[None]:
    """Turn each ``OSError`` of the block into this package's error; those already so pass as they are."""
    try:
        yield
    except OSError as error:
        if isinstance(error, ConjureError):
            raise
        raise tool_error(error, subject) from error
