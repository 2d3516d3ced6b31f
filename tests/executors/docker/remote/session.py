"""A session's folders and its container on an engine that does not see them, as the executor has them."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

from conjure_jupyter.executors import ExecutionContext
from conjure_jupyter.executors.docker.connection import Engine
from conjure_jupyter.executors.docker.container import Container, Plan
from conjure_jupyter.executors.docker.link import Link
from conjure_jupyter.executors.docker.mounts import Mount
from conjure_jupyter.executors.docker.options import DockerOptions
from conjure_jupyter.executors.docker.owner import labels
from conjure_jupyter.executors.docker.remote import Moved, VolumeFiles
from conjure_jupyter.executors.docker.resident import ResidentLink
from conjure_jupyter.executors.docker.resident.boot import ARGUMENTS

WORKSPACE = PurePosixPath("/workspace")


class Session:
    """Folders here, and once started a container there."""

    def __init__(self, address: str, image: str, folder: Path) -> None:
        self._address = address
        self._image = image
        self.work, self.skills, self.notebook = (folder / name for name in ("work", "skills", "notebook"))
        for made in (self.work, self.skills, self.notebook):
            made.mkdir()
        self.mounts: list[Mount] = [
            Mount(self.work, WORKSPACE, writable=True),
            Mount(self.skills, PurePosixPath("/mnt/skills")),
            Mount(self.notebook, PurePosixPath("/notebook")),
            Mount(self.skills, WORKSPACE / "skills"),
        ]
        self.context = ExecutionContext(
            working_directory=Path("/workspace"),
            allowed_paths=(Path("/mnt/skills"), Path("/notebook")),
            read_only_paths=(Path("/workspace/skills"),),
        )
        self.engine: Engine | None = None
        self.files: VolumeFiles | None = None
        self.container: Container | None = None
        self.link: Link | None = None
        self.user = f"{os.getuid()}:{os.getgid()}"

    async def start(self) -> VolumeFiles:
        self.engine = await Engine.connect(self._address)
        self.files = await VolumeFiles.create(
            self.engine,
            "test",
            self.mounts,
            user=self.user,
            image=self._image,
            labels=labels("test", "volume"),
        )
        await self.files.push()
        await self.enter()
        return self.files

    async def enter(self) -> None:
        """Start the container, or another."""
        assert self.engine is not None
        assert self.files is not None
        await self.leave()
        plan = Plan(
            options=DockerOptions(image=self._image),
            mounts=self.files.mounts,
            user=self.user,
            session="test",
        )
        self.container = await Container.create(self.engine, plan)
        self.link = await ResidentLink.open(await self.container.attach(ARGUMENTS))

    async def leave(self) -> None:
        if self.link is not None:
            await self.link.close()
        if self.container is not None:
            await self.container.remove()
        self.link = self.container = None

    async def run(self, command: str) -> str:
        """A call without the files moving."""
        assert self.link is not None
        result = await self.link.run(command, self.context, timeout=30)
        assert result.exit_code == 0, result.text
        return result.text

    async def push(self) -> Moved:
        assert self.files is not None
        return await self.files.push(self.link, self.context)

    async def pull(self) -> Moved:
        assert self.files is not None
        return await self.files.pull(self.link, self.context)

    async def call(self, command: str) -> str:
        """A call as the executor makes it."""
        await self.push()
        said = await self.run(command)
        await self.pull()
        return said

    async def close(self) -> None:
        await self.leave()
        if self.files is not None:
            await self.files.close()
        if self.engine is not None:
            await self.engine.close()
