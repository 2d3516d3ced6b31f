"""A build that runs on an engine: its lines as they come, its failure, and its end on cancelling."""

from __future__ import annotations

import asyncio
import contextlib
import io
import re
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

from ...engine import outlast
from ...errors import ContainerError, DockerImageError
from .advice import advice
from .connection import Engine

#: Lines of a failed step that its error repeats.
TAIL = 12
#: Scripts of the image begin a line with it that the user should see once more at the end.
NOTICE = "notice: "

_STEP = re.compile(r"step ([0-9]+)/([0-9]+) ?: (.*)", re.IGNORECASE)
_SUCCESS = ("Successfully built ", "Successfully tagged ")
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|[@-Z\\-_])|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Build:
    """One build.

    Args:
        tag: the name the image gets.
        on_line: hears every line, without control characters; on the event loop.
        secrets: texts that no line may show.
    """

    def __init__(self, tag: str, on_line: Callable[[str], None], secrets: tuple[str, ...] = ()) -> None:
        self.notices: list[str] = []
        self._tag = tag
        self._on_line = on_line
        self._secrets = secrets
        self._last: deque[str] = deque(maxlen=TAIL)
        self._step = ""
        self._rest = ""
        self._made = False
        self._stopped = threading.Event()
        self._response: Any = None

    async def run(self, engine: Engine, context: bytes, options: Mapping[str, Any]) -> str:
        """Build, and wait for it; cancelled, the engine ends it too.

        Args:
            context: the archive that the engine builds from.
            options: more arguments of the SDK's ``build``.

        Returns:
            The image's id.

        Raises:
            DockerImageError: a step failed.
            DockerUnavailableError: the engine does not answer any more.
        """
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(engine.call(self._read, engine.api, context, options, loop))
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            self._stop()
            await outlast(task)
            if not task.cancelled():
                task.exception()  # marks it as seen: that the connection broke is our doing
            raise
        except ContainerError as error:
            self._fail(str(error))
        if not self._made:  # else an older image of this name would pass for it
            self._fail("The engine ended the build without an image.")
        made = await engine.call(engine.api.inspect_image, self._tag)
        return str(made["Id"])

    def _read(
        self, api: Any, context: bytes, options: Mapping[str, Any], loop: asyncio.AbstractEventLoop
    ) -> None:
        """Follow the build to its end. Blocks.

        Raises:
            DockerImageError: a step failed.
        """
        with self._response_kept(api):
            for piece in api.build(
                fileobj=io.BytesIO(context),
                custom_context=True,
                tag=self._tag,
                decode=True,
                rm=True,
                forcerm=True,
                use_config_proxy=True,
                **options,
            ):
                if self._stopped.is_set():
                    return
                self._made = self._made or "ID" in (piece.get("aux") or ())
                for line in self._lines(piece):
                    self._made = self._made or line.startswith(_SUCCESS)
                    loop.call_soon_threadsafe(self._on_line, line)
                if "error" in piece:
                    self._fail(str(piece["error"]))

    @contextlib.contextmanager
    def _response_kept(self, api: Any) -> Iterator[None]:
        """Keep hold of the SDK's response, whose connection is the only way to end a build."""
        thread = threading.get_ident()

        def keep(response: Any, **_named: Any) -> None:
            if threading.get_ident() == thread:
                self._response = response

        hooks = api.hooks["response"]
        hooks.append(keep)
        try:
            yield
        finally:
            hooks.remove(keep)
            if self._response is not None:
                self._response.close()

    def _stop(self) -> None:
        """End the connection under the thread that reads it: the engine then ends the build.

        Where the connection cannot be taken hold of, the thread lets go of it at the next line.
        """
        self._stopped.set()
        connection = getattr(getattr(self._response, "raw", None), "connection", None)
        if (sock := getattr(connection, "sock", None)) is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _lines(self, piece: Mapping[str, Any]) -> Iterator[str]:
        """The whole lines that a piece of the engine's answer ends."""
        if "stream" in piece:
            text = self._rest + str(piece["stream"])
        elif "status" in piece and not piece.get(
            "progressDetail"
        ):  # a pull; its many percentages are left out
            text = f"{piece['id']}: {piece['status']}\n" if piece.get("id") else f"{piece['status']}\n"
        else:
            text = self._rest + "\n" if self._rest and "error" in piece else self._rest
        *whole, self._rest = re.split(r"[\r\n]", text)
        for each in whole:
            line = self._shown(each)
            if not line:
                continue
            if step := _STEP.fullmatch(line):
                self._step = f"step {step[1]} of {step[2]} ({_short(step[3])})"
                self._last.clear()
            else:
                self._last.append(line)
            if line.startswith(NOTICE):
                self.notices.append(line.removeprefix(NOTICE))
            yield line

    def _shown(self, text: str) -> str:
        line = _ESCAPES.sub("", text).rstrip()
        for secret in self._secrets:
            line = line.replace(secret, "***")
        return line

    def _fail(self, reason: str) -> NoReturn:
        """What failed, its last lines, and what to do."""
        reason = " ".join(self._shown(line) for line in reason.splitlines()).strip()
        said = "\n".join([*self._last, reason])
        where = f"{self._step} failed" if self._step else "the engine refused"
        shown = "".join(f"\n    {line}" for line in [*self._last, reason] if line)
        raise DockerImageError(self._tag, f"could not be built, {where}: {advice(said)}{shown}") from None


def _short(text: str, most: int = 100) -> str:
    return text if len(text) <= most else f"{text[:most]}…"
