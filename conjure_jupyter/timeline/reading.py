"""Artifacts, sources and registrations from blocks: what is odd in them is made up or passed over."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from ..types import Block
from .artifact import Artifact, Registration, Source, SourceType, Visibility
from .grammar import ATTACHMENTS, INTERNAL, LogicalPath, fault, in_workspace, parse_or_none, physical

#: Longest MIME type, channel and reason taken from a block, in characters, and most sources and calls.
TEXT_LIMIT = 200
LIST_LIMIT = 100

_SHA256 = re.compile(r"[0-9a-f]{64}")


def read_registration(block: Block) -> Registration | None:
    """What a ``register`` block says; None when it says nothing that can be used."""
    data = block.data
    name, source = data.get("name"), data.get("source")
    if not isinstance(name, str) or not name or not isinstance(source, dict):
        return None
    sha256 = _digest(data.get("sha256"))
    metadata = data.get("metadata")
    return Registration(
        name=name,
        source=source,
        mime=short(data.get("mime")),
        size=count(data.get("size")),
        sha256=sha256 or None,
        suffix=short(data.get("suffix")) or "",
        metadata=metadata if isinstance(metadata, dict) else {},
        turn=block.turn,
        time=block.time,
    )


def read_path(data: dict[str, Any]) -> LogicalPath | None:
    """The logical path of an ``artifact`` block; None when it has none that names a file."""
    logical = parse_or_none(data.get("artifact_path"))
    return logical if logical is not None and logical.kind == "fi" else None


def read_place(data: dict[str, Any], logical: LogicalPath) -> str:
    """Where the file is in the working directory: what the block says, when that cannot lead out of it."""
    path, usual = data.get("path"), in_workspace(logical)
    return path if path != usual and isinstance(path, str) and fault(path) is None else usual


def read_artifact(
    block: Block, logical: LogicalPath, path: str, *, version: int, edited: bool, source: int | None
) -> Artifact:
    """What an ``artifact`` block says; what it does not say, or says wrongly, is made up from its path.

    Args:
        logical: what ``read_path`` gave.
        path: what ``read_place`` gave.
        version: to use when the block says none.
        edited: whether an earlier block has the same logical path.
        source: its number in the pool.
    """
    data = block.data
    said = count(data.get("version"))
    sha256 = _digest(data.get("sha256"))
    call = data.get("tool_call_id")
    return Artifact(
        artifact_path=data["artifact_path"],  # as it was read from there
        physical_path=physical(logical),
        path=path,
        name=logical.rest,
        version=version if said is None else said,
        mime=short(data.get("mime")) or "application/octet-stream",
        size=count(data.get("size")) or 0,
        sha256=sha256,
        kind="display" if data.get("kind") == "display" else "file",
        visibility=read_visibility(data, logical),
        source_type=_source_type(data, logical),
        tool_call_id=call if isinstance(call, str) and call else None,
        tool_call_ids=read_calls(data),
        edited=edited or data.get("edited") is True,
        sources_used=_numbers(data.get("sources_used")),
        kept=bool(sha256) and data.get("kept") is not False,
        reason=short(data.get("reason")),
        url=data["url"] if isinstance(data.get("url"), str) else None,
        channel=short(data.get("channel")),
        source=source,
        seq=block.seq,
        turn=block.turn,
        time=block.time,
    )


def read_visibility(data: dict[str, Any], logical: LogicalPath) -> Visibility:
    """``internal`` when the block or the path says so."""
    internal = data.get("visibility") == "internal" or logical.part == INTERNAL
    return "internal" if internal else "external"


def read_calls(data: dict[str, Any]) -> tuple[str, ...]:
    """Every call that the artifact may come from, the likeliest first."""
    call, more = data.get("tool_call_id"), data.get("tool_call_ids")
    if more == [call] and isinstance(call, str):
        return (call,) if call else ()
    named = [call, *(more[:LIST_LIMIT] if isinstance(more, list) else ())]
    return tuple(dict.fromkeys(id_ for id_ in named if isinstance(id_, str) and id_))


def short(value: Any) -> str | None:
    """A text, cut to ``TEXT_LIMIT`` characters; None for anything else and for an empty one."""
    return value[:TEXT_LIMIT] if isinstance(value, str) and value else None


def count(value: Any) -> int | None:
    """A whole number from 0; None for anything else."""
    return value if type(value) is int and value >= 0 else None


def _digest(value: Any) -> str:
    return value if isinstance(value, str) and _SHA256.fullmatch(value) else ""


def _numbers(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(number for number in value[:LIST_LIMIT] if type(number) is int and number > 0)


def _source_type(data: dict[str, Any], logical: LogicalPath) -> SourceType:
    said = data.get("source_type")
    if said in ("file", "attachment", "url"):
        return said  # type: ignore[no-any-return]  # one of the three, checked above
    return "attachment" if logical.part == ATTACHMENTS else "file"


def read_source(number: int, artifact: Artifact) -> Source:
    """The entry of the pool that an artifact gets."""
    return Source(
        n=number,
        artifact_path=artifact.artifact_path,
        physical_path=artifact.physical_path,
        path=artifact.path,
        source_type=artifact.source_type,
        mime=artifact.mime,
        url=None if artifact.url is None else public_url(artifact.url),
        title=artifact.name,
    )


def public_url(url: str) -> str | None:
    """A URL without what may be a credential: user, query and fragment. None when it is none of the web."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not host:
        return None
    host = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{host}{f':{port}' if port else ''}{parts.path}"
