"""Putting artifacts into the working directory: what the user named, gave, or can have fetched."""

from __future__ import annotations

import asyncio
import os
import posixpath
from dataclasses import dataclass
from typing import Any

from ..errors import ArtifactError, ArtifactNotFoundError, ArtifactTooLargeError, InvalidArtifactError
from ..timeline.discovery import Artifact, Registration
from .keeping import Keeper
from .layout import OUTPUTS, SKILLS, UPLOADS
from .naming import env_name
from .resolver import ArtifactResolver, Resolved
from .uris import is_uri
from .versions import Versions


@dataclass(frozen=True, slots=True)
class Staged:
    """A file put into the working directory.

    Attributes:
        path: where, relative to the working directory.
        size: bytes.
        artifact: its entry in the timeline.
    """

    path: str
    size: int
    artifact: Artifact


class Stager:
    """Stages artifacts.

    Args:
        keeper: records what is put.
        versions: finds what logical paths name.
        resolver: finds what URIs name.
    """

    def __init__(self, keeper: Keeper, versions: Versions, resolver: ArtifactResolver) -> None:
        self._keeper = keeper
        self._versions = versions
        self._resolver = resolver
        self._staged: dict[str, tuple[Registration, str]] = {}
        self._origins: dict[str, str] = {}  # what was staged in which place

    async def stage(
        self, subject: str, destination: str = "uploads/", *, call_id: str | None = None
    ) -> Staged:
        """Put an artifact into the working directory.

        Args:
            subject: a registered name, a URI, a logical path, or the name of an upload or output.
            destination: a folder, relative to the working directory.
            call_id: the call that asked.

        Raises:
            ArtifactError: it cannot be found, fetched or kept.
        """
        folder = self._destination(destination)
        if is_uri(subject):
            return await self._stage_resolved(await self._resolver.resolve(subject), folder, call_id)
        if subject in self._keeper.discovery.registered:
            uri = f"file://{subject}"
            return await self._stage_resolved(await self._resolver.resolve(uri), folder, call_id)
        found = self._named(subject)
        if not found.kept:
            raise ArtifactNotFoundError(subject, reason=found.reason or "its bytes were not kept")
        if found.path.startswith(folder + "/") and await self._versions.in_place(found):
            return Staged(self._keeper.told(found.path), found.size, found)
        return await self._put(
            posixpath.basename(found.path), found.sha256, folder, call_id, source_type=found.source_type
        )

    def _named(self, subject: str) -> Artifact:
        """The artifact of a logical path, or the latest of a file's name."""
        if subject.startswith(("fi:", "so:")):
            return self._versions.find(subject)
        for candidate in (subject, f"{UPLOADS}/{subject}", f"{OUTPUTS}/{subject}"):
            if (found := self._keeper.discovery.latest(candidate)) is not None:
                return found
        known = [
            *self._keeper.discovery.registered,
            *(artifact.name for artifact in self._keeper.discovery.current()),
        ]
        raise ArtifactNotFoundError(subject, tuple(dict.fromkeys(known)))

    def _destination(self, destination: str) -> str:
        """The name in the timeline of a folder that Claude wrote; ``uploads/`` is the session's."""
        layout, wanted = self._keeper.layout, posixpath.normpath(destination or UPLOADS)
        inside = wanted == UPLOADS or wanted.startswith(UPLOADS + "/")
        name = wanted if inside else layout.name_of(layout.cwd / wanted)
        first = (name or "").partition("/")[0]
        if name is None or first in (SKILLS, "") or first.startswith("turn_"):
            raise InvalidArtifactError(destination, "files are staged below uploads/ or another folder here")
        return name

    async def _stage_resolved(self, resolved: Resolved, folder: str, call_id: str | None) -> Staged:
        if resolved.size > self._keeper.limit:
            raise ArtifactTooLargeError(resolved.uri, resolved.size, self._keeper.limit, "artifact_limit")
        keeper = self._keeper
        sha256 = await asyncio.to_thread(resolved.keep, keeper.blobs, limit=keeper.limit)
        facts = {"url": resolved.url} if resolved.url else {}
        return await self._put(
            resolved.name,
            sha256,
            folder,
            call_id,
            origin=resolved.uri,
            source_type="url" if resolved.url else "attachment",
            mime=resolved.content_type,
            **facts,
        )

    async def _put(
        self, file_name: str, sha256: str, folder: str, call_id: str | None, *, origin: str = "", **facts: Any
    ) -> Staged:
        """Put bytes under a free name in a folder of the session, and record them there.

        What was staged from the same origin before is replaced: its bytes are kept as an earlier version.
        """
        stem, suffix = posixpath.splitext(file_name)
        for number in range(1, 1000):
            name = f"{folder}/{file_name if number == 1 else f'{stem}-{number}{suffix}'}"
            base, rest = self._keeper.layout.base(name)
            if not await asyncio.to_thread(os.path.lexists, base / rest):
                await asyncio.to_thread(self._keeper.blobs.checkout, sha256, base, rest, mode=0o600)
            elif not await asyncio.to_thread(self._keeper.same, name, sha256):
                if not origin or self._origins.get(name) != origin:
                    continue
                await self._keeper.put(sha256, name)
            self._origins[name] = origin
            artifact = await self._keeper.record(name, call_ids=[call_id] if call_id else [], **facts)
            return Staged(self._keeper.told(name), artifact.size, artifact)
        raise ArtifactError(f"There are too many files named {file_name} in {folder}")

    async def environment(self, command: str) -> dict[str, str]:
        """``ARTIFACT_<NAME>`` of the registered artifacts, as absolute paths.

        A URL is fetched when the command names its variable or was fetched before; what cannot be staged
        has no variable, which the command that needs it will say.
        """
        found: dict[str, str] = {}
        for name, registration in self._keeper.discovery.registered.items():
            variable = env_name(name)
            known, path = self._staged.get(name, (None, None))
            if known != registration:
                path = None  # the name stands for something else now
            lazy = registration.source.get("type") == "url" and variable not in command
            if path is None and not lazy:
                try:
                    path = (await self.stage(name)).artifact.path
                except ArtifactError:
                    continue
                self._staged[name] = (registration, path)
            if path is not None:
                found[variable] = str(self._keeper.layout.absolute(path))
        return found
