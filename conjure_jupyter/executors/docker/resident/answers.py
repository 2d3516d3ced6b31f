"""What the resident does for each call, with the same code for commands and files as on the kernel's machine.

Runs in the container: standard library only.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from ....errors import ExecutorError, PathNotFoundError, PermissionDeniedError, ToolError
from ....paths import read_fd
from ...calls import Command
from ...commands import Commands
from ...contract import CommandResult, ExecutionContext, Stat
from ...files import Files
from .frames import CHUNK
from .limits import Limits, out_of_disk
from .outbox import Outbox
from .surroundings import Surroundings, which

T = TypeVar("T")

#: Threads for files; made at the start, because later a command may have taken all processes there can be.
THREADS = 4
#: Bytes of a file that are read at once.
BATCH = 1 << 20


class Answers:
    """Answers calls.

    Args:
        outbox: takes the answers.
        surroundings: the environment of commands.
    """

    def __init__(self, outbox: Outbox, surroundings: Surroundings) -> None:
        self._outbox = outbox
        self._surroundings = surroundings
        self._limits = Limits()
        # Where memory runs out, it is to be the commands that are ended for it, not what watches them.
        self._commands = Commands("reaper", expendable=True)
        self._pool = _threads()
        # What cleans up after commands uses the loop's own threads.
        asyncio.get_running_loop().set_default_executor(self._pool)
        self._does: dict[str, Callable[[int, dict[str, Any], bytes], Awaitable[None]]] = {
            "run": self._run,
            "read": self._read,
            "write": self._write,
            "list": self._list,
            "stat": self._stat,
            "delete": self._delete,
        }

    async def start(self) -> None:
        """Get ready for the first command.

        Raises:
            ExecutorError: the processes that watch commands cannot be started.
        """
        await self._commands.start()

    async def close(self) -> None:
        """End all commands. Never raises."""
        await self._commands.close()

    async def answer(self, call: int, header: dict[str, Any], data: bytes) -> None:
        """Do what a call asks and say how it went.

        Args:
            call: its number.
            header: what is asked for; made by this package's own link.
            data: the command, or what is to be written.
        """
        try:
            await self._does[header["op"]](call, header, data)
        except PathNotFoundError as error:
            self._fail(call, "missing", error.reason)
        except PermissionDeniedError as error:
            self._fail(call, "denied", error.reason)
        except ToolError as error:
            self._fail(call, "tool", error.message)
        except ExecutorError as error:
            self._fail(call, "executor", error.message)
        except Exception as error:  # noqa: BLE001  one call's fault, as want of memory, is not the others'
            self._fail(call, "executor", f"{type(error).__name__}: {error}")

    def _fail(self, call: int, kind: str, words: str) -> None:
        self._outbox.post({"id": call, "fail": kind, "words": words[:2000]})

    def _done(self, call: int, facts: dict[str, Any], data: bytes | memoryview = b"") -> None:
        self._outbox.post({"id": call, "done": facts}, data)

    async def _send(self, call: int, data: bytes) -> memoryview:
        """Send data but for its last frame's worth, which is left to go with the answer."""
        view = memoryview(data)
        while len(view) > CHUNK:
            await self._outbox.send({"id": call, "data": True}, view[:CHUNK])
            view = view[CHUNK:]
        return view

    async def _run(self, call: int, header: dict[str, Any], data: bytes) -> None:
        environment = self._surroundings.of(header["environment"])
        bash = which("bash", environment["PATH"])
        if bash is None:
            raise ExecutorError("bash was not found on PATH; commands need it")
        command = Command(
            text=data.decode("utf-8", "surrogateescape"),
            bash=bash,
            cwd=header["cwd"],
            environment=environment,
            timeout=header["timeout"],
            output_limit=header["output_limit"],
        )
        watch = self._limits.begin()
        try:
            result = await self._commands.run(command, self._heard(call) if header["listen"] else None)
        except ExecutorError as error:
            raise ExecutorError(". ".join([error.message, *self._limits.end(watch, None)])) from error
        except BaseException:
            self._limits.end(watch, None)
            raise
        notes = self._limits.end(watch, result.exit_code)
        notes += out_of_disk(result.output, self._written(command.cwd, environment))
        rest = await self._send(call, result.output)
        self._done(call, {**_facts(result), "notes": notes}, rest)

    def _heard(self, call: int) -> Callable[[bytes], None]:
        def heard(data: bytes) -> None:
            # Not ``send``: a command's output is bounded by its limit, and this must not wait.
            for start in range(0, len(data), CHUNK):
                self._outbox.post({"id": call, "out": True}, data[start : start + CHUNK])

        return heard

    def _written(self, cwd: str, environment: Mapping[str, str]) -> list[str]:
        """Folders that a command may have filled, those it was told of first."""
        temporary = environment.get("TMPDIR", "/tmp")  # noqa: S108
        return [cwd, temporary, environment.get("HOME", self._surroundings.home)]

    async def _read(self, call: int, header: dict[str, Any], _: bytes) -> None:
        reading = _Reading(_files(header), header["path"], header["offset"])
        left: int | None = header["limit"]
        try:
            while True:
                size = BATCH if left is None else min(BATCH, left)
                piece = await self._blocking(reading.next, size)
                rest = await self._send(call, piece)
                left = None if left is None else left - len(piece)
                if len(piece) < size or left == 0:
                    self._done(call, {}, rest)
                    return
                await self._outbox.send({"id": call, "data": True}, rest)
        finally:
            reading.close()

    async def _write(self, call: int, header: dict[str, Any], data: bytes) -> None:
        await self._blocking(_files(header).write, header["path"], data, header["mode"])
        self._done(call, {})

    async def _list(self, call: int, header: dict[str, Any], _: bytes) -> None:
        found = await self._blocking(_files(header).list, header["path"], header["depth"], header["limit"])
        rows: list[str] = []
        size = 0
        for entry in found:
            row = json.dumps(_row(entry))
            rows.append(row)
            size += len(row)
            if size >= CHUNK:
                await self._outbox.send({"id": call, "data": True}, f"[{','.join(rows)}]".encode())
                rows, size = [], 0
        self._done(call, {}, f"[{','.join(rows)}]".encode())

    async def _stat(self, call: int, header: dict[str, Any], _: bytes) -> None:
        self._done(call, {"stat": _row(await self._blocking(_files(header).stat, header["path"]))})

    async def _delete(self, call: int, header: dict[str, Any], _: bytes) -> None:
        await self._blocking(_files(header).delete, header["path"])
        self._done(call, {})

    async def _blocking(self, work: Callable[..., T], *arguments: Any) -> T:
        """Do it in a thread; a caller that is cancelled waits for it, to hold what it opened."""
        future = asyncio.get_running_loop().run_in_executor(self._pool, work, *arguments)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            await asyncio.wait([future])
            raise


