"""What a document refers to, read where the tools work and nowhere else.

========================= ==================================================================================
``workspace:///a/b.png``  a file of the working directory: tried from the document's folder first, then from
                          the working directory, then as a file of an earlier turn (``turn_0003/files/…``)
``file:///…``             the same, when it lies inside
``source:3``              the file of a source of the session
``https://…``             a source that was fetched from there; nothing is fetched now
========================= ==================================================================================
"""

from __future__ import annotations

import contextlib
import posixpath
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from ..errors import ArtifactError, PathNotFoundError, PermissionDeniedError, ToolError
from ..executors.contract import ExecutionContext, Executor
from ..timeline.logical import LogicalPath, from_physical, in_workspace
from . import limits

if TYPE_CHECKING:
    from ..artifacts.service import ArtifactService

_WEB = ("http", "https", "ftp")


class Assets:
    """Gives the bytes of references; an instance is a ``Fetch``.

    Args:
        executor: reads files.
        context: the working directory. Other folders that tools may read are not looked into: what a
            document shows is the session's own.
        folders: where relative references are looked for as well, relative to the working directory.
        base: the document's folder, which the child has put before relative references.
        files: paths of sources by number.
        urls: paths of sources by the URL they came from.
        artifacts: puts files of earlier turns on disk.
    """

    def __init__(
        self,
        executor: Executor,
        context: ExecutionContext,
        *,
        folders: Sequence[str] = (),
        base: str = "",
        files: Mapping[int, str] | None = None,
        urls: Mapping[str, str] | None = None,
        artifacts: ArtifactService | None = None,
    ) -> None:
        self._executor = executor
        self._context = context.with_(allowed_paths=())
        self._folders = folders
        self._base = base.strip("/")
        self._files = files or {}
        self._urls = urls or {}
        self._artifacts = artifacts

    async def __call__(self, url: str) -> bytes:
        """The bytes of a reference.

        Raises:
            ToolError: there are none to be had; the text is the reason, without the URL.
        """
        try:
            parts = urlsplit(url)
        except ValueError:
            raise ToolError("it is no URL") from None
        scheme = parts.scheme.lower()
        if scheme == "source":
            return await self._source(parts.path)
        if scheme in _WEB:
            return await self._web(url)
        if scheme not in ("workspace", "file"):
            raise ToolError("only files of the working directory are used")
        if scheme == "file" and parts.netloc not in ("", "localhost"):
            raise ToolError("it is a file of another machine")
        # A name may have the characters that mean something in a URL: it is tried as it stands as well.
        literal = parts.path + (f"?{parts.query}" if parts.query else "")
        literal += f"#{parts.fragment}" if parts.fragment else ""
        names = list(dict.fromkeys([unquote(parts.path), unquote(literal), literal]))
        return await self._first([path for name in names for path in self._places(name, scheme)])

    async def _source(self, number: str) -> bytes:
        path = self._files.get(int(number)) if number.isdecimal() and len(number) < 10 else None
        if path is None:
            raise ToolError("it is no source that has a file")
        return await self._first([path])

    async def _web(self, url: str) -> bytes:
        path = self._urls.get(url) or self._urls.get(url.partition("?")[0].partition("#")[0])
        if path is None:
            raise ToolError(
                "nothing is fetched from the network; stage it as an artifact and refer to its file"
            )
        return await self._first([path])

    def _places(self, name: str, scheme: str) -> list[str]:
        """The paths that a name may stand for, best first."""
        if scheme == "file":
            return [name]
        inside = name.lstrip("/")
        places = [inside] if inside else []
        if self._base and inside.startswith(self._base + "/"):
            rest = inside[len(self._base) + 1 :]
            places += [rest, *(posixpath.join(folder, rest) for folder in self._folders)]
        else:
            places += [posixpath.join(folder, inside) for folder in self._folders]
        # An absolute path of this machine, or from the working directory as if that were a web server.
        root = self._context.working_directory.as_posix().rstrip("/") + "/"
        return [*places, name] if name.startswith(root) else places

    async def _first(self, paths: Sequence[str]) -> bytes:
        refused: ToolError | None = None
        for path in dict.fromkeys(paths):
            try:
                return await self._read(path)
            except PathNotFoundError:
                continue
            except PermissionDeniedError:
                refused = refused or ToolError("it lies outside the working directory, or may not be read")
            except ToolError as error:
                refused = refused or ToolError(str(error))
        earlier = await self._earlier(paths)
        if earlier is not None:
            return await self._read(earlier)
        raise refused or ToolError("there is no such file in the working directory")

    async def _read(self, path: str) -> bytes:
        data = await self._executor.read(path, self._context, limit=limits.RESOURCE + 1)
        if len(data) > limits.RESOURCE:
            raise ToolError(f"it has more than {limits.RESOURCE // limits.MB} MB")
        return data

    async def _earlier(self, paths: Sequence[str]) -> str | None:
        """Where a file of an earlier turn has been put, when one of the paths is its."""
        if self._artifacts is None:
            return None
        for path in paths:
            logical = from_physical(path)
            if logical is None:
                continue
            for version in (str(logical), self._as_of(logical)):
                with contextlib.suppress(ArtifactError):
                    if version is not None:
                        return await self._artifacts.checkout(version)
        return None

    def _as_of(self, logical: LogicalPath) -> str | None:
        """What lay there at the end of that turn, though made in one before: an image beside a document."""
        if self._artifacts is None or logical.turn is None:
            return None
        name = in_workspace(logical)
        known = self._artifacts.discovery.at(logical.turn + 1)
        return next((artifact.artifact_path for artifact in known if artifact.path == name), None)
