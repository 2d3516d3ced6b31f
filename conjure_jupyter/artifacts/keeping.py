"""Keeping files of a session: bytes to the blobs, a block to the timeline."""

from __future__ import annotations

import asyncio
import os
import posixpath
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import ArtifactError, ArtifactTooLargeError, InvalidArtifactError, PathNotFoundError, ToolError
from ..paths import open_beneath
from ..timeline.base import BaseTimeline
from ..timeline.discovery import Artifact, Discovery
from ..timeline.logical import FILES, INTERNAL, file_path, of_workspace
from .blobs import BlobStore
from .detect import content_type
from .layout import OUTPUTS, UPLOADS, Layout
from .naming import with_extension

_HEAD = 4096


class Keeper:
    """Makes files of the working directory artifacts; what reads or writes files does so in a thread.

    Args:
        timeline: gives the log; called when something is to be written.
        discovery: what the log says of artifacts; fed by it.
        blobs: the bytes.
        layout: where files lie.
        limit: most bytes of an artifact.
    """

    def __init__(
        self,
        timeline: Callable[[], BaseTimeline],
        discovery: Discovery,
        blobs: BlobStore,
        layout: Layout,
        limit: int,
    ) -> None:
        self.timeline = timeline
        self.discovery = discovery
        self.blobs = blobs
        self.layout = layout
        self.limit = limit
        self._lock = asyncio.Lock()

    async def record(
        self,
        name: str,
        *,
        call_ids: Sequence[str] = (),
        source_type: str = "file",
        again: bool = False,
        **facts: Any,
    ) -> Artifact:
        """Keep a file of the session as an artifact; the same bytes as last time are the same version.

        A file over the limit is recorded without its bytes, and says so.

        Args:
            name: its name in the timeline, such as ``outputs/report.pdf``.
            call_ids: the calls that may have made it, the one that is known to first.
            source_type: ``file``, ``attachment`` or ``url``.
            again: make an entry of this turn also for bytes that an earlier turn's entry has.
            **facts: more keys of the block, such as ``url`` or ``sources_used``.

        Raises:
            ToolError: there is no such file, or it leads out of the session.
        """
        async with self._lock:
            kept = await asyncio.to_thread(self._keep_bytes, name)
            latest = self.discovery.latest(name)
            if (
                latest is not None
                and (latest.sha256, latest.size, latest.kept) == (kept["sha256"], kept["size"], kept["kept"])
                and (latest.turn == self.timeline().turn or not again)
            ):
                return latest
            return self._append(name, kept | facts, call_ids, source_type)

    def _keep_bytes(self, name: str) -> dict[str, Any]:
        folder, rest = self.layout.base(name)
        fd = open_beneath(folder, rest, os.O_RDONLY)
        try:
            head = os.pread(fd, _HEAD, 0)
            mime = content_type(posixpath.basename(name), head)
            try:
                sha256, size = self.blobs.put_file(fd, limit=self.limit)
            except ArtifactTooLargeError as error:
                size = os.fstat(fd).st_size
                return {"mime": mime, "size": size, "sha256": "", "kept": False, "reason": str(error)}
        finally:
            os.close(fd)
        return {"mime": mime, "size": size, "sha256": sha256, "kept": True}

    def _append(
        self, name: str, facts: Mapping[str, Any], call_ids: Sequence[str], source_type: str
    ) -> Artifact:
        timeline = self.timeline()
        turn = max(timeline.turn, 1)
        path = of_workspace(turn, name)
        logical = str(path)
        data = {
            "artifact_path": logical,
            "path": name,
            "name": path.rest,
            "version": self.discovery.next_version(name),
            "kind": "file",
            "visibility": "internal" if path.part == INTERNAL else "external",
            "source_type": source_type,
            "tool_call_id": call_ids[0] if call_ids else None,
            "tool_call_ids": list(call_ids),
            "edited": self.discovery.find(logical) is not None,
            "sources_used": [],
            **facts,
        }
        timeline.append("artifact", data)
        found = self.discovery.find(logical)
        if found is None:
            raise ArtifactError(f"{name} was recorded but cannot be found again")
        return found

    async def keep(self, path: str, name: str | None = None, *, call_id: str | None = None) -> Artifact:
        """Keep a file of the working directory for the user; the same bytes are the same version.

        Args:
            path: relative to the working directory, or absolute within the session's folders.
            name: what to call it under ``outputs/``; its own name when None.
            call_id: the call that asked.

        Raises:
            ArtifactError: it is too large, or its name can be none.
            ToolError: there is no such file.
        """
        source = self._name_on_disk(path)
        wanted = source if name is None and source.startswith(OUTPUTS + "/") else None
        if wanted is None:
            given = name or posixpath.basename(source)
            wanted = f"{OUTPUTS}/{file_path(1, FILES, given).rest}"
        if wanted != source:
            sha256, size = await asyncio.to_thread(self.blob_of, source)
            head = (await asyncio.to_thread(self.blobs.read, sha256))[:_HEAD] if size < self.limit else b""
            wanted = with_extension(wanted, content_type(posixpath.basename(source), head))
            await self.put(sha256, wanted)
        artifact = await self.record(wanted, call_ids=[call_id] if call_id else [])
        if not artifact.kept:
            raise ArtifactTooLargeError(path, artifact.size, self.limit, "artifact_limit")
        return artifact

    def blob_of(self, name: str) -> tuple[str, int]:
        """Digest and size of a file of the session, whose bytes are kept.

        Raises:
            ToolError: there is no such file, or it is too large.
        """
        folder, rest = self.layout.base(name)
        fd = open_beneath(folder, rest, os.O_RDONLY)
        try:
            return self.blobs.put_file(fd, limit=self.limit)
        finally:
            os.close(fd)

    def _name_on_disk(self, path: str) -> str:
        """The name in the timeline of a path that Claude wrote.

        Raises:
            InvalidArtifactError: it is not in the session's folders.
        """
        name = self.layout.name_of(self.layout.cwd / path)
        if name is None:
            raise InvalidArtifactError(path, "not in the session's working directory; copy it to outputs/")
        if name in (".", OUTPUTS, UPLOADS) or path.endswith("/"):
            raise PathNotFoundError(path, "a folder; name the files in it")
        return name

    def same(self, name: str, sha256: str) -> bool:
        """Whether a file of the session has these bytes now."""
        folder, rest = self.layout.base(name)
        try:
            fd = open_beneath(folder, rest, os.O_RDONLY)
        except ToolError:
            return False
        try:
            return self.blobs.matches(sha256, fd)
        except ToolError:
            return False
        finally:
            os.close(fd)

    def told(self, name: str) -> str:
        """A name of the timeline as Claude is told it."""
        return self.layout.told(self.layout.absolute(name))

    async def put(self, sha256: str, name: str) -> None:
        """Put bytes in the place of a file of the session; what lies there is kept before.

        Raises:
            ToolError: they cannot be put there.
        """
        base, rest = self.layout.base(name)
        if await asyncio.to_thread(os.path.lexists, base / rest):
            await self.record(name)
        await asyncio.to_thread(self.blobs.checkout, sha256, base, rest, mode=0o600, replace=True)