class _Reading:
    """A file that is read in pieces; the same file to its end, whatever takes its name meanwhile."""

    def __init__(self, files: Files, path: str, offset: int) -> None:
        self._files = files
        self._path = path
        self._offset = offset
        self._fd = -1

    def next(self, size: int) -> bytes:
        """The next piece; shorter than ``size`` at the end."""
        if self._fd < 0:
            self._fd = self._files.open(self._path)
        piece = read_fd(os.dup(self._fd), self._path, offset=self._offset, limit=size)
        self._offset += len(piece)
        return piece

    def close(self) -> None:
        """Let go of the file."""
        if self._fd >= 0:
            os.close(self._fd)


def _threads() -> ThreadPoolExecutor:
    pool = ThreadPoolExecutor(THREADS)
    together = threading.Barrier(THREADS)
    for _ in range(THREADS):
        pool.submit(together.wait)
    return pool


def _files(header: dict[str, Any]) -> Files:
    folders = header["folders"]
    return Files(
        ExecutionContext(
            working_directory=Path(folders["cwd"]),
            skills_root=None if folders["skills"] is None else Path(folders["skills"]),
            allowed_paths=tuple(map(Path, folders["allowed"])),
            writable_paths=tuple(map(Path, folders["writable"])),
            read_only_paths=tuple(map(Path, folders["read_only"])),
        )
    )


def _row(entry: Stat) -> list[Any]:
    return [entry.path, entry.kind, entry.size, entry.mtime_ns, entry.mode]


def _facts(result: CommandResult) -> dict[str, Any]:
    return {
        "exit_code": result.exit_code,
        "timed_out": result.timed_out,
        "duration": result.duration,
        "total_bytes": result.total_bytes,
        "truncated_bytes": result.truncated_bytes,
        "leftovers": result.leftovers,
    }
