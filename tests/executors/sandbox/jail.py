"""A user's home folder with a project in it, and a sandboxed executor as a session of it starts one."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conjure_jupyter.executors import CommandResult, ExecutionContext, LocalExecutor
from conjure_jupyter.executors.sandbox import Kind

SECRET = "the-secret-7f3a"


@dataclass
class Jail:
    """What a test needs of it.

    Attributes:
        home: the user's home folder.
        project: the notebook's folder in it, readable.
        work: the tools' working directory.
        outside: a folder that the context does not name.
    """

    executor: LocalExecutor
    context: ExecutionContext
    home: Path
    project: Path
    work: Path
    outside: Path

    async def run(self, command: str, **variables: str) -> CommandResult:
        context = self.context.with_(environment={**self.context.environment, **variables})
        return await self.executor.run(command, context)

    async def python(self, code: str) -> CommandResult:
        return await self.run(f'{sys.executable} -c "$CODE"', CODE=code)


def furnish(home: Path, outside: Path | None = None) -> tuple[Path, Path]:
    """A project in a home folder, and the working directory of its session."""
    if outside is not None:
        outside.mkdir()
        (outside / "secret.txt").write_text(SECRET)
    project = home / "projects" / "study"
    session = project / ".conjure" / "sessions" / "one"
    work = session / "work"
    work.mkdir(parents=True)
    (project / "data.csv").write_text("a,b\n1,2\n")
    (home / "notes.txt").write_text("notes\n")
    for path in (
        home / ".ssh" / "id_rsa",
        home / ".aws" / "credentials",
        home / ".config" / "browser" / "Cookies",
        home / ".netrc",
        home / ".bashrc",
        home / "server.pem",
        home / "snap" / "browser" / "logins.json",
        project / ".env",
        project / "deploy.key",
        session / "timeline.jsonl",
        session / "blobs" / "aa",
        session.parent / "two" / "timeline.jsonl",
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SECRET)
    return project, work


@asynccontextmanager
async def jailed(kind: Kind, home: Path, outside: Path, **changes: Any) -> AsyncIterator[Jail]:
    """A started executor; the network is off unless ``changes`` say so."""
    project, work = furnish(home, outside)
    context = ExecutionContext(
        working_directory=work,
        allowed_paths=(work, project),
        writable_paths=(work,),
        read_only_paths=(work / "skills",),
        timeout=20,
        network_access="none",
        environment={"REAL_HOME": str(home), "OUTSIDE": str(outside), "KERNEL": str(os.getpid())},
    ).with_(**changes)
    executor = LocalExecutor(sandbox=kind)
    try:
        yield Jail(executor, await executor.start(context), home, project, work, outside)
    finally:
        await executor.close()
