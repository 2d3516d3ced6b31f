"""From a URI to bytes: a skill's asset, a registered name, a file beside the notebook, a fetched URL."""

from __future__ import annotations

import asyncio
import contextlib
import os
import posixpath
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ..errors import (
    ArtifactError,
    ArtifactNotFoundError,
    ArtifactTooLargeError,
    FetchBlockedError,
    PathNotFoundError,
    PermissionDeniedError,
    ToolError,
)
from ..paths import open_beneath, open_within
from ..settings import Settings
from ..skills import Skill
from ..skills.naming import normalise
from ..timeline.discovery import Registration
from .blobs import BlobStore, regular
from .detect import HEAD, content_type
from .kinds import BINARY, type_by_name
from .naming import with_extension
from .registry import ArtifactRegistry
from .security import open_file
from .uris import ArtifactURI, parse_uri

#: Opens a file for reading, by the same checks at each opening.
_Open = Callable[[], int]


class FetchedURL(Protocol):
    """What came from a URL; the file stays while this object lives."""

    @property
    def path(self) -> Path:
        """The bytes."""

    @property
    def content_type(self) -> str:
        """MIME type, without parameters."""

    @property
    def size(self) -> int:
        """Bytes."""

    @property
    def name(self) -> str:
        """A file name with an extension."""


