"""Containers for the tests of what keeps them."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import PurePosixPath

from conjure_jupyter.executors.docker.connection import Engine
from conjure_jupyter.executors.docker.container import Container, Plan
from conjure_jupyter.executors.docker.mounts import Mount
from conjure_jupyter.executors.docker.options import DockerOptions
from conjure_jupyter.settings import MB

#: Whom tools run as in these tests.
USER = "1000:1000"


def plan(image: str, *mounts: Mount, user: str = USER, session: str = "test", **options: object) -> Plan:
    """A small container."""
    limits = {"memory": 128 * MB, "scratch": 16 * MB, **options}
    return Plan(
        options=DockerOptions(image=image, **limits),  # type: ignore[arg-type]  # the test's own options
        mounts=mounts,
        user=user,
        session=session,
    )


@contextlib.asynccontextmanager
async def connected(address: str) -> AsyncIterator[Engine]:
    engine = await Engine.connect(address)
    try:
        yield engine
    finally:
        await engine.close()


@contextlib.asynccontextmanager
async def running(address: str, made: Plan) -> AsyncIterator[Container]:
    async with connected(address) as engine:
        container = await Container.create(engine, made)
        try:
            yield container
        finally:
            await container.remove()


async def says(
    container: Container,
    *argv: str,
    user: str | None = None,
    environment: Mapping[str, str] | None = None,
    feed: bytes = b"",
) -> tuple[int | None, str]:
    """Run a program to its end: its exit code, and what it printed on both outputs."""
    stream = await container.attach(argv, user=user, environment=environment)
    if feed:
        await stream.write(feed)
    stream.close()
    output = bytearray()
    while (piece := await stream.read()) is not None:
        output += piece[1]
    return await container.exec_code(stream), output.decode()


async def shell(container: Container, command: str, *, user: str | None = None) -> str:
    """What a command prints; it must succeed."""
    code, output = await says(container, "bash", "-c", command, user=user)
    assert code == 0, output
    return output.strip()


async def until(condition: Callable[[], Awaitable[bool]], seconds: float) -> float:
    """Wait until something is so; the seconds it took.

    Raises:
        AssertionError: it did not come about in time.
    """
    start = time.monotonic()
    while not await condition():
        assert time.monotonic() - start < seconds, "it did not come about in time"
        await asyncio.sleep(0.1)
    return time.monotonic() - start


async def exists(engine: Engine, container_id: str) -> bool:
    found = await engine.call(engine.api.containers, all=True, quiet=True)
    return container_id in {each["Id"] for each in found}


def bind(source: object, target: str, *, writable: bool = False) -> Mount:
    return Mount(source, PurePosixPath(target), "bind", writable)  # type: ignore[arg-type]  # a path, as text too
