"""Commands and files in a container against ``docker exec``, ``docker cp`` and the local executor.

Run: ``python -m tests.benchmarks.bench_docker``; needs an engine, and gives no rows without one. The goals: a
call takes 5 ms more than a local one at most, and is 10 times as fast as ``docker exec``; a start takes 1 s.
The peers work in a plain container of the same image, which has none of our limits.

inspect_ai's sandbox takes part where it is installed and ``docker compose`` answers. It is asked for its
environment directly, because its own check of the engine's version refuses engines that it can work with.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import io
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import docker
import docker.models.containers

from conjure_jupyter.engine import engine as background
from conjure_jupyter.executors import ExecutionContext, Executor, LocalExecutor
from conjure_jupyter.executors.docker import DockerExecutor, DockerOptions
from tests.executors.docker import images
from tests.executors.docker.engine import NoEngineError
from tests.executors.docker.engine import engine as docker_engine

CALLS, FILES, STARTS, CROWDS = 25, 10, 7, 9
AT_ONCE = 8
SIZE = 1_000_000
#: Seconds after each call, in which what it left to be done in the background is done.
PAUSE = 0.2
GOAL_MORE_MS, GOAL_TIMES, GOAL_START_MS = 5.0, 10.0, 1000.0

LOCAL, OURS, SHELLS = "conjure, local", "conjure, container", "conjure, container without Python"
COMMAND, SDK, INSPECT = "docker command", "docker SDK", "inspect_ai"
TRUE = ["bash", "-c", "true"]

Call = Callable[[], Awaitable[None]]
#: A call that gives the seconds it took.
Work = Callable[[], Awaitable[float]]

#: The first start of a process imports the SDK, looks for what others left, and asks what the engine sees.
_COLD = """
import sys, tempfile, time
from pathlib import Path
from conjure_jupyter.engine import engine
from conjure_jupyter.executors import ExecutionContext
began = time.perf_counter()
from conjure_jupyter.executors.docker import DockerExecutor, DockerOptions
executor = DockerExecutor(DockerOptions(image=sys.argv[2]), address=sys.argv[1])
with tempfile.TemporaryDirectory() as folder:
    context = engine().run(executor.start(ExecutionContext(working_directory=Path(folder))))
    assert engine().run(executor.run("true", context)).exit_code == 0
    print(time.perf_counter() - began)
    engine().run(executor.close())