class URLFetcher(Protocol):
    """Fetches URLs; ``fetch.Fetcher`` is one."""

    async def fetch(self, url: str) -> FetchedURL:
        """The content of a URL.

        Raises:
            ArtifactError: there is none, or it may not be fetched.
        """


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a URI names, found and checked.

    Attributes:
        uri: as it was asked for.
        name: a file name with an extension.
        content_type: MIME type.
        size: bytes.
        path: where the bytes lie, when that is a file; ``keep`` takes them from there safely.
        blob: digest of the bytes, when they are kept already.
        url: where they were fetched from, if they were.
    """

    uri: str
    name: str
    content_type: str
    size: int
    path: Path | None = None
    blob: str | None = None
    url: str | None = None
    _open: _Open | None = field(default=None, repr=False, compare=False)
    _held: object = field(default=None, repr=False, compare=False)

    def keep(self, blobs: BlobStore, *, limit: int) -> str:
        """Put the bytes into a store, as they are now; may take long, so call it in a thread.

        The file is opened with the checks that found it, not by its path: what was swapped for a link since
        is refused.

        Args:
            blobs: the store.
            limit: most bytes.

        Returns:
            Their digest.

        Raises:
            ArtifactError: they cannot be had any more, or are too large.
            ToolError: they cannot be written to disk.
        """
        if self.blob is not None:
            return self.blob
        if self._open is None:
            raise ArtifactNotFoundError(self.uri, reason="it has no content")
        fd = self._open()
        try:
            return blobs.put_file(fd, limit=limit, subject=self.uri)[0]
        finally:
            os.close(fd)


class ArtifactResolver:
    """Finds what URIs name.

    Args:
        registry: the registered names.
        skills: gives the loaded skills.
        fetcher: fetches URLs.
        project: the notebook's folder, from which the paths of ``file://`` start.
        settings: limits, allowed folders and schemes.
    """

    def __init__(
        self,
        registry: ArtifactRegistry,
        skills: Callable[[], Sequence[Skill]],
        fetcher: URLFetcher,
        project: Path,
        settings: Settings,
    ) -> None:
        self._registry = registry
        self._skills = skills
        self._fetcher = fetcher
        self._project = project
        self._settings = settings

    async def resolve(self, uri: str) -> Resolved:
        """Find what a URI names; URLs are fetched, files are looked at and stay where they are.

        Raises:
            InvalidArtifactError: it is no URI of an artifact.
            ArtifactNotFoundError: it names nothing.
            ArtifactTooLargeError: what it names is larger than the settings allow.
            FetchError: the URL gave nothing, or may not be fetched.
            ArtifactError: it leads out of its folder, or cannot be read.
        """
        parsed = parse_uri(uri)
        if parsed.url is not None:
            return await self._fetched(uri, parsed.url)
        if parsed.scheme == "skill":
            return await asyncio.to_thread(self._asset, uri, parsed)
        found = self._registration(parsed.name or "")
        if found is None:
            return await asyncio.to_thread(self._beside, uri, parsed.name or "")
        if found.source.get("type") == "url":
            return await self._fetched(uri, str(found.source.get("url")), found)
        return await asyncio.to_thread(self._registered, uri, found)

    def skill_names(self) -> list[str]:
        """The names that ``skill://`` can begin with now."""
        return [skill.name for skill in self._skills()]

    # skill:// ---------------------------------------------------------------------------------------

    def _asset(self, uri: str, parsed: ArtifactURI) -> Resolved:
        name, path = parsed.skill or "", parsed.path or ""
        skill = next((skill for skill in self._skills() if skill.name == normalise(name)), None)
        if skill is None:
            known = ", ".join(self.skill_names()) or "none"
            raise ArtifactNotFoundError(uri, reason=f"no skill {name!r} is loaded; loaded: {known}")
        root = skill.path / "assets"

        def opened() -> int:
            # Neither the folder may lead out of the skill, nor the path out of the folder.
            with _told(uri, f"the assets of {skill.name}"):
                os.close(open_beneath(skill.path, "assets", os.O_RDONLY | os.O_DIRECTORY))
                return open_beneath(root, path, os.O_RDONLY)

        size, kind = self._look(uri, path, opened, "artifact_limit")
        return Resolved(uri, posixpath.basename(path), kind, size, path=root / path, _open=opened)

    # file:// ----------------------------------------------------------------------------------------

    def _registration(self, name: str) -> Registration | None:
        return next((found for found in self._registry.list() if found.name == name), None)

    def _registered(self, uri: str, found: Registration) -> Resolved:
        if found.source.get("type") == "path":
            return self._path(uri, found)
        size = found.size or 0
        if not found.sha256:
            if size > self._settings.artifact_limit:
                raise ArtifactTooLargeError(uri, size, self._settings.artifact_limit, "artifact_limit")
            raise ArtifactNotFoundError(uri, reason="its content was not kept; register it again")
        if not self._registry.blobs.has(found.sha256):
            raise ArtifactNotFoundError(uri, reason="its content is not on this machine; register it again")
        kind = found.mime or BINARY
        return Resolved(uri, file_name(found, kind), kind, size, blob=found.sha256)

    def _path(self, uri: str, found: Registration) -> Resolved:
        """A registered file as it is now: it may have changed, so its size is checked again."""
        path = Path(str(found.source.get("path")))

        def opened() -> int:
            return open_file(path, self._settings.artifact_paths, subject=uri)

        size, kind = self._look(uri, path.name, opened, "artifact_file_limit")
        kind = str(found.source.get("content_type") or kind)
        return Resolved(uri, file_name(found, kind), kind, size, path=path, _open=opened)

    def _beside(self, uri: str, name: str) -> Resolved:
        """A file in the notebook's folder."""
        registered = ", ".join(found.name for found in self._registry.list()) or "none"

        def opened() -> int:
            with _told(uri, f"the notebook's folder; registered names: {registered}"):
                return open_within(name, (self._project,), os.O_RDONLY)

        size, kind = self._look(uri, name, opened, "artifact_file_limit")
        return Resolved(uri, posixpath.basename(name), kind, size, path=self._project / name, _open=opened)

    def _look(self, uri: str, name: str, opened: _Open, setting: str) -> tuple[int, str]:
        """Size and type of a file."""
        limit: int = getattr(self._settings, setting)
        fd = opened()
        try:
            size = regular(os.fstat(fd), uri).st_size
            if size > limit:
                raise ArtifactTooLargeError(uri, size, limit, setting)
            return size, content_type(name, os.pread(fd, HEAD, 0))
        finally:
            os.close(fd)

    # https:// ---------------------------------------------------------------------------------------

    async def _fetched(self, uri: str, url: str, found: Registration | None = None) -> Resolved:
        if not self._settings.url_fetch_enabled:
            raise FetchBlockedError(uri, "fetching is off; url_fetch_enabled turns it on")
        scheme = url.partition(":")[0].lower()
        if scheme not in self._settings.url_schemes:
            raise FetchBlockedError(uri, f"the scheme {scheme} is not in url_schemes")
        got = await self._fetcher.fetch(url)
        return Resolved(
            uri,
            file_name(found, got.content_type) if found is not None else got.name,
            got.content_type,
            got.size,
            path=got.path,
            url=url,
            _open=lambda: open_file(got.path, subject=uri),
            _held=got,
        )


@contextlib.contextmanager
def _told(uri: str, place: str) -> Iterator[None]:
    """Tell why a URI does not lead to a file; where the folder lies is not for Claude to know."""
    try:
        yield
    except PathNotFoundError as error:
        raise ArtifactNotFoundError(uri, reason=f"{error.reason} in {place}") from error
    except PermissionDeniedError as error:
        raise ArtifactError(f"{uri}: {error.reason}; it must stay in {place}") from error
    except ToolError as error:
        raise ArtifactError(
            f"{uri}: it cannot be opened in {place} ({str(error).rpartition(': ')[2]})"
        ) from error


def file_name(found: Registration, mime: str) -> str:
    """What the file of a registered artifact is called: its name, with an extension.

    Args:
        found: the artifact.
        mime: its type.
    """
    name = found.name
    if found.suffix and not type_by_name(name) and not name.lower().endswith(found.suffix):
        name += found.suffix
    return with_extension(name, mime)
