"""What a path field may hold besides a path: a URI, a logical path, or the path of an earlier turn's file.

Only the text is looked at here, so that approvals, locks and the dispatch agree on what a value means before
anything is fetched or put on disk::

    file://sales, skill://csv/assets/a.csv     asset: a file that is read
    https://example.com/a.json                 url: it is fetched
    fi:turn_0003.files/a.csv                   version: reads turn_0003/files/a.csv, writes outputs/a.csv
    turn_0003/files/a.csv, ./turn_0003/…       version, however the path is spelled
    ar:…, tc:…, so:…, su:…                     record: no file
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ..artifacts.uris import is_uri
from ..errors import InvalidArtifactError
from ..executors.contract import ExecutionContext
from ..timeline.logical import OUTPUTS, LogicalPath, from_physical, in_workspace, parse, physical
from .locations import in_workspace as in_working_directory
from .locations import lock_key, normalize

Kind: TypeAlias = Literal["asset", "url", "version", "record"]

_URL = re.compile(r"https?://", re.IGNORECASE)
_RECORDS = ("ar:", "tc:", "so:", "su:")


@dataclass(frozen=True, slots=True)
class Reference:
    """What a value stands for.

    Attributes:
        kind: what it is.
        value: how the artifacts of the session are asked for it.
        path: for a ``version`` the file that is read or written, relative to the working directory; None
            where the text alone does not tell, and for what can be no version.
    """

    kind: Kind
    value: str
    path: str | None = None


def is_url(value: str) -> bool:
    """Whether a value would be fetched."""
    return _URL.match(value) is not None


def reference(value: str, context: ExecutionContext, *, write: bool = False) -> Reference | None:
    """What a value of a path field stands for; None for an ordinary path. Never raises.

    Args:
        value: as Claude wrote it.
        context: the working directory.
        write: whether the file is to be written.
    """
    if is_uri(value):
        return Reference("url" if is_url(value) else "asset", value)
    if value.startswith(_RECORDS):
        return Reference("record", value)
    if value.startswith("fi:"):
        logical, asked = _parsed(value), value
    else:
        logical = _earlier(value, context) if "turn_" in value and "\x00" not in value else None
        if logical is None:
            return None
        asked = _in_session(physical(logical), context)
    return Reference("version", asked, None if logical is None else _place(logical, context, write=write))


def values(arguments: Any, fields: Sequence[str]) -> Iterator[str]:
    """The texts in some fields of an input that has not been validated."""
    if not isinstance(arguments, Mapping):
        return
    for name in fields:
        value = arguments.get(name)
        for item in value if isinstance(value, list) else (value,):
            if isinstance(item, str):
                yield item


def lock_keys(
    arguments: Any, fields: Sequence[str], context: ExecutionContext, *, write: bool, known: bool
) -> list[str]:
    """One key for each file that a call names, sorted.

    Args:
        arguments: what Claude sent, not validated.
        fields: the fields that are paths.
        context: the working directory.
        write: whether the call writes the files.
        known: whether there are artifacts, so that references mean what they stand for.
    """
    keys = set()
    for value in values(arguments, fields):
        meant = reference(value, context, write=write) if known else None
        keys.add(lock_key(meant.path if meant and meant.path else value, context))
    return sorted(key for key in keys if key is not None)


def _parsed(value: str) -> LogicalPath | None:
    try:
        return parse(value)
    except InvalidArtifactError:
        return None


def _earlier(value: str, context: ExecutionContext) -> LogicalPath | None:
    """The logical path of ``turn_0003/files/x`` in the session's folder or the working directory."""
    relative = in_working_directory(value, context)
    candidates = [relative or ""]
    root = _root(context)
    if root is not None and (whole := normalize(value, context)).startswith(f"{root}/"):
        candidates.append(whole[len(root) + 1 :])
    return next((found for text in candidates if (found := from_physical(text)) is not None), None)


def _place(logical: LogicalPath, context: ExecutionContext, *, write: bool) -> str:
    if not write:
        return _in_session(physical(logical), context)
    now = in_workspace(logical)
    return now if now.startswith(f"{OUTPUTS}/") else f"{OUTPUTS}/{posixpath.basename(now)}"


def _root(context: ExecutionContext) -> str | None:
    """The session's folder, which holds the skills; it is not the cwd where that is the notebook's folder."""
    return None if context.skills_root is None else context.skills_root.parent.as_posix()


def _in_session(relative: str, context: ExecutionContext) -> str:
    root = _root(context)
    if root is None:
        return relative
    return posixpath.relpath(f"{root}/{relative}", context.working_directory.as_posix())
