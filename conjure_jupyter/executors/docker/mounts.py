"""What of this machine a container sees, and where: the paths of one side as those of the other.

==============================  ==============================  =====================================
this machine                    the container
==============================  ==============================  =====================================
the working directory           ``/workspace``                  writable
the skills                      ``/mnt/skills``, and below the  read-only
                                working directory
the artifacts, by name          ``/artifacts``                  read-only
the notebook's folder           ``/notebook``                   read-only, dot-files masked
other folders of the context    where they are                  as the context says
==============================  ==============================  =====================================
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from ...errors import SettingsError
from ..contract import ExecutionContext
from .options import Volume

WORKSPACE = PurePosixPath("/workspace")
SKILLS = PurePosixPath("/mnt/skills")
ARTIFACTS = PurePosixPath("/artifacts")
NOTEBOOK = PurePosixPath("/notebook")

#: Folders of the container that those of this machine must not cover.
_SYSTEM = frozenset(
    ("bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "run", "sbin", "sys", "usr")
)
_OURS = (WORKSPACE, SKILLS, ARTIFACTS, NOTEBOOK)

#: What a context wants of a folder.
Use = Literal["readable", "writable", "read-only"]


@dataclass(frozen=True, slots=True)
class Mount:
    """One entry of the container's mount table.

    Attributes:
        source: a path of this machine (``bind``), or the name of a volume (``volume``).
        target: where it is in the container.
        kind: ``tmpfs`` is an empty read-only folder, ``null`` an empty file: they hide what lies there.
        writable: whether it may be written.
    """

    source: Path | str | None
    target: PurePosixPath
    kind: Literal["bind", "tmpfs", "null", "volume"] = "bind"
    writable: bool = False


@dataclass(frozen=True, slots=True)
class Places:
    """The folders that both sides share.

    Attributes:
        mounts: them, what lies below after what lies above.
        context: the context in the container's terms.
        notebook: the notebook's folder, when it is mounted: its dot-files are to be masked.
        at_work: the notebook's folder, when it is the working directory: what others obey is to be guarded.
    """

    mounts: tuple[Mount, ...]
    context: ExecutionContext
    notebook: Path | None
    at_work: Path | None = None

    def on_host(self, path: str) -> Path | None:
        """Where a path of the container lies on this machine; None where it does not.

        Args:
            path: absolute, or relative to the working directory, in the container's terms.
        """
        whole = PurePosixPath(posixpath.normpath(posixpath.join(str(self.context.working_directory), path)))
        mount = _deepest(self.mounts, whole)
        if mount is None or mount.kind != "bind":
            return None
        return Path(str(mount.source)) / whole.relative_to(mount.target)

    def in_container(self, path: Path) -> Path | None:
        """What the container calls a path of this machine; None where it does not see it."""
        shown = [
            mount for mount in self.mounts if mount.kind == "bind" and path.is_relative_to(str(mount.source))
        ]
        if not shown:
            return None
        mount = max(shown, key=lambda mount: len(str(mount.source)))
        return Path(mount.target) / path.relative_to(str(mount.source))


def places(
    context: ExecutionContext,
    *,
    notebook: Path | None = None,
    artifacts: Path | None = None,
    hidden: Sequence[Path] = (),
    volumes: Sequence[Volume] = (),
) -> Places:
    """What a container sees of the folders that a context names.

    Args:
        context: in this machine's terms.
        notebook: the notebook's folder; not mounted when it is the home folder, the root, or holds either.
        artifacts: a folder with the registered artifacts, by name.
        hidden: folders that tools never see, such as the sessions' own, though others hold them.
        volumes: what the user mounts besides.

    Raises:
        SettingsError: a folder cannot be mounted, or two would lie at one place.
    """
    table = _Table(context.working_directory.absolute(), _absolute(hidden))
    skills = None if context.skills_root is None else context.skills_root.absolute()
    at_work = table.work if notebook == table.work else None
    if notebook is not None and (_holds_home(notebook) or notebook == table.work):
        notebook = None
    if notebook is not None:
        table.bind(notebook, NOTEBOOK)
    if artifacts is not None:
        table.bind(artifacts.absolute(), ARTIFACTS)
    writable = [table.folder(path, "writable") for path in _absolute(context.writable_paths)]
    allowed = [table.folder(path, "readable") for path in _absolute(context.allowed_paths)]
    read_only = [
        table.folder(path, "read-only")
        for path in _absolute(context.read_only_paths)
        if path not in table.hidden
    ]
    root = None
    if skills is not None:
        below = (
            skills.relative_to(table.work) if skills.is_relative_to(table.work) else PurePosixPath("skills")
        )
        table.bind(skills, SKILLS)
        root = table.bind(skills, WORKSPACE / below)
    table.hide()
    for volume in volumes:
        table.volume(volume)
    readable = [mount.target for mount in table.mounts if mount.target in (SKILLS, ARTIFACTS, NOTEBOOK)]
    return Places(
        mounts=tuple(sorted(table.mounts, key=lambda mount: len(mount.target.parts))),
        context=context.with_(
            working_directory=Path(WORKSPACE),
            skills_root=None if root is None else Path(root),
            artifacts_root=None if artifacts is None else Path(ARTIFACTS),
            allowed_paths=_unique([*allowed, *readable, *(volume.target for volume in volumes)]),
            writable_paths=_unique([*writable, *(v.target for v in volumes if v.writable)]),
            read_only_paths=_unique(read_only if root is None else [*read_only, root]),
        ),
        notebook=notebook,
        at_work=at_work,
    )


class _Table:
    """The mounts, as they are found.

    Args:
        work: the working directory.
        hidden: folders that are covered wherever they would be seen.
    """

    def __init__(self, work: Path, hidden: Sequence[Path]) -> None:
        self.work = work
        self.hidden = hidden
        self.mounts: list[Mount] = []
        self.bind(work, WORKSPACE, writable=True)

    def bind(self, source: Path, target: PurePosixPath, *, writable: bool = False) -> PurePosixPath:
        """Show a folder at a place."""
        self._add(Mount(source, target, "bind", writable))
        return target

    def volume(self, volume: Volume) -> None:
        """Show what the user mounts."""
        if volume.target in _OURS or not _may_lie_at(volume.target):
            raise SettingsError("docker_volumes", f"{volume.target} is a place of the container's own")
        absolute = volume.source.startswith("/")
        source = Path(volume.source) if absolute else volume.source
        self._add(Mount(source, volume.target, "bind" if absolute else "volume", volume.writable))

    def folder(self, path: Path, use: Use) -> PurePosixPath:
        """Where a folder of the context is, which is shown when it is not yet."""
        mount = self._over(path)
        if mount is None:
            target = PurePosixPath(path.as_posix())
            if not _may_lie_at(target):
                raise SettingsError(
                    "allowed_paths", f"{path} cannot be mounted in a container; name another folder"
                )
            return self.bind(path, target, writable=use == "writable")
        source = Path(str(mount.source))
        target = mount.target / path.relative_to(source)
        covered = any(
            path.is_relative_to(hidden) and hidden != source and hidden.is_relative_to(source)
            for hidden in self.hidden
        )
        if covered or (use == "writable") > mount.writable or (use == "read-only" and mount.writable):
            self.bind(path, target, writable=use == "writable")
        return target

    def hide(self) -> None:
        """Cover the hidden folders; what is shown below them stays, being mounted later."""
        for mount in list(self.mounts):
            for path in self.hidden:
                source = Path(str(mount.source))
                if path != source and path.is_relative_to(source) and path.is_dir():
                    self._add(Mount(None, mount.target / path.relative_to(source), "tmpfs"))

    def _over(self, path: Path) -> Mount | None:
        """The mount that shows a path already, by the longest way there is."""
        over = [mount for mount in self.mounts if path.is_relative_to(str(mount.source))]
        return max(over, key=lambda mount: len(str(mount.source)), default=None)

    def _add(self, mount: Mount) -> None:
        at = {known.target: known for known in self.mounts}.get(mount.target)
        if at is None:
            self.mounts.append(mount)
        elif (at.source, at.kind) != (mount.source, mount.kind):
            raise SettingsError("docker_volumes", f"two folders would lie at {mount.target} in the container")
        elif mount.writable and not at.writable:
            self.mounts[self.mounts.index(at)] = mount


def _deepest(mounts: Iterable[Mount], path: PurePosixPath) -> Mount | None:
    covering = [mount for mount in mounts if path.is_relative_to(mount.target)]
    return max(covering, key=lambda mount: len(mount.target.parts), default=None)


def _holds_home(folder: Path) -> bool:
    home = Path.home()
    return home.is_relative_to(folder) or home.resolve().is_relative_to(folder)


def _absolute(paths: Sequence[Path]) -> list[Path]:
    return [path.absolute() for path in paths]


def _unique(paths: Iterable[PurePosixPath]) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(Path(path) for path in paths))


def _may_lie_at(target: PurePosixPath) -> bool:
    return len(target.parts) > 1 and target.parts[1] not in _SYSTEM
