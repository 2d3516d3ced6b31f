"""Earlier versions: found by their logical paths, and put on disk when something names them."""

from __future__ import annotations

import asyncio
import posixpath
from dataclasses import dataclass, field

from ..errors import ArtifactNotFoundError
from ..timeline.discovery import Artifact
from ..timeline.logical import (
    FILES,
    LogicalPath,
    file_path,
    from_physical,
    in_workspace,
    mentions,
    parse,
    source_mentions,
)
from .keeping import Keeper
from .layout import OUTPUTS


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What a tool's path field stands for.

    Attributes:
        path: the path to use.
        notice: what Claude is to be told, when the path is another one than it wrote.
    """

    path: str
    notice: str | None = None


@dataclass(frozen=True, slots=True)
class Pulled:
    """What a text mentioned and what became of it.

    Attributes:
        put: files put on disk, relative to the working directory.
        missing_assets: paths that no artifact has.
        missing_sources: numbers that are not in the pool.
        sources: path of each numbered source that is a file, relative to the working directory.
    """

    put: list[str] = field(default_factory=list)
    missing_assets: list[str] = field(default_factory=list)
    missing_sources: list[int] = field(default_factory=list)
    sources: dict[int, str] = field(default_factory=dict)


class Versions:
    """The versions of a session's files.

    Args:
        keeper: knows the files and the blobs.
    """

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper

    def find(self, logical: str) -> Artifact:
        """The artifact of a logical path: a file, or the one source that ``so:sources_pool[3]`` names.

        Raises:
            ArtifactNotFoundError: there is none.
        """
        path = parse(logical)
        if path.kind == "so":
            source = self._keeper.discovery.source(path.numbers[0]) if len(path.numbers) == 1 else None
            logical = source.artifact_path if source else logical
        found = self._keeper.discovery.find(logical)
        if found is None:
            known = tuple(artifact.artifact_path for artifact in self._keeper.discovery.current())
            raise ArtifactNotFoundError(logical, known)
        return found

    async def checkout(self, logical: str) -> str:
        """Put a version on disk, read-only; its path relative to the working directory.

        The latest version that is still in its place is not put a second time.

        Raises:
            ArtifactNotFoundError: there is no such artifact, or its bytes were not kept.
        """
        return await self._checkout(self.find(logical))

    async def _checkout(self, found: Artifact) -> str:
        if await self.in_place(found):
            return self._keeper.told(found.path)
        if not found.kept:
            raise ArtifactNotFoundError(found.artifact_path, reason=found.reason or "its bytes were not kept")
        return await self._put(found)

    async def _put(self, found: Artifact) -> str:
        """Put a version in the folder of its turn; where, relative to the working directory."""
        keeper, relative = self._keeper, found.physical_path
        await asyncio.to_thread(
            keeper.blobs.checkout, found.sha256, keeper.layout.root, relative, mode=0o444, replace=True
        )
        return keeper.layout.told(keeper.layout.root / relative)

    async def in_place(self, found: Artifact) -> bool:
        """Whether a version still lies where it was made: the latest or of this turn, and unchanged."""
        if found.turn != self._keeper.timeline().turn and self._keeper.discovery.latest(found.path) != found:
            return False
        return await asyncio.to_thread(self._keeper.same, found.path, found.sha256)

    async def pull(self, text: str) -> Pulled:
        """Put on disk what a text mentions: ``turn_0003/files/…`` paths and ``[[S:n]]``."""
        pulled = Pulled()
        for mention in mentions(text, lambda path: self._historic(path) is not None):
            found = self._historic(mention)
            if found is None or not found.kept:
                if not await asyncio.to_thread((self._keeper.layout.root / mention).is_file):
                    pulled.missing_assets.append(mention)
                continue
            pulled.put.append(await self._put(found))
        for number in source_mentions(text):
            source = self._keeper.discovery.source(number)
            found = self._keeper.discovery.find(source.artifact_path) if source else None
            if found is None:
                pulled.missing_sources.append(number)
                continue
            try:
                pulled.sources[number] = await self._checkout(found)
            except ArtifactNotFoundError:
                pulled.missing_assets.append(found.path)
        return pulled

    def _historic(self, path: str) -> Artifact | None:
        logical = from_physical(path)
        return self._keeper.discovery.find(str(logical)) if logical else None

    async def for_writing(self, value: str, logical: LogicalPath) -> Rewritten:
        """What a write to a file of a turn is to go to: a copy of it under ``outputs/``.

        Args:
            value: the path as Claude wrote it.
            logical: what it stands for.
        """
        name = in_workspace(logical)
        name = name if name.startswith(OUTPUTS + "/") else f"{OUTPUTS}/{posixpath.basename(name)}"
        told = self._keeper.told(name)
        turn = self._keeper.timeline().turn
        if logical.turn == turn and logical.part == FILES:
            return Rewritten(told)
        found = self._keeper.discovery.find(str(logical))
        if found is not None and found.kept:
            await self._keeper.put(found.sha256, name)
        new = file_path(turn, FILES, name.removeprefix(OUTPUTS + "/"))
        return Rewritten(
            told, f"{value} belongs to an earlier turn and stays as it is; {told} ({new}) is written instead"
        )
