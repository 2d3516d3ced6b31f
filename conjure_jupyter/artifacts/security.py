"""Which files may be registered as artifacts; which URLs may be fetched is for ``fetch`` to say."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ..errors import ArtifactError, ArtifactNotFoundError, PathNotFoundError, PermissionDeniedError, ToolError
from ..paths import open_within, translated
from .blobs import regular


def open_file(path: Path, allowed_dirs: Sequence[str | Path] = (), *, subject: str | None = None) -> int:
    """Open a regular file of the user's to read it; the caller closes it.

    Checking and opening are one step, so nothing can be swapped in between. With ``allowed_dirs`` every
    link on the way is walked and must stay inside them; only whole names count, so that ``/data`` does not
    allow ``/database``. Without, every file that this process may read is allowed, as in Python itself.

    Args:
        path: absolute.
        allowed_dirs: folders that files may come from.
        subject: what to call it in errors; its name when None.

    Raises:
        ArtifactNotFoundError: there is no such file.
        ArtifactError: it is outside the allowed folders, no regular file, or cannot be read.
    """
    subject = subject or path.name
    try:
        with translated(subject):
            fd = open_within(str(path), [Path(folder) for folder in allowed_dirs or ("/",)], os.O_RDONLY)
    except PathNotFoundError as error:
        raise ArtifactNotFoundError(subject, reason=error.reason) from error
    except PermissionDeniedError as error:
        why = f"{error.reason} (artifact_paths)" if allowed_dirs else error.reason
        raise ArtifactError(f"{subject}: {why}") from error
    except ArtifactError:
        raise
    except ToolError as error:
        # Claude knows the file by its name; where it lies is not for it to know.
        raise ArtifactError(str(error).replace(str(path), subject)) from error
    try:
        with translated(subject):
            regular(os.fstat(fd), subject)
    except BaseException:
        os.close(fd)
        raise
    return fd


def validate_file_path(path: str | Path, *, allowed_dirs: Sequence[str | Path] = ()) -> os.stat_result:
    """Check that a file may be registered, as ``open_file`` would open it.

    Returns:
        Its status at this moment.

    Raises:
        ArtifactNotFoundError: there is no such file.
        ArtifactError: it is outside the allowed folders, no regular file, or cannot be read.
    """
    fd = open_file(Path(path).absolute(), allowed_dirs, subject=str(path))
    try:
        return os.fstat(fd)
    finally:
        os.close(fd)
