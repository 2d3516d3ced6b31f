"""The engine's side as a folder of this machine, so that much can be tried in little time."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import shutil
import subprocess
import tarfile
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path, PurePosixPath

from conjure_jupyter.executors.docker.remote.agreement import Agreement
from conjure_jupyter.executors.docker.remote.entries import MOST_ENTRIES, Below
from conjure_jupyter.executors.docker.remote.listing import Listing, _command, parse
from conjure_jupyter.executors.docker.remote.share import Share
from conjure_jupyter.executors.docker.remote.tree import Tree

from .tars import pieces


class PretendStore:
    """What ``Store`` does, on a folder that holds the volumes' folders."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.requests = 0

    async def put(self, sending: Iterable[bytes], stop: threading.Event) -> None:
        self.requests += 1
        await asyncio.to_thread(self._put, b"".join(sending))

    def _put(self, data: bytes) -> None:
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            for member in tar:
                path = self.root / member.name
                is_folder = path.is_dir() and not path.is_symlink()
                if os.path.lexists(path) and not (is_folder and member.isdir()):
                    shutil.rmtree(path) if is_folder else path.unlink()
                tar.extract(member, self.root, filter="fully_trusted")
                if member.isreg():
                    seconds, _, part = member.pax_headers["mtime"].partition(".")
                    os.utime(path, ns=(0, int(seconds) * 10**9 + int(part)))

    async def get(
        self, path: str, take: Callable[[Callable[[], Iterable[bytes]]], None], stop: threading.Event
    ) -> bool:
        self.requests += 1
        return await asyncio.to_thread(self._get, path, take)

    def _get(self, path: str, take: Callable[[Callable[[], Iterable[bytes]]], None]) -> bool:
        if not os.path.lexists(self.root / path):
            return False
        made = io.BytesIO()
        with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as tar:
            tar.add(self.root / path, PurePosixPath(path).name)
        take(lambda: pieces(made.getvalue(), 5000))
        return True

    async def remove(self, paths: Sequence[str]) -> None:
        for path in paths:
            there = self.root / path
            shutil.rmtree(there) if there.is_dir() and not there.is_symlink() else there.unlink(
                missing_ok=True
            )


class PretendInside:
    """What ``Inside`` does, by the same command."""

    async def listing(self, folder: PurePosixPath, skip: Below) -> Listing | None:
        command = _command(folder, sorted(skip.tops), MOST_ENTRIES)
        done = await asyncio.to_thread(
            subprocess.run, ["bash", "-c", command], capture_output=True, check=True
        )
        return parse(done.stdout, MOST_ENTRIES)

    async def delete(self, path: PurePosixPath) -> None:
        await asyncio.to_thread(_removed, Path(path))


def _removed(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


def pretend(base: Path, skip: Iterable[str] = ()) -> tuple[Share, PretendStore, PretendInside]:
    """A share whose volume is the folder ``there/0``."""
    here, there = base / "here", base / "there"
    here.mkdir()
    (there / "0").mkdir(parents=True)
    share = Share(
        volume="v",
        inner="0",
        target=PurePosixPath(there / "0"),
        writable=True,
        tree=Tree(here),
        agreement=Agreement(skip),
    )
    return share, PretendStore(there), PretendInside()
