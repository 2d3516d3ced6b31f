"""The volumes of a session on the engine, and the archives that go in and out of them.

They go through a container that has all volumes mounted and never runs tools, so that the session's own
container can have some of them read-only.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ....engine import outlast
from ....errors import ContainerError, ExecutorError
from ..owner import KIND
from .sending import archive_of

if TYPE_CHECKING:
    from ..connection import Engine

T = TypeVar("T")

#: Where the helper has the volumes, each in a folder of its own.
INNER = "/conjure"
#: What the helper does when it is started: remove what a list names.
_REMOVE = f"while IFS= read -r -d '' path; do rm -rf -- \"$path\"; done < {INNER}/removed"


class Store:
    """Made by ``create``; all of it is removed by ``close``."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._helper: str | None = None
        self._volumes: list[str] = []

    @classmethod
    async def create(
        cls, engine: Engine, volumes: Mapping[str, str], *, name: str, image: str, labels: Mapping[str, str]
    ) -> Store:
        """Make the volumes, empty, and the helper.

        Args:
            volumes: their names, by where the helper has them.
            name: of the helper.
            image: has bash and ``rm``.
            labels: of all that is made.

        Raises:
            ExecutorError: the engine refuses, or is gone.
        """
        store = cls(engine)
        try:
            for volume in volumes.values():
                kind = {**labels, KIND: "volume"}
                await engine.call(engine.api.create_volume, volume, labels=kind)
                store._volumes.append(volume)
            await store._make_helper(volumes, name, image, {**labels, KIND: "helper"})
        except BaseException:
            await store.close(keep=False)
            raise
        return store

    async def _make_helper(
        self, volumes: Mapping[str, str], name: str, image: str, labels: Mapping[str, str]
    ) -> None:
        from docker.types import Mount

        api = self._engine.api
        # Root without its other rights: it removes what belongs to the tools' user, in whatever folder.
        config = api.create_host_config(
            mounts=[
                Mount(f"{INNER}/{inner}", volume, type="volume", no_copy=True)
                for inner, volume in volumes.items()
            ],
            network_mode="none",
            cap_drop=["ALL"],
            cap_add=["DAC_OVERRIDE", "FOWNER"],
            security_opt=["no-new-privileges"],
        )
        answer = await self._engine.call(
            api.create_container,
            image,
            entrypoint=["bash", "-c", _REMOVE],
            command=[],
            user="0:0",
            working_dir="/",
            name=name,
            host_config=config,
            labels=labels,
        )
        self._helper = str(answer["Id"])

    async def put(self, pieces: Iterable[bytes], stop: threading.Event) -> None:
        """Unpack an archive over the volumes; its names begin with where the helper has them.

        Args:
            stop: set when the caller is cancelled, and then waited for: the archive must end.

        Raises:
            ExecutorError: the engine refuses, or is gone; a part may have been unpacked.
        """
        work = self._engine.call(self._engine.api.put_archive, self._there, INNER, iter(pieces))
        await _to_its_end(work, stop)

    async def get(
        self, path: str, take: Callable[[Callable[[], Iterable[bytes]]], None], stop: threading.Event
    ) -> bool:
        """Hand the archive of a path to ``take``, in a thread.

        Args:
            path: begins with where the helper has the volume.
            take: gets what asks for the archive and gives its pieces.
            stop: set when the caller is cancelled, and then waited for: ``take`` must end.

        Returns:
            False when nothing lies there any more.

        Raises:
            ExecutorError: the engine refuses, or is gone; or of ``take``.
        """
        api, helper, name = self._engine.api, self._there, os.fsencode(f"{INNER}/{path}")

        def get() -> Iterable[bytes]:
            pieces: Iterable[bytes] = api.get_archive(helper, name)[0]
            return pieces

        try:
            await _to_its_end(self._engine.call(take, get), stop)
        except ContainerError as error:
            if _says_gone(error):
                return False
            raise
        return True

    async def remove(self, paths: Sequence[str]) -> None:
        """Remove files and folders from volumes that only we write to: nothing there changes meanwhile.

        Args:
            paths: begin with where the helper has the volume.

        Raises:
            ExecutorError: the engine refuses, or is gone.
        """
        api, call = self._engine.api, self._engine.call
        names = b"".join(os.fsencode(f"{INNER}/{path}") + b"\0" for path in paths)
        await call(api.put_archive, self._there, INNER, archive_of("removed", names, (0, 0)))
        await call(api.start, self._there)
        await call(api.wait, self._there)

    async def close(self, *, keep: bool) -> bool:
        """Remove the helper, and the volumes unless they are kept; whether those are gone. Never raises."""
        helper, self._helper = self._helper, None
        if helper is not None:
            await self._tried(self._engine.api.remove_container, helper, force=True)
        if keep:
            return False
        volumes, self._volumes = self._volumes, []
        return all([await self._tried(self._engine.api.remove_volume, name, force=True) for name in volumes])

    async def _tried(self, work: Callable[..., Any], *args: Any, **options: Any) -> bool:
        try:
            await self._engine.call(work, *args, **options)
        except ExecutorError:
            return False
        return True

    @property
    def _there(self) -> str:
        if self._helper is None:
            raise ContainerError("the volumes of the session were let go")
        return self._helper


async def _to_its_end(work: Coroutine[Any, Any, T], stop: threading.Event) -> T:
    """The result of work in a thread, which is never left running."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        stop.set()
        await outlast(task)
        if not task.cancelled():
            task.exception()  # heard of: the cancellation is what counts
        raise


def _says_gone(error: ContainerError) -> bool:
    """Whether the engine says that it has no such file, rather than no such container."""
    answer = getattr(error.__cause__, "response", None)
    return getattr(answer, "status_code", None) == 404 and "no such container" not in str(error).lower()
