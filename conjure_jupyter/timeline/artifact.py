"""What the timeline knows of files: their versions, the numbered sources, and names that the user gave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from .grammar import LogicalPath, parse
from .safe_json import safe_json

SourceType: TypeAlias = Literal["file", "attachment", "url"]
Visibility: TypeAlias = Literal["external", "internal"]


@dataclass(frozen=True, slots=True)
class Artifact:
    """One version of a file.

    Attributes:
        artifact_path: its logical path, the same for every change within a turn.
        physical_path: where this version is put on disk: ``turn_0003/files/report.pdf``.
        path: where it is or was in the working directory: ``outputs/report.pdf``.
        name: its path under ``outputs/`` or ``uploads/``; the whole path for an internal file.
        version: from 0, over all versions of ``path``.
        mime: content type.
        size: bytes.
        sha256: hex digest of its bytes; empty when they were not kept.
        kind: ``file``, or ``display`` for what is shown rather than handed over.
        visibility: ``external``, or ``internal`` for what is not in ``outputs/`` or ``uploads/``.
        source_type: ``attachment`` (the user's), ``file`` (made by a call) or ``url`` (fetched).
        tool_call_id: the call that made it.
        tool_call_ids: every call that it may come from.
        edited: whether the turn had it before.
        sources_used: numbers of the sources it was made from.
        kept: whether its bytes were kept.
        reason: why not, when not.
        url: where it was fetched from; may hold credentials and is in no digest.
        channel: what a display is shown in, when the block says so.
        source: its number in the pool of sources; None for an internal file.
        seq: position of its block in the log.
        turn: turn of its block.
        time: UTC, ISO 8601.
    """

    artifact_path: str
    physical_path: str
    path: str
    name: str
    version: int
    mime: str
    size: int
    sha256: str
    kind: Literal["file", "display"]
    visibility: Visibility
    source_type: SourceType
    tool_call_id: str | None
    tool_call_ids: tuple[str, ...]
    edited: bool
    sources_used: tuple[int, ...]
    kept: bool
    reason: str | None
    url: str | None
    channel: str | None
    source: int | None
    seq: int
    turn: int
    time: str

    @property
    def logical(self) -> LogicalPath:
        """``artifact_path``, taken apart."""
        return parse(self.artifact_path)

    def digest(self) -> dict[str, Any]:
        """What may be told of it: no URL, no credentials, no path of this machine."""
        said: dict[str, Any] = {
            "artifact_path": self.artifact_path,
            "physical_path": self.physical_path,
            "path": self.path,
            "mime": self.mime,
            "kind": self.kind,
            "visibility": self.visibility,
            "version": self.version,
            "edited": self.edited,
            "size": self.size,
        }
        if self.source is not None:
            said["source"] = self.source
        if not self.kept:
            said["kept"] = False
        if self.tool_call_id is not None:
            said["tool_call_id"] = self.tool_call_id
        if self.channel is not None:
            said["channel"] = self.channel
        if self.sources_used:
            said["sources_used"] = list(self.sources_used)
        return said

    def digest_text(self) -> str:
        """The digest as one line of JSON that can stand in a prompt."""
        return safe_json(self.digest())


@dataclass(frozen=True, slots=True)
class Source:
    """A numbered entry of the sources pool: ``[[S:3]]`` in a text stands for it.

    Attributes:
        n: its number, given once and for ever.
        artifact_path: the artifact it stands for, in that turn's latest version.
        physical_path: where that is put on disk.
        path: where it is or was in the working directory.
        source_type: ``attachment``, ``file`` or ``url``.
        mime: content type.
        url: where it was fetched from, without credentials, query and fragment; None for files.
        title: the name to show.
    """

    n: int
    artifact_path: str
    physical_path: str
    path: str
    source_type: SourceType
    mime: str
    url: str | None
    title: str

    def describe(self) -> dict[str, Any]:
        """What may be told of it."""
        said = {
            "source": self.n,
            "title": self.title,
            "artifact_path": self.artifact_path,
            "physical_path": self.physical_path,
            "path": self.path,
            "source_type": self.source_type,
            "mime": self.mime,
        }
        return said if self.url is None else {**said, "url": self.url}


@dataclass(frozen=True, slots=True)
class Registration:
    """A name that the user gave to something that can be staged.

    Attributes:
        name: as registered.
        source: ``{"type": "path" | "url" | "content" | "value", …}``; the other keys depend on the type.
        mime: content type, None when it is not known yet.
        size: bytes, None when it is not known yet.
        sha256: of its content or value; None for a path and a URL.
        suffix: the file's extension with its dot, or empty.
        metadata: what the user said of it.
        turn: turn of its block.
        time: UTC, ISO 8601.
    """

    name: str
    source: dict[str, Any]
    mime: str | None
    size: int | None
    sha256: str | None
    suffix: str
    metadata: dict[str, Any]
    turn: int
    time: str
