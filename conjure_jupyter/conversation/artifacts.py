"""The artifacts of a session, as its user sees them and as its turns use them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

from ..artifacts.blobs import BlobStore
from ..artifacts.fetch import Fetcher, FetchPolicy
from ..artifacts.registry import ArtifactRegistry
from ..artifacts.resolver import ArtifactResolver, Resolved
from ..artifacts.section import artifacts_section, skill_assets
from ..artifacts.service import ArtifactService
from ..artifacts.uris import is_uri
from ..engine import engine
from ..errors import ArtifactNotFoundError, ToolError
from ..fileref import FileRef
from ..settings import Settings
from ..skills import SkillRegistry
from ..storage.callbacks import FileCallbacks
from ..storage.contract import FileEvent
from ..timeline.discovery import Artifact, Discovery, Registration, Source
from ..types import ToolCall, ToolResult
from .capture import Capture
from .record import Record
from .store import cache_folder
from .workspace import Workspace

log = logging.getLogger(__name__)


class SessionArtifacts:
    """The artifacts of one session; what has no underscore and is no coroutine works from any thread.

    Attributes:
        service: what tools work with.
        capture: keeps what calls make.
        callbacks: hear of files.
    """

    def __init__(
        self,
        record: Record,
        files: Workspace,
        skills: SkillRegistry,
        *,
        settings: Settings,
        project: Path,
        callbacks: FileCallbacks,
        url_of: Callable[[str], str | None],
    ) -> None:
        self._record = record
        self._files = files
        self._skills = skills
        self.callbacks = callbacks
        self._url_of = url_of
        self.blobs = BlobStore(record.folder / "blobs")
        self.shelf = record.folder / "artifacts"
        self.registry = ArtifactRegistry(record.log, record.discovery, self.blobs, settings, project)
        self._fetcher = Fetcher(FetchPolicy.of(settings), cache_folder(record.folder) / "urls")
        resolver = ArtifactResolver(self.registry, skills.list, self._fetcher, project, settings)
        self.service = ArtifactService(
            record.log,
            record.discovery,
            self.blobs,
            self.registry,
            resolver,
            layout=files.layout,
            limit=settings.artifact_limit,
            skill_folder=files.skill_folder,
            url_of=url_of,
            shelf=self.shelf,
        )
        self.capture = Capture(files, self.service, self.tell)

    def tell(self, event: FileEvent, ref: FileRef) -> None:
        """Tell the session's callbacks of a file."""
        self.callbacks.fire(event, ref, self._record.folder.name)

    @property
    def discovery(self) -> Discovery:
        """What the log says of artifacts."""
        return self._record.discovery

    # For the user -----------------------------------------------------------------------------------

    def register(
        self,
        name: str,
        source: Any = None,
        *,
        value: Any = None,
        content_type: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Registration:
        """Give something a name that Claude can use as ``file://NAME``; it hears of it with the next message.

        Args:
            name: letters, digits, ``.``, ``_`` and ``-``.
            source: a path, a URL (fetched when it is first used), bytes, or a Python value such as a
                DataFrame, an array, a figure or a dict.
            value: a value that ``source`` would take for a path or URL: a text.
            content_type: MIME type; found from the content when None.
            metadata: what else is to be kept with it, as JSON.

        Raises:
            ArtifactError: the name is taken or can be none, or the source cannot be registered.
        """

        async def register() -> Registration:
            await self._record.open()
            more = {} if value is None else {"value": value}
            given = (name,) if value is not None else (name, source)
            return await asyncio.to_thread(
                lambda: self.registry.register(*given, content_type=content_type, metadata=metadata, **more)
            )

        return engine().run(register())

    def registered(self) -> list[Registration]:
        """The names that were given."""
        return self.registry.list()

    def info(self, name: str) -> Registration:
        """What is known of a name, without fetching anything.

        Raises:
            ArtifactNotFoundError: nothing has that name.
        """
        return self.registry.info(name)

    def unregister(self, name: str) -> None:
        """Take a name away; Claude hears of it with the next message.

        Raises:
            ArtifactNotFoundError: nothing has that name.
        """
        self.registry.unregister(name)

    def cleanup(self) -> None:
        """Take all names away."""
        self.registry.cleanup()

    def made_by_claude(self) -> Sequence[FileRef]:
        """The latest version of every file that was made under ``outputs/``, by path."""
        made = [artifact for artifact in self._external() if artifact.source_type == "file"]
        return _Refs(sorted(made, key=lambda artifact: artifact.path), self.service.file_ref)

    def versions(self, path: str) -> list[FileRef]:
        """All versions of a file, the oldest first; ``path`` such as ``outputs/report.pdf``."""
        return [self.service.file_ref(artifact) for artifact in self.discovery.versions(path)]

    def sources(self) -> Sequence[Source]:
        """The numbered sources that ``[[S:n]]`` refers to."""
        return self.discovery.sources

    def get(self, subject: str) -> FileRef:
        """A file, in its latest version unless a logical path says otherwise.

        Args:
            subject: a registered name, a URI, a logical path, a path such as ``outputs/report.pdf``, or a
                file's name.

        Raises:
            ArtifactError: it cannot be found or fetched.
        """
        if subject.startswith("fi:"):
            return self.service.file_ref(self._found(subject, self.discovery.find(subject)))
        if is_uri(subject) or subject in self.discovery.registered:
            uri = subject if is_uri(subject) else f"file://{subject}"
            return self._ref(engine().run(self.service.resolver.resolve(uri)))
        names = (subject, f"outputs/{subject}", f"uploads/{subject}")
        found = next((artifact for name in names if (artifact := self.discovery.latest(name))), None)
        return self.service.file_ref(self._found(subject, found))

    def resolve(self, uri: str) -> Resolved:
        """What a URI stands for; a URL is fetched.

        Raises:
            ArtifactError: it names nothing, or may not be fetched.
        """
        return engine().run(self.service.resolver.resolve(uri))

    def hide(self, artifact_path: str, replacement_text: str) -> None:
        """Show an artifact as a text from here on; its bytes stay and can still be read.

        Raises:
            ArtifactNotFoundError: there is no such artifact.
        """
        self._found(artifact_path, self.discovery.find(artifact_path))
        self._record.log().append(
            "hide", {"artifact_path": artifact_path, "replacement_text": replacement_text}
        )

    def _found(self, subject: str, artifact: Artifact | None) -> Artifact:
        if artifact is None:
            known = [*self.discovery.registered, *(found.path for found in self._external()[-20:])]
            raise ArtifactNotFoundError(subject, tuple(known))
        return artifact

    def _external(self) -> list[Artifact]:
        return [artifact for artifact in self.discovery.current() if artifact.visibility == "external"]

    def _ref(self, resolved: Resolved) -> FileRef:
        sha256 = resolved.keep(self.blobs, limit=self.service.limit)
        path = self.blobs.path(sha256)
        return FileRef(
            resolved.name,
            path.stat().st_size,
            resolved.content_type,
            sha256,
            storage_url=self._url_of(sha256),
            local_path=resolved.path,
            blob=path,
        )

    def is_registered_url(self, url: str) -> bool:
        """Whether the user gave a URL a name: then it is fetched without asking her."""
        return any(entry.source.get("url") == url for entry in self.discovery.registered.values())

    # For turns --------------------------------------------------------------------------------------

    async def take_in(self, uploads: Sequence[FileRef]) -> None:
        """Record files that the user gave with a turn; they lie in ``uploads/`` already."""
        for upload in uploads:
            if upload.local_path is None or (name := self._files.layout.name_of(upload.local_path)) is None:
                continue
            try:
                artifact = await self.service.record(name, source_type="attachment", again=True)
            except (ToolError, OSError) as error:
                log.warning("%s was given and cannot be recorded: %s", name, error)
            else:
                self.tell("created", self.service.file_ref(artifact))

    async def before(self, call: ToolCall) -> None:
        """A call is about to run."""
        await self.capture.before(call)

    async def after(self, call: ToolCall, result: ToolResult) -> None:
        """A call ended, and its result is not written yet."""
        await self.capture.after(call, result)
        if call.name == "view" and not result.is_error:
            self._tell_assets(str(call.input.get("path")))

    def _tell_assets(self, path: str) -> None:
        """Tell Claude of a skill's assets once it has read the skill."""
        told = self._files.told(self._files.cwd / path)
        skill = next((s for s in self._skills.list() if self._files.skill_location(s) == told), None)
        if skill is None or skill.name in self._assets_told():
            return
        if section := artifacts_section([], skill_assets([skill])):
            self.service.notice(section, "skill_assets", {"skill": skill.name})

    def _assets_told(self) -> set[str]:
        blocks = self._record.log().blocks
        return {
            str(block.data.get("skill"))
            for block in blocks
            if block.kind == "notice" and block.data.get("code") == "skill_assets"
        }

    def made(self, turn: int) -> list[FileRef]:
        """What was made or changed under ``outputs/`` in a turn and is still there, by path."""
        latest = {
            artifact.path: artifact
            for artifact in self.discovery.all
            if artifact.turn == turn and (artifact.visibility, artifact.source_type) == ("external", "file")
        }
        refs = (self.service.file_ref(latest[path]) for path in sorted(latest))
        return [ref for ref in refs if ref.local_path is not None]

    def list(self) -> Sequence[FileRef]:
        """The latest version of every file that was given or made, by path."""
        return _Refs(sorted(self._external(), key=lambda artifact: artifact.path), self.service.file_ref)

    async def close(self) -> None:
        """Let go of connections."""
        await self._fetcher.close()


class _Refs(Sequence[FileRef]):
    """Files by their artifacts; thousands of them are listed without a look at the disk for each."""

    def __init__(self, artifacts: Sequence[Artifact], make: Callable[[Artifact], FileRef]) -> None:
        self._artifacts = artifacts
        self._make = make

    @overload
    def __getitem__(self, index: int) -> FileRef: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[FileRef]: ...

    def __getitem__(self, index: int | slice) -> FileRef | Sequence[FileRef]:
        if isinstance(index, slice):
            return _Refs(self._artifacts[index], self._make)
        return self._make(self._artifacts[index])

    def __len__(self) -> int:
        return len(self._artifacts)

    def __repr__(self) -> str:
        shown = ", ".join(artifact.path for artifact in self._artifacts[:10])
        return f"[{shown}{', …' if len(self) > 10 else ''}]"
