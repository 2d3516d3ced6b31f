"""A session on a machine of its own, mirrored to a storage that machines share."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from conjure_jupyter.timeline import Timeline
from conjure_jupyter.timeline.remote import LogMirror
from conjure_jupyter.timeline.remote.holder import Holder

from .remote_stores import Remote


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110  what is waited for has no event to show
            await asyncio.sleep(0.002)


class Machine:
    """A session's folder on a machine of its own, and the mirrors that run there."""

    def __init__(self, folder: Path, remote: Remote) -> None:
        self.folder = folder
        self.remote = remote
        self.told: list[str] = []
        self.mirrors: list[LogMirror] = []
        opened = Timeline.open if (folder / "timeline.jsonl").exists() else Timeline.create
        self.timeline = opened(folder)

    @property
    def log(self) -> bytes:
        return (self.folder / "timeline.jsonl").read_bytes()

    def mirror(self, **options: Any) -> LogMirror:
        options = {"interval": 3600.0, "tell": self.told.append, **options}
        self.mirrors.append(LogMirror(self.timeline, self.remote, **options))
        return self.mirrors[-1]

    def blob(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        (self.folder / "blobs").mkdir(exist_ok=True)
        (self.folder / "blobs" / digest).write_bytes(data)
        return digest

    def artifact(self, data: bytes) -> str:
        digest = self.blob(data)
        self.timeline.append("artifact", {"path": "outputs/x", "sha256": digest, "kept": True})
        return digest

    def snapshot(self, files: dict[str, bytes]) -> str:
        entries = {path: [self.blob(data), 0o644, len(data)] for path, data in files.items()}
        manifest = self.blob(json.dumps(entries).encode())
        self.timeline.append(
            "snapshot", {"manifest": manifest, "files": len(files), "size": 0, "skipped": []}
        )
        return manifest

    def say(self, *texts: str) -> None:
        for text in texts:
            self.timeline.append("notice", {"text": text})

    async def crash(self) -> None:
        """What ``kill -9`` leaves, as far as one process can show it: nobody lets anything go."""
        for mirror in self.mirrors:
            for task in (mirror._task, mirror._sender and mirror._sender._lease._renewing):
                if task is not None:
                    mirror._sender._lease.release = _nothing  # type: ignore[union-attr,method-assign]  it is killed
                    task.cancel()
                    await asyncio.wait({task})
        self.mirrors = []
        self.timeline.close()

    async def close(self) -> None:
        for mirror in self.mirrors:
            await mirror.close(1.0)
        self.timeline.close()


async def _nothing() -> None:
    pass


async def remote_log(remote: Remote) -> bytes:
    return b"".join([await remote.bucket.get(item.key) for item in await remote.bucket.list("log/")])


class Machines:
    """Machines by name; what runs on them is closed at the end."""

    def __init__(self, root: Path, remote: Remote) -> None:
        self.root = root
        self.remote = remote
        self._all: list[Machine] = []

    def __call__(self, name: str) -> Machine:
        self._all.append(Machine(self.folder(name), self.remote))
        return self._all[-1]

    def folder(self, name: str) -> Path:
        return self.root / name / "s1"

    async def close(self) -> None:
        for machine in self._all:
            await machine.close()


@contextlib.asynccontextmanager
async def machines(root: Path, remote: Remote) -> AsyncIterator[Machines]:
    made = Machines(root, remote)
    try:
        yield made
    finally:
        await made.close()


def stranger(expires: float, token: str = "t0") -> Holder:
    return Holder(token, "elsewhere", 4711, "analysis.ipynb", expires)
