"""Which folders of this machine become which volumes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from ..mounts import NOTEBOOK, Mount
from .agreement import Agreement
from .tree import Tree

#: Bytes that are sent of a folder that tools may write, and of one they may only read.
MOST_WRITABLE, MOST_READABLE = 10 << 30, 1 << 30


@dataclass(slots=True)
class Share:
    """A folder of this machine and the volume that stands for it.

    Attributes:
        volume: its name.
        inner: where the helper has it, below the folder that holds all volumes.
        target: where the session's container has it.
        writable: whether tools may write there: then it is pulled.
        tree: the folder here.
        agreement: what both sides agree on.
        unfinished: whether a pull was broken off: the volume has what this machine has not.
        stays: whether the volume has files that this machine has no room for.
        begun: whether anything was sent.
        told: what the user was told of it.
    """

    volume: str
    inner: str
    target: PurePosixPath
    writable: bool
    tree: Tree
    agreement: Agreement
    unfinished: bool = False
    stays: bool = False
    begun: bool = False
    told: set[str] = field(default_factory=set)

    @property
    def most_bytes(self) -> int:
        """How much of the folder is sent."""
        return MOST_WRITABLE if self.writable else MOST_READABLE


def shares_of(mounts: Sequence[Mount], name: str) -> tuple[list[Share], tuple[Mount, ...]]:
    """What to make of a container's mounts where this machine's folders cannot be mounted.

    A folder that is mounted at two places is one volume. What is masked is not sent, so it needs no mask. A
    file, and a path that this machine does not have, stay what they are: only the engine can know them.

    Args:
        mounts: as they would be here.
        name: what the volumes' names begin with.

    Returns:
        The folders, and the mounts with volumes in their places.
    """
    folders = {mount: _real(mount.source) for mount in mounts if _is_folder(mount)}
    made: dict[str, Share] = {}
    for mount, real in folders.items():
        places = [other.target for other, same in folders.items() if same == real]
        if real in made:
            made[real].writable |= mount.writable
            continue
        covered = {
            other.target.relative_to(place).as_posix()
            for place in places
            for other in mounts
            if other.target != place and other.target.is_relative_to(place)
        }
        made[real] = Share(
            volume=f"{name}-{len(made)}",
            inner=str(len(made)),
            target=next(
                (other.target for other in folders if other.writable and folders[other] == real), mount.target
            ),
            writable=mount.writable,
            tree=Tree(Path(real), dots=NOTEBOOK not in places),
            agreement=Agreement(covered),
        )
    return list(made.values()), _converted(mounts, folders, made)


def _converted(
    mounts: Sequence[Mount], folders: Mapping[Mount, str], made: Mapping[str, Share]
) -> tuple[Mount, ...]:
    found = []
    for mount in mounts:
        if mount in folders:
            found.append(replace(mount, source=made[folders[mount]].volume, kind="volume"))
        elif mount.source is not None or not any(
            mount.target.is_relative_to(other.target) for other in folders
        ):
            found.append(mount)
    return tuple(found)


def _is_folder(mount: Mount) -> bool:
    return mount.kind == "bind" and mount.source is not None and Path(mount.source).is_dir()


def _real(source: Path | str | None) -> str:
    return os.path.realpath(str(source))
