"""Small builds on the engine of the tests, from a Dockerfile in the test's own words."""

from __future__ import annotations

import io
import tarfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from conjure_jupyter.executors.docker.building import Build
from conjure_jupyter.executors.docker.connection import Engine

#: No step needs a network, and not every engine has one for builds.
OFFLINE: Mapping[str, Any] = {"network_mode": "none"}


def archive(files: Mapping[str, str | bytes]) -> bytes:
    """A context for the engine."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as made:
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            member = tarfile.TarInfo(name)
            member.size = len(data)
            made.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


@asynccontextmanager
async def connected(address: str) -> AsyncIterator[Engine]:
    """The engine, for a while."""
    engine = await Engine.connect(address)
    try:
        yield engine
    finally:
        await engine.close()


async def built(
    address: str, tag: str, dockerfile: str, files: Mapping[str, str | bytes] | None = None
) -> list[str]:
    """Build an image without a network; the lines that the build printed."""
    lines: list[str] = []
    async with connected(address) as engine:
        context = archive({"Dockerfile": dockerfile, **(files or {})})
        await Build(tag, lines.append).run(engine, context, dict(OFFLINE))
    return lines
