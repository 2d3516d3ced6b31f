"""Rendering in a process of its own: bounded, ended when nobody waits for it, never trusted."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Coroutine
from typing import Any, TypeVar

from ..engine import outlast
from ..errors import ToolError
from . import limits
from .contract import Fetch, Job, Rendering
from .wire import WireError, encode, read

T = TypeVar("T")

logger = logging.getLogger(__name__)

_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from conjure_jupyter.rendering.child import main; main()"
)
#: Fonts and libraries are found through these; nothing else of the kernel's environment is handed on.
_NEEDED = (
    *("HOME", "PATH", "LANG", "LC_ALL", "LC_CTYPE", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"),
    *("FONTCONFIG_FILE", "FONTCONFIG_PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"),
    *("DYLD_FALLBACK_LIBRARY_PATH", "CONDA_PREFIX"),
)


async def render(job: Job, fetch: Fetch, *, seconds: float = limits.SECONDS) -> Rendering:
    """Render a document in a child process.

    Args:
        job: the document and what to make of it.
        fetch: gives what the document refers to.
        seconds: the time it may take.

    Raises:
        ToolError: it cannot be rendered; the message says why.
        asyncio.CancelledError: the caller was cancelled; the process is gone.
    """
    if not sys.executable:
        raise ToolError("rendering needs sys.executable, which this Python does not know")
    folder = await asyncio.to_thread(tempfile.mkdtemp, prefix="conjure-render-")
    try:
        return await _render(job, fetch, seconds, folder)
    finally:
        await _to_its_end(asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True))


async def _render(job: Job, fetch: Fetch, seconds: float, folder: str) -> Rendering:
    child, connection = _spawn(folder)
    writer = None
    try:
        reader, writer = await asyncio.open_connection(sock=connection)
        async with asyncio.timeout(seconds):
            return await _talk(job, fetch, reader, writer, seconds)
    except TimeoutError:
        text = f"rendering took more than {seconds:g} s and was ended; make the document smaller"
        raise ToolError(text) from None
    except (asyncio.IncompleteReadError, ConnectionError):
        raise ToolError(_sudden_end(await _to_its_end(child.end(patience=1.0)))) from None
    except WireError:
        logger.exception("the process that renders sent what is no message")
        raise ToolError("rendering failed inside; try a simpler document") from None
    finally:
        await _to_its_end(child.end())
        if writer is None:
            connection.close()
        else:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


class _Child:
    """The process that renders, the leader of a session of its own."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._status: int | None = None

    async def end(self, *, patience: float = 0.0) -> int:
        """End the process with its session; its exit status, negative for a signal.

        Args:
            patience: seconds it gets to end by itself.
        """
        until = asyncio.get_running_loop().time() + patience
        while self._status is None and asyncio.get_running_loop().time() < until:
            done, status = os.waitpid(self.pid, os.WNOHANG)  # noqa: ASYNC222  it does not wait
            if done:
                self._status = os.waitstatus_to_exitcode(status)
            else:
                await asyncio.sleep(0.02)
        if self._status is None:
            # Nobody has waited for it yet, so that its number is still its own.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            _, status = await asyncio.to_thread(os.waitpid, self.pid, 0)
            self._status = os.waitstatus_to_exitcode(status)
        return self._status


def _spawn(folder: str) -> tuple[_Child, socket.socket]:
    ours, theirs = socket.socketpair()
    modules = json.dumps([os.path.abspath(entry) for entry in sys.path if entry])  # noqa: PTH100  as sys.path has it
    arguments = [sys.executable, "-P", "-c", _BOOT, modules]
    environment = {name: os.environ[name] for name in _NEEDED if name in os.environ}
    # The same document gives the same bytes only when sets have the same order.
    environment |= {"TMPDIR": folder, "PYTHONHASHSEED": "0", "PYTHONNOUSERSITE": "1"}
    actions: list[tuple[Any, ...]] = [
        (os.POSIX_SPAWN_DUP2, theirs.fileno(), 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    try:
        with theirs:
            # A session of its own, so that it can be ended with all that belongs to it.
            pid = os.posix_spawn(sys.executable, arguments, environment, file_actions=actions, setsid=True)
    except OSError as error:
        ours.close()
        raise ToolError(f"the process that renders cannot be started: {error}") from error
    ours.setblocking(False)
    return _Child(pid), ours


async def _talk(
    job: Job, fetch: Fetch, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float
) -> Rendering:
    await _send(writer, _header(job, seconds), job.text.encode("utf-8", "replace"))
    files: list[bytes] = []
    room, asks = limits.OUTPUT, limits.RESOURCES
    while True:
        header, body = await read(reader, room)
        room -= len(body)
        match header.get("op"):
            case "fetch" if asks:
                asks -= 1
                await _answer(writer, fetch, str(header.get("url")))
            case "file" if len(files) < limits.PNG_PAGES:
                files.append(body)
            case "done" if files:
                notices = [str(notice) for notice in header.get("notices", [])]
                return Rendering(files, int(header.get("pages", 1)), notices)
            case "failed":
                raise ToolError(f"this cannot be rendered: {header.get('reason')}")
            case "broken":
                logger.error("rendering failed:\n%s", header.get("trace"))
                raise ToolError("rendering failed inside; try a simpler document")
            case other:
                raise WireError(f"an operation {other!r}")


def _header(job: Job, seconds: float) -> dict[str, Any]:
    return {
        "format": job.format,
        "target": job.target,
        "folder": job.folder,
        "title": job.title,
        "page": None if job.page is None else [job.page.width, job.page.height],
        "sources": {
            number: [source.title, source.detail, source.url, source.is_file]
            for number, source in job.sources.items()
        },
        "seconds": seconds,
    }


async def _answer(writer: asyncio.StreamWriter, fetch: Fetch, url: str) -> None:
    try:
        data = await fetch(url)
    except ToolError as error:
        await _send(writer, {"found": False, "reason": str(error)})
    else:
        await _send(writer, {"found": True}, data)


async def _send(writer: asyncio.StreamWriter, header: dict[str, Any], body: bytes = b"") -> None:
    writer.write(encode(header, body))
    await writer.drain()


def _sudden_end(status: int) -> str:
    if -status in (signal.SIGXCPU, signal.SIGALRM):
        return "rendering took too long and was ended; make the document smaller"
    if -status == signal.SIGKILL:
        return (
            "the process that renders was killed, most likely for want of memory; make the document smaller"
        )
    return f"the process that renders ended by itself (status {status}); try a simpler document"


async def _to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Await ``work`` to its end, also when the caller is cancelled meanwhile, which it is told then."""
    task = asyncio.ensure_future(work)
    if await outlast(task):
        raise asyncio.CancelledError
    return task.result()