"""


def rows() -> list[dict[str, Any]]:
    """One row a measure and subject: medians in milliseconds of calls made in turn."""
    with contextlib.suppress(NoEngineError), docker_engine() as address:
        return _rows(address)
    return []


def _rows(address: str) -> list[dict[str, Any]]:
    # The command, the SDK and inspect_ai all find the engine by the variable.
    with mock.patch.dict(os.environ, DOCKER_HOST=address), tempfile.TemporaryDirectory() as folder:
        names = images.base(address), images.bare(address)
        return background().run(_Bench(address, *names, Path(folder)).rows())


class _Bench:
    """All subjects, on one engine."""

    def __init__(self, address: str, image: str, bare: str, folder: Path) -> None:
        self._address = address
        self._image = image
        self._bare = bare
        self._folder = folder
        self._inspect: Any = None

    async def rows(self) -> list[dict[str, Any]]:
        found = []
        trouble = await asyncio.to_thread(_trouble)
        if trouble is None:
            self._inspect = importlib.import_module("inspect_ai.util._sandbox.docker.docker")
        else:
            found.append(_row("all", INSPECT, None, trouble))
        async with contextlib.AsyncExitStack() as stack:
            executors = {
                LOCAL: await stack.enter_async_context(self._opened(LocalExecutor())),
                OURS: await stack.enter_async_context(self._opened(self._docker(self._image))),
                SHELLS: await stack.enter_async_context(self._opened(self._docker(self._bare))),
            }
            plain = await stack.enter_async_context(self._plain())
            box = await stack.enter_async_context(self._box()) if self._inspect else None
            calls = self._calls(executors, plain, box)
            timed = {name: _timed(call) for name, call in calls.items()}
            found += _call_rows("one call", await _in_turn(timed, CALLS), more=True)
            crowds = {name: _timed(_crowd(call)) for name, call in calls.items()}
            found += _call_rows(f"{AT_ONCE} calls at once", await _in_turn(crowds, CROWDS))
            writes, reads = self._files(executors, plain, box)
            found += _call_rows("write 1 MB", await _in_turn(writes, FILES))
            found += _call_rows("read 1 MB", await _in_turn(reads, FILES))
        return [*found, *await self._starts()]

    def _docker(self, image: str) -> DockerExecutor:
        return DockerExecutor(DockerOptions(image=image), address=self._address)

    @contextlib.asynccontextmanager
    async def _opened(self, executor: Executor) -> AsyncIterator[tuple[Executor, ExecutionContext]]:
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        try:
            yield executor, await executor.start(ExecutionContext(working_directory=folder))
        finally:
            await executor.close()

    @contextlib.asynccontextmanager
    async def _plain(self) -> AsyncIterator[docker.models.containers.Container]:
        client = await asyncio.to_thread(docker.from_env)
        made = await asyncio.to_thread(
            client.containers.run, self._image, ["sleep", "3600"], detach=True, init=True, network_mode="none"
        )
        try:
            yield made
        finally:
            await asyncio.to_thread(made.remove, force=True)
            client.close()

    @contextlib.asynccontextmanager
    async def _box(self) -> AsyncIterator[Any]:
        """A container of inspect_ai, as it makes one for a sample."""
        compose = Path(tempfile.mkdtemp(dir=self._folder)) / "compose.yaml"
        compose.write_text(
            f"services:\n  default:\n    image: {self._image}\n    command: tail -f /dev/null\n"
            "    init: true\n    network_mode: none\n"
        )
        maker = self._inspect.DockerSandboxEnvironment
        made = await maker.sample_init("bench", str(compose), {})
        try:
            yield made["default"]
        finally:
            await maker.sample_cleanup("bench", str(compose), made, interrupted=False)

    def _calls(
        self,
        executors: dict[str, tuple[Executor, ExecutionContext]],
        plain: docker.models.containers.Container,
        box: Any,
    ) -> dict[str, Call]:
        async def by_executor(executor: Executor, context: ExecutionContext) -> None:
            assert (await executor.run("true", context)).exit_code == 0

        async def by_command() -> None:
            await asyncio.to_thread(_command, "exec", plain.id, *TRUE)

        async def by_sdk() -> None:
            assert (await asyncio.to_thread(plain.exec_run, TRUE)).exit_code == 0

        async def by_inspect() -> None:
            assert (await box.exec(TRUE)).success

        calls: dict[str, Call] = {name: partial(by_executor, *pair) for name, pair in executors.items()}
        calls |= {COMMAND: by_command, SDK: by_sdk}
        return calls | ({INSPECT: by_inspect} if box is not None else {})

    def _files(
        self,
        executors: dict[str, tuple[Executor, ExecutionContext]],
        plain: docker.models.containers.Container,
        box: Any,
    ) -> tuple[dict[str, Work], dict[str, Work]]:
        data = os.urandom(SIZE)
        here, back = self._folder / "data", self._folder / "back"
        here.write_bytes(data)

        async def write(executor: Executor, context: ExecutionContext) -> None:
            await executor.write("data", data, context)

        async def read(executor: Executor, context: ExecutionContext) -> None:
            assert await executor.read("data", context) == data

        async def write_by_command() -> None:
            await asyncio.to_thread(_command, "cp", str(here), f"{plain.id}:/tmp/data")

        async def read_by_command() -> None:
            await asyncio.to_thread(_command, "cp", f"{plain.id}:/tmp/data", str(back))
            assert back.stat().st_size == SIZE

        async def write_by_sdk() -> None:
            assert await asyncio.to_thread(lambda: plain.put_archive("/tmp", _packed("data", data)))

        async def read_by_sdk() -> None:
            pieces = await asyncio.to_thread(lambda: b"".join(plain.get_archive("/tmp/data")[0]))
            assert _unpacked(pieces) == data

        async def write_by_inspect() -> None:
            await box.write_file("/tmp/data", data)

        async def read_by_inspect() -> None:
            assert await box.read_file("/tmp/data", text=False) == data

        writes = {name: _timed(partial(write, *pair)) for name, pair in executors.items()}
        reads = {name: _timed(partial(read, *pair)) for name, pair in executors.items()}
        writes |= {COMMAND: _timed(write_by_command), SDK: _timed(write_by_sdk)}
        reads |= {COMMAND: _timed(read_by_command), SDK: _timed(read_by_sdk)}
        if box is not None:
            writes[INSPECT], reads[INSPECT] = _timed(write_by_inspect), _timed(read_by_inspect)
        return writes, reads

    async def _starts(self) -> list[dict[str, Any]]:
        """From nothing to the first answer; what ends it again is not counted."""

        async def ours(image: str) -> float:
            began = time.perf_counter()
            async with self._opened(self._docker(image)) as (executor, context):
                assert (await executor.run("true", context)).exit_code == 0
                return time.perf_counter() - began

        async def cold() -> float:
            command = [sys.executable, "-c", _COLD, self._address, self._image]
            done = await asyncio.to_thread(subprocess.run, command, check=True, stdout=subprocess.PIPE)
            return float(done.stdout)

        async def by_command() -> None:
            await asyncio.to_thread(_command, "run", "--rm", "--network", "none", self._image, *TRUE)

        async def by_inspect() -> float:
            began = time.perf_counter()
            async with self._box() as box:
                assert (await box.exec(TRUE)).success
                return time.perf_counter() - began

        first = f"{OURS}, first of a process"
        works: dict[str, Work] = {
            OURS: partial(ours, self._image),
            first: cold,
            SHELLS: partial(ours, self._bare),
            f"{COMMAND} run --rm": _timed(by_command),
            **({INSPECT: by_inspect} if self._inspect else {}),
        }
        medians = await _in_turn(works, STARTS)
        peer = medians[f"{COMMAND} run --rm"]
        return [
            _row(
                "start",
                name,
                median,
                f"{peer / median:.1f} times as fast as run, goal {GOAL_START_MS:.0f} ms"
                if name.startswith("conjure")
                else "peer",
            )
            for name, median in medians.items()
        ]


def _trouble() -> str | None:
    """Why inspect_ai cannot take part, in one line; None when it can."""
    try:
        importlib.import_module("inspect_ai")
    except ImportError:
        return "not installed"
    asked = subprocess.run(["docker", "compose", "version", "--short"], capture_output=True, check=False)
    return None if asked.returncode == 0 else "needs docker compose, which is not here"


def _command(*words: str) -> None:
    subprocess.run(["docker", *words], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)


def _packed(name: str, data: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
    return packed.getvalue()


def _unpacked(pieces: bytes) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(pieces)) as archive:
        member = archive.extractfile(archive.getmembers()[0])
        assert member is not None
        return member.read()


def _timed(work: Call) -> Work:
    async def timed() -> float:
        began = time.perf_counter()
        await work()
        return time.perf_counter() - began

    return timed


def _crowd(call: Call) -> Call:
    async def crowd() -> None:
        await asyncio.gather(*(call() for _ in range(AT_ONCE)))

    return crowd


async def _in_turn(works: dict[str, Work], repeats: int) -> dict[str, float]:
    """The median of each in milliseconds, by rounds in alternating order; the first does not count."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for number in range(repeats + 1):
        for name in [*works] if number % 2 else [*reversed(works)]:
            took = await works[name]()
            if number:
                times[name].append(took)
            await asyncio.sleep(PAUSE)
    return {name: statistics.median(each) * 1000 for name, each in times.items()}


def _call_rows(metric: str, medians: dict[str, float], *, more: bool = False) -> list[dict[str, Any]]:
    found = []
    for name, median in medians.items():
        note = "no container" if name == LOCAL else "peer"
        if name in (OURS, SHELLS):
            times = ", ".join(f"{medians[peer] / median:.1f}" for peer in (COMMAND, SDK))
            note = f"{times} times as fast as command and SDK"
            if more:
                note += f", goal {GOAL_TIMES:.0f}; local {median - medians[LOCAL]:+.1f} ms"
                note += f", goal {GOAL_MORE_MS:.0f} ms"
        found.append(_row(metric, name, median, note))
    return found


def _row(metric: str, subject: str, median: float | None, note: str) -> dict[str, Any]:
    return {
        "bench": "docker call",
        "subject": subject,
        "metric": metric,
        "median_ms": median,
        "note": note,
    }


def main() -> None:
    """Print the table."""
    for row in rows():
        figure = "" if row["median_ms"] is None else f"{row['median_ms']:9.2f} ms"
        print(f"{row['metric']:18} {row['subject']:38} {figure:>12}  {row['note']}")


if __name__ == "__main__":
    main()
