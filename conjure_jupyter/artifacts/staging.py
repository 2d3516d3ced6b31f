"""Putting artifacts into the working directory: what the user named, gave, or can have fetched."""

from __future__ import annotations

import asyncio
import contextlib
import os
import posixpath
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import (
    ArtifactError,
    ArtifactNotFoundError,
    ArtifactTooLargeError,
    InvalidArtifactError,
    ToolError,
)
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
        shelf: a folder that shows the registered artifacts by name, for tools that see it elsewhere.
    """

    def __init__(
        self, keeper: Keeper, versions: Versions, resolver: ArtifactResolver, shelf: Path | None = None
    ) -> None:
        self._keeper = keeper
        self._versions = versions
        self._resolver = resolver
        self._staged: dict[str, tuple[Registration, str]] = {}
        self._origins: dict[str, str] = {}  # what was staged in which place
        self._shelved: dict[str, str] = {}  # the bytes that each name on the shelf has
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self.shelf = shelf

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

    async def environment(self, command: str, shown_at: str | None = None) -> dict[str, str]:
        """``ARTIFACT_<NAME>`` of the registered artifacts, as absolute paths.

        A URL is fetched when the command names it or was fetched before; what cannot be staged has no
        variable, which the command that needs it will say.

        Args:
            command: what is about to run.
            shown_at: where tools see the shelf; None where they see the staged files themselves.
        """
        found: dict[str, str] = {}
        # The user gives and takes names while tools run.
        for name, registration in list(self._keeper.discovery.registered.items()):
            async with self._locks[name]:
                path = await self._path(name, registration, command, shown_at)
                if path is None:
                    continue
                if shown_at is None:
                    found[env_name(name)] = str(self._keeper.layout.absolute(path))
                elif await self._shelve(name, path):
                    found[env_name(name)] = f"{shown_at}/{name}"
        if shown_at is not None:
            await self._clear_shelf()
        return found

    async def _path(
        self, name: str, registration: Registration, command: str, shown_at: str | None
    ) -> str | None:
        """Where what has a name was staged, now or before; None for a URL that nothing needs yet."""
        known, path = self._staged.get(name, (None, None))
        if known == registration:
            return path
        named = env_name(name) in command or (shown_at is not None and f"{shown_at}/{name}" in command)
        if registration.source.get("type") == "url" and not named:
            return None
        try:
            path = (await self.stage(name)).artifact.path
        except ArtifactError:
            return None
        self._staged[name] = (registration, path)
        return path

    async def _shelve(self, name: str, path: str) -> bool:
        """Put a staged artifact on the shelf under its own name; whether it is there."""
        artifact = self._keeper.discovery.latest(path)
        if artifact is None or self.shelf is None:
            return False
        if self._shelved.get(name) != artifact.sha256:
            try:
                await asyncio.to_thread(
                    self._keeper.blobs.checkout, artifact.sha256, self.shelf, name, mode=0o444, replace=True
                )
            except ToolError:
                return False
            self._shelved[name] = artifact.sha256
        return True

    async def _clear_shelf(self) -> None:
        """Take away what has no name any more."""
        for name in [name for name in self._shelved if name not in self._keeper.discovery.registered]:
            async with self._locks[name]:
                if name in self._keeper.discovery.registered:
                    continue
                self._shelved.pop(name, None)
                if self.shelf is not None:
                    with contextlib.suppress(OSError):
                        await asyncio.to_thread((self.shelf / name).unlink)
