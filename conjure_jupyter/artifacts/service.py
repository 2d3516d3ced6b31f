"""All that a session's tools and notebook do with artifacts, in one place.

The timeline is the record and the blobs are the bytes; the working directory is a checkout of them. Methods
run on the engine's loop; what reads or writes files does so in a thread.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import InvalidArtifactError
from ..fileref import FileRef
from ..timeline.base import BaseTimeline
from ..timeline.discovery import Artifact, Discovery
from ..timeline.logical import LogicalPath, from_physical, parse
from .blobs import BlobStore
from .keeping import Keeper
from .layout import Layout
from .registry import ArtifactRegistry
from .resolver import ArtifactResolver
from .staging import Staged, Stager
from .uris import is_uri, parse_uri
from .versions import Pulled, Rewritten, Versions


class ArtifactService:
    """The artifacts of one session.

    Args:
        timeline: gives the log; called when something is to be written.
        discovery: what the log says of artifacts; fed by it.
        blobs: the bytes.
        registry: the names the user gave.
        resolver: finds what URIs name.
        layout: where files lie.
        limit: most bytes of an artifact that is staged or kept.
        skill_folder: where the copy of a skill lies, by the skill's name.
        url_of: where a blob is kept besides this machine, if anywhere.
        shelf: a folder that shows the registered artifacts by name, for tools that see it elsewhere.
    """

    def __init__(
        self,
        timeline: Callable[[], BaseTimeline],
        discovery: Discovery,
        blobs: BlobStore,
        registry: ArtifactRegistry,
        resolver: ArtifactResolver,
        *,
        layout: Layout,
        limit: int,
        skill_folder: Callable[[str], Path],
        url_of: Callable[[str], str | None] = lambda _: None,
        shelf: Path | None = None,
    ) -> None:
        self.discovery = discovery
        self.blobs = blobs
        self.registry = registry
        self.resolver = resolver
        self.layout = layout
        self.limit = limit
        self._timeline = timeline
        self._skill_folder = skill_folder
        self._url_of = url_of
        self._keeper = Keeper(timeline, discovery, blobs, layout, limit)
        self._versions = Versions(self._keeper)
        self._stager = Stager(self._keeper, self._versions, resolver, shelf)

    async def record(
        self, name: str, *, call_ids: Sequence[str] = (), source_type: str = "file", again: bool = False
    ) -> Artifact:
        """Keep a file of the session as an artifact; see ``Keeper.record``."""
        return await self._keeper.record(name, call_ids=call_ids, source_type=source_type, again=again)

    async def keep(self, path: str, name: str | None = None, *, call_id: str | None = None) -> Artifact:
        """Keep a file of the working directory for the user; see ``Keeper.keep``."""
        return await self._keeper.keep(path, name, call_id=call_id)

    async def stage(
        self, subject: str, destination: str = "uploads/", *, call_id: str | None = None
    ) -> Staged:
        """Put an artifact into the working directory; see ``Stager.stage``."""
        return await self._stager.stage(subject, destination, call_id=call_id)

    async def checkout(self, logical: str) -> str:
        """Put a version on disk, read-only; see ``Versions.checkout``."""
        return await self._versions.checkout(logical)

    async def pull(self, text: str) -> Pulled:
        """Put on disk what a text mentions; see ``Versions.pull``."""
        return await self._versions.pull(text)

    async def environment(self, command: str, shown_at: str | None = None) -> dict[str, str]:
        """``ARTIFACT_<NAME>`` of the registered artifacts; see ``Stager.environment``."""
        return await self._stager.environment(command, shown_at)

    async def resolve_path(self, value: str, *, write: bool = False, call_id: str | None = None) -> Rewritten:
        """What a tool's path field stands for.

        A URI becomes the path of the file it names. A path of an earlier turn (``fi:…`` or ``turn_0003/…``)
        is put on disk; for a write it becomes a path under ``outputs/``, with a notice.

        Raises:
            ArtifactError: the URI or path names nothing, with the reason.
        """
        if is_uri(value):
            return await self._resolve_uri(value, write=write, call_id=call_id)
        logical = parse(value) if value.startswith("fi:") else self._historical(value)
        if logical is None:
            return Rewritten(value)
        if write:
            return await self._versions.for_writing(value, logical)
        found = self.discovery.find(str(logical))
        if found is None and not value.startswith("fi:"):
            return Rewritten(value)  # a folder, or nothing: the tool says so
        return Rewritten(await self.checkout(str(logical)))

    async def _resolve_uri(self, uri: str, *, write: bool, call_id: str | None) -> Rewritten:
        if write:
            raise InvalidArtifactError(
                uri, "an artifact cannot be written to; write to a path below outputs/"
            )
        parsed = parse_uri(uri)
        if parsed.scheme != "skill":
            return Rewritten((await self.stage(uri, call_id=call_id)).path)
        await self.resolver.resolve(uri)  # says what is wrong with it
        asset = self._skill_folder(parsed.skill or "") / "assets" / (parsed.path or "")
        return Rewritten(self.layout.told(asset))

    def _historical(self, value: str) -> LogicalPath | None:
        whole = Path(os.path.normpath(self.layout.cwd / value))
        if not whole.is_relative_to(self.layout.root):
            return None
        return from_physical(whole.relative_to(self.layout.root).as_posix())

    def notice(self, text: str, code: str, details: Mapping[str, Any] | None = None) -> None:
        """Tell Claude something with the next message, as a block of the timeline."""
        self._timeline().append("notice", {"text": text, "code": code, **(details or {})})

    def file_ref(self, artifact: Artifact) -> FileRef:
        """An artifact as the user picks it up."""
        local = self.layout.absolute(artifact.path)
        return FileRef(
            path=artifact.path,
            size=artifact.size,
            content_type=artifact.mime,
            sha256=artifact.sha256,
            storage_url=self._url_of(artifact.sha256) if artifact.kept else None,
            created=dt.datetime.fromisoformat(artifact.time),
            local_path=local if local.is_file() else None,
            blob=self.blobs.path(artifact.sha256) if artifact.kept else None,
            artifact_path=artifact.artifact_path,
            version=artifact.version,
            tool_call_ids=tuple(artifact.tool_call_ids),
        )
