"""A session's artifacts over a real folder, for tests of the tools."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from conjure_jupyter.artifacts.blobs import BlobStore
from conjure_jupyter.artifacts.fetch import Fetched
from conjure_jupyter.artifacts.layout import Layout
from conjure_jupyter.artifacts.registry import ArtifactRegistry
from conjure_jupyter.artifacts.resolver import ArtifactResolver
from conjure_jupyter.artifacts.service import ArtifactService
from conjure_jupyter.errors import FetchError
from conjure_jupyter.settings import Settings
from conjure_jupyter.skills import Skill, load
from conjure_jupyter.timeline import Discovery, MemoryTimeline

from ..builders import write_skill


class Web:
    """Serves what a test put there, in place of the network."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pages: dict[str, bytes] = {}
        self.asked: list[str] = []

    async def fetch(self, url: str) -> Fetched:
        self.asked.append(url)
        if url not in self.pages:
            raise FetchError(url, "404 Not Found", status=404)
        name = url.rsplit("/", 1)[-1]
        path = self.folder / name
        path.write_bytes(self.pages[url])
        return Fetched(
            url=url,
            final_url=url,
            path=path,
            content_type="application/json",
            size=len(self.pages[url]),
            sha256="",
            etag=None,
            name=name,
        )


class Session:
    """What a session has beside its tools.

    Attributes:
        timeline: its log.
        service: its artifacts.
        work: the tools' working directory.
        project: the notebook's folder.
        web: what URLs give.
    """

    def __init__(self, folder: Path, work: Path, *, limit: int = 100 * 1024 * 1024) -> None:
        self.work = work
        self.project = folder / "project"
        self.project.mkdir()
        (folder / "web").mkdir()
        self.web = Web(folder / "web")
        self.timeline = MemoryTimeline()
        self.discovery = Discovery()
        self.timeline.subscribe(self.discovery.feed, replay=True)
        self._skills: list[Skill] = []
        settings = Settings(artifact_limit=limit)
        blobs = BlobStore(folder / "blobs")
        self.registry = ArtifactRegistry(self._log, self.discovery, blobs, settings, self.project)
        fetcher: Any = self.web
        resolver = ArtifactResolver(self.registry, self.skills, fetcher, self.project, settings)
        self.service = ArtifactService(
            self._log,
            self.discovery,
            blobs,
            self.registry,
            resolver,
            layout=Layout(work, work),
            limit=limit,
            skill_folder=lambda name: work / "skills" / name,
        )
        self.timeline.begin_turn()

    def _log(self) -> MemoryTimeline:
        return self.timeline

    def skills(self) -> Sequence[Skill]:
        return self._skills

    def add_skill(self, name: str, **files: str) -> None:
        """Load a skill whose assets are ``files``, and copy it where tools see it."""
        assets = {f"assets/{file.replace('_', '.')}": text for file, text in files.items()}
        folder = write_skill(self.project / "skills", name, files=assets)
        write_skill(self.work / "skills", name, files=assets)
        self._skills.extend(load(folder))

    def give(self, name: str, content: str | bytes = "a,b\n1,2\n", *, registered: str | None = None) -> Path:
        """Put a file in the notebook's folder; register it when a name is given."""
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        if registered is not None:
            self.registry.register(registered, path)
        return path

    async def make(self, path: str, content: str | bytes, *, call_id: str | None = None) -> str:
        """Make a file of the working directory an artifact; its logical path."""
        target = self.work / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
        artifact = await self.service.record(path, call_ids=[call_id] if call_id else [])
        return artifact.artifact_path

    def next_turn(self) -> None:
        self.timeline.begin_turn()

    @property
    def notices(self) -> list[tuple[str, str]]:
        """Code and text of every notice."""
        return [
            (block.data["code"], block.data["text"])
            for block in self.timeline.blocks
            if block.kind == "notice"
        ]
