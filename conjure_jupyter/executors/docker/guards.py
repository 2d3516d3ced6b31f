"""What tools must not touch of a notebook's folder that is their working directory.

There they may write what the user has, but not what others run or obey later (git's hooks, the settings of
editors and agents), nor read what looks like keys: by the lists of the sandbox on this machine. What is there
when the container is started is covered.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from ..sandbox.sensitive import GIT_PERSISTENT, PERSISTENT, key_like
from .masks import Held
from .mounts import Mount


class Guards:
    """Covers what is to be guarded in a folder, and notices when a cover came off; see ``masks``.

    Attributes:
        mounts: the covers.
    """

    def __init__(self, folder: Path, target: PurePosixPath) -> None:
        mounts = {mount.target: mount for mount in _guards(folder, target)}
        self.mounts = list(mounts.values())
        self._held = {
            path: held
            for mount in self.mounts
            if (held := Held.hold(path := folder / mount.target.relative_to(target)))
        }

    def slipped(self) -> bool:
        """Whether an entry is another than the one that was covered. Quick."""
        return any(held.replaced(path) for path, held in self._held.items())

    def close(self) -> None:
        """Let go of the entries. May be called twice."""
        for held in self._held.values():
            held.close()
        self._held = {}


def _guards(folder: Path, target: PurePosixPath) -> Iterator[Mount]:
    """The covers; of two at one place the later one counts."""
    for name in PERSISTENT:
        path = folder / name
        if name == ".git" and path.is_dir() and not path.is_symlink():
            # A mount as well, so that it cannot be moved away with the covers inside.
            yield Mount(path, target / name, "bind", writable=True)
            for part in GIT_PERSISTENT:
                if _is_plain(path / part):
                    yield Mount(path / part, target / name / part)
        elif _is_plain(path):
            yield Mount(path, target / name)
    for path in key_like(folder):
        if _is_plain(path):
            yield Mount(None, target / path.name, "tmpfs" if path.is_dir() else "null")


def _is_plain(path: Path) -> bool:
    """Whether it is a file or folder itself: a link leads where the container has nothing, or is covered."""
    return not path.is_symlink() and (path.is_file() or path.is_dir())
