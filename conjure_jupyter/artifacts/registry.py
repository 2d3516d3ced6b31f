"""Names for what the user has: files, URLs, bytes and Python values.

A name is a ``register`` block of the timeline; the bytes of contents and values are in the blobs, files stay
where they are and URLs are fetched when they are used. What is registered is read from the timeline's
projection, so a resumed session has it all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from ..errors import ArtifactNotFoundError, InvalidArtifactError
from ..fileref import FileRef
from ..settings import Settings
from ..timeline import BaseTimeline
from ..timeline.discovery import Discovery, Registration
from .blobs import BlobStore
from .detect import HEAD, content_type
from .kinds import canonical, extension_for, suffix_of, type_by_name
from .naming import check_free, check_name
from .security import open_file
from .uris import is_uri
from .values import Serialised, serialise

_UNSET: Final = object()


class ArtifactRegistry:
    """The artifacts that a session's user gave names to.

    Args:
        timeline: gives the log; called when something is to be written, and may make it then.
        discovery: what the log says; fed by it.
        blobs: where bytes and values are kept.
        settings: limits and allowed folders.
        project: the notebook's folder, from which relative paths start.
    """

    def __init__(
        self,
        timeline: Callable[[], BaseTimeline],
        discovery: Discovery,
        blobs: BlobStore,
        settings: Settings,
        project: Path,
    ) -> None:
        self._timeline = timeline
        self._discovery = discovery
        self._blobs = blobs
        self._settings = settings
        self._project = project

    @property
    def blobs(self) -> BlobStore:
        """Where the bytes of contents and values are kept."""
        return self._blobs

    def register(
        self,
        name: str,
        source: Any = _UNSET,
        *,
        value: Any = _UNSET,
        content_type: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        format: str | None = None,  # noqa: A002  as pandas calls it
    ) -> Registration:
        """Give a name to a file, a URL, bytes or a Python value; the same name again replaces it.

        What is over a limit is registered all the same, so that Claude hears of it, with the reason why its
        content is not to be had.

        Args:
            name: letters, digits, ``.``, ``_`` and ``-``.
            source: text is a URL, or a path from the notebook's folder; a ``Path`` is a path, bytes are the
                content, and anything else is a value.
            value: instead of ``source``: taken as a value whatever it is, so that text is the content.
            content_type: MIME type, when the user knows better.
            metadata: JSON values to keep with it.
            format: of a table: ``csv`` or ``parquet`` and others, see ``serialise``.

        Raises:
            InvalidArtifactError: the name, the value or the metadata cannot be used.
            ArtifactNotFoundError: there is no such file.
            ArtifactError: the file is outside ``artifact_paths``, or no regular file.
            FetchBlockedError: the URL may not be fetched.
            ToolError: the content cannot be written to disk.
            TimelineError: the log cannot be written.
        """
        if (source is _UNSET) == (value is _UNSET):
            raise InvalidArtifactError(name, "give a source or a value")
        name = check_name(name)
        check_free(name, self._discovery.registered)
        notes = _checked(name, metadata)
        facts, data = self._facts(source, value, format)
        if content_type is not None:
            facts["mime"] = facts["source"]["content_type"] = canonical(content_type)
            facts["suffix"] = facts["suffix"] or extension_for(content_type)
        timeline = self._timeline()  # may make the session's folder, which the blobs are in
        if data is not None:
            facts["sha256"] = self._blobs.put(data)
        timeline.append("register", {"name": name, **facts, "metadata": notes})
        return self.info(name)

    def list(self) -> list[Registration]:
        """All that is registered, the oldest first."""
        return [*self._discovery.registered.values()]

    def info(self, name: str) -> Registration:
        """What is registered under a name; nothing is read or fetched.

        Raises:
            ArtifactNotFoundError: nothing is.
        """
        found = self._discovery.registered.get(name)
        if found is None:
            raise ArtifactNotFoundError(name, tuple(self._discovery.registered))
        return found

    def unregister(self, name: str) -> None:
        """Take a name away; the file it stood for, and what Claude made of it, stay.

        Raises:
            ArtifactNotFoundError: nothing has the name.
            TimelineError: the log cannot be written.
        """
        self._timeline().append("unregister", {"name": self.info(name).name})

    def cleanup(self) -> None:
        """Take all names away.

        Raises:
            TimelineError: the log cannot be written.
        """
        for registration in self.list():
            self.unregister(registration.name)

    # What a source is -------------------------------------------------------------------------------

    def _facts(self, source: Any, value: Any, form: str | None) -> tuple[dict[str, Any], bytes | None]:
        """The keys of a ``register`` block that the source decides, and the bytes to keep."""
        if value is _UNSET:
            if isinstance(source, str) and is_uri(source):
                return self._url(source), None
            if isinstance(source, str | os.PathLike):
                return self._path(source), None
            if isinstance(source, bytes | bytearray | memoryview):
                return self._kept("content", serialise(source), type(source).__name__)
            value = source
        if isinstance(value, FileRef):
            return self._kept("content", serialise(value), "file")
        return self._kept("value", serialise(value, format=form), type(value).__name__)

    def _url(self, url: str) -> dict[str, Any]:
        scheme = url.partition(":")[0].lower()
        if scheme not in ("https", "http"):
            raise InvalidArtifactError(url, f"a {scheme}:// artifact has a name already; use its URI")
        from .fetch import FetchPolicy, check_url

        checked = str(check_url(url, FetchPolicy.of(self._settings)))
        path = urlsplit(checked).path
        return {
            "source": {"type": "url", "url": checked},
            "mime": type_by_name(path),
            "size": None,
            "sha256": "",
            "suffix": suffix_of(path) if type_by_name(path) else "",
        }

    def _path(self, given: str | os.PathLike[str]) -> dict[str, Any]:
        path = Path(os.path.abspath(self._project / Path(given).expanduser()))  # noqa: PTH100  links are kept
        fd = open_file(path, self._settings.artifact_paths, subject=str(given))
        try:
            size = os.fstat(fd).st_size
            mime = content_type(path.name, os.pread(fd, HEAD, 0))
        finally:
            os.close(fd)
        source = {"type": "path", "path": str(path)}
        limit = self._settings.artifact_file_limit
        if size > limit:
            source["reason"] = _over(size, limit, "artifact_file_limit")
        return {"source": source, "mime": mime, "size": size, "sha256": "", "suffix": suffix_of(path.name)}

    def _kept(self, kind: str, made: Serialised, of: str) -> tuple[dict[str, Any], bytes | None]:
        size, limit = len(made.data), self._settings.artifact_limit
        source = {"type": kind, "of": of}
        if size > limit:
            source["reason"] = _over(size, limit, "artifact_limit")
        facts = {
            "source": source,
            "mime": made.content_type,
            "size": size,
            "sha256": "",
            "suffix": made.suffix,
        }
        return facts, made.data if size <= limit else None


def reason(registration: Registration) -> str | None:
    """Why the content of a registered artifact is not to be had; None when it is."""
    found = registration.source.get("reason")
    return found if isinstance(found, str) else None


def _over(size: int, limit: int, setting: str) -> str:
    return f"{size:,} bytes, and {limit:,} are allowed ({setting})"


def _checked(name: str, metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    try:
        kept: dict[str, Any] = json.loads(json.dumps(dict(metadata or {}), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArtifactError(name, f"its metadata has no form in JSON: {error}") from error
    return kept
