"""What calls make under ``outputs/`` becomes an artifact by itself, with the calls that made it."""

from __future__ import annotations

import asyncio
import logging
import stat
from collections.abc import Callable, Sequence

from ..artifacts.service import ArtifactService
from ..errors import ToolError
from ..fileref import FileRef
from ..storage.contract import FileEvent
from ..timeline.discovery import Artifact
from ..types import ToolCall, ToolResult
from . import trees
from .trees import Signature
from .workspace import Workspace

log = logging.getLogger(__name__)

#: Tools that change no file, so that nothing has to be looked at after them.
_READERS = frozenset({"view", "inspect_variable", "read_artifact"})

#: Hears of files that were made, changed or removed.
Tell = Callable[[FileEvent, FileRef], None]


class Capture:
    """Looks at ``outputs/`` after each call.

    A file that a file tool says it wrote is that call's; any other change may be the work of every command
    that ran since the last look, and carries all their ids, the one that ended now first.

    Args:
        files: the session's files.
        service: keeps what is found.
        tell: hears of it.
    """

    def __init__(self, files: Workspace, service: ArtifactService, tell: Tell) -> None:
        self._files = files
        self._service = service
        self._tell = tell
        self._warn: Callable[[str], None] = log.warning
        self._known: dict[str, Signature] = {}
        self._running: dict[str, None] = {}
        self._since: dict[str, None] = {}
        self._lock = asyncio.Lock()

    async def begin(self, warn: Callable[[str], None]) -> None:
        """Take note of what lies there before a turn: what others changed is nobody's artifact yet.

        Args:
            warn: tells the user what could not be kept.
        """
        self._warn = warn
        self._known = await asyncio.to_thread(self._files.snapshot)
        self._running.clear()
        self._since.clear()

    async def before(self, call: ToolCall) -> None:
        """A call is about to run."""
        if call.name not in _READERS:
            self._running[call.id] = self._since[call.id] = None

    async def after(self, call: ToolCall, result: ToolResult) -> None:
        """A call ended: keep what is new or changed, before its result is written."""
        if call.name in _READERS:
            return
        async with self._lock:
            said = [self._name(path) for path in result.meta.get("files", ())]
            for name in said:
                if name is not None and not name.startswith(("outputs/", "skills/", "uploads/")):
                    await self._record(name, [call.id])
            others = [call.id, *(other for other in self._since if other != call.id)]
            await self._look(
                lambda name: [call.id] if name in said else others,
            )
            self._running.pop(call.id, None)
            self._since = dict.fromkeys(self._running)

    async def recover(self) -> None:
        """Keep what a process that died left behind and nobody recorded."""
        self._known = {}
        async with self._lock:
            await self._look(lambda _: [])

    async def _look(self, calls_of: Callable[[str], Sequence[str]]) -> None:
        now = await asyncio.to_thread(self._stats)
        for relative, (signature, regular) in now.items():
            if regular and self._known.get(relative) != signature:
                name = f"outputs/{relative}"
                await self._record(name, calls_of(name))
        for relative in self._known.keys() - now.keys():
            if (gone := self._service.discovery.latest(f"outputs/{relative}")) is not None:
                self._tell("deleted", self._service.file_ref(gone))
        self._known = {relative: signature for relative, (signature, _) in now.items()}

    def _stats(self) -> dict[str, tuple[Signature, bool]]:
        return {
            relative: (trees.signature(status), stat.S_ISREG(status.st_mode))
            for relative, status in trees.walk(self._files.outputs)
        }

    async def _record(self, name: str, call_ids: Sequence[str]) -> Artifact | None:
        before = self._service.discovery.latest(name)
        try:
            artifact = await self._service.record(name, call_ids=call_ids)
        except (ToolError, OSError) as error:
            self._warn(f"{name} was made and is not kept as an artifact: {error}")
            return None
        if artifact is not before and not artifact.kept:
            self._warn(f"{name} was made; its bytes are not kept: {artifact.reason}")
        if artifact is not before and artifact.visibility == "external":
            self._tell("created" if before is None else "modified", self._service.file_ref(artifact))
        return artifact

    def _name(self, path: str) -> str | None:
        return self._files.layout.name_of(self._files.cwd / path)
