"""Whether an engine sees this machine's files, so that mounting them means anything."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import tempfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from ....errors import ContainerError, ToolError
from ...contract import ExecutionContext
from ..link import Link
from ..mounts import Mount

if TYPE_CHECKING:
    from ..connection import Engine

#: Where the container has the probe.
_TARGET = PurePosixPath("/mnt/conjure-probe")
_NAME = "token"

#: What was found of engines by this process, by their ids.
_known: dict[str, bool] = {}


class Probe:
    """A folder with a file that nobody else has; when the container shows it, the engine sees our files.

    Args:
        folder: where to make it: among what is to be mounted, since an engine may see some folders only. The
            folder for temporary files when None.

    Attributes:
        mount: what to mount besides.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix=".conjure-probe-", dir=folder))
        self._token = secrets.token_hex(16).encode()
        # Readable for whoever tools run as; it is no secret.
        (self._folder / _NAME).write_bytes(self._token)
        (self._folder / _NAME).chmod(0o644)
        self._folder.chmod(0o755)
        self.mount = Mount(self._folder, _TARGET)

    @staticmethod
    def known(engine: Engine) -> bool | None:
        """What is known of an engine without a look; None when nothing is."""
        return False if engine.remote else _known.get(engine.id)

    async def check(self, engine: Engine, link: Link, context: ExecutionContext) -> bool:
        """Whether a container that has ``mount`` shows the file.

        Args:
            link: into that container.
            context: the container's.

        Raises:
            LinkLostError: the container is gone.
        """
        context = context.with_(allowed_paths=(*context.allowed_paths, Path(_TARGET)))
        try:
            found = await link.read(str(_TARGET / _NAME), context, offset=0, limit=len(self._token) + 1)
        except ToolError:
            found = b""
        _known[engine.id] = found == self._token
        return _known[engine.id]

    async def look(self, engine: Engine, image: str, labels: dict[str, str]) -> bool:
        """The same by a container that is made for it and never started.

        Raises:
            ExecutorError: the engine refuses, or is gone.
        """
        from docker.types import Mount as EngineMount

        api = engine.api
        mounts = [EngineMount(str(_TARGET), str(self._folder), type="bind", read_only=True)]
        config = api.create_host_config(mounts=mounts, network_mode="none")
        made = None
        try:
            made = await engine.call(
                api.create_container, image, entrypoint=["true"], host_config=config, labels=labels
            )
            _known[engine.id] = self._token in await engine.call(_token, api, made["Id"])
        except ContainerError as error:
            if made is None and not no_such_source(error):
                raise
            _known[engine.id] = False
        finally:
            if made is not None:
                await engine.call(api.remove_container, made["Id"], force=True)
        return _known[engine.id]

    def close(self) -> None:
        """Remove the folder. Never raises."""
        with contextlib.suppress(OSError):
            shutil.rmtree(self._folder)


def _token(api: Any, container: str) -> bytes:
    """What a container shows at the probe's place, as the engine's archive. Blocks."""
    found = b""
    for piece in api.get_archive(container, str(_TARGET / _NAME))[0]:
        found += piece
        if len(found) > 1 << 16:
            break
    return found


def no_such_source(error: Exception) -> bool:
    """Whether an engine says that what was to be mounted is not there, in Docker's or Podman's words."""
    text = str(error).lower()
    return ("bind source path does not exist" in text) or (
        "no such file or directory" in text and ("statfs" in text or "stat " in text or "mount" in text)
    )
