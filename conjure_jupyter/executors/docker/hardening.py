"""What a container may not: everything that its tools do not need.

No capabilities, no new privileges, the engine's own seccomp profile, a read-only root, no devices, bounds on
memory, processes, files and scratch space, nothing of this machine's network unless asked for. Never the
engine's socket: who can write to it owns the machine.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Protocol

from ...errors import ContainerError
from ...settings import MB
from .addresses import usual_sockets
from .mounts import Mount
from .options import DockerOptions

if TYPE_CHECKING:
    from docker.types import Mount as EngineMount

#: The tools' folder for what the system that serves them keeps, and their home.
RUN = PurePosixPath("/run/conjure")
HOME = PurePosixPath("/home/sandbox")

OPEN_FILES = 4096
SHARED_MEMORY = 64 * MB
#: Bytes of a folder in memory for each file that it may hold.
FILE_COST = 4096
RUN_SIZE = 16 * MB

#: Folders of this machine that hold the machine itself.
_MACHINE = ("/", "/proc", "/sys", "/dev", "/run", "/var/run", "/boot")
#: Folders below which nothing is shared either; the others are only refused whole.
_KERNEL = ("/proc", "/sys", "/dev")


class Traits(Protocol):
    """What of an engine decides how a container is made."""

    version: tuple[int, int]
    podman: bool
    confined: bool

    @property
    def remote(self) -> bool:
        """Whether its files are not this machine's."""


def host_config(
    options: DockerOptions, mounts: Sequence[Mount], user: str, engine: Traits, *, init: bool = True
) -> dict[str, Any]:
    """The part of a container's description that bounds it, as keyword arguments of the SDK.

    Args:
        user: ``UID:GID`` of the tools.
        init: whether the engine's own init is the first process.
    """
    from docker.types import DeviceRequest, LogConfig, Ulimit

    security = ["no-new-privileges"]
    if engine.confined and any(mount.kind == "bind" for mount in mounts):
        # SELinux would keep the container from the user's files; the other way is to relabel them.
        security.append("label=disable")
    config: dict[str, Any] = {
        "auto_remove": True,
        "cap_drop": ["ALL"],
        "init": init,
        "ipc_mode": "private",
        "log_config": LogConfig(type="none"),
        "mem_limit": options.memory,
        "memswap_limit": options.memory,
        "mounts": [_engine_mount(mount) for mount in mounts if mount.kind != "tmpfs"],
        "nano_cpus": round(options.cpus * 1e9),
        "network_mode": "bridge" if options.network == "bridge" else "none",
        "pids_limit": options.pids,
        "privileged": False,
        "read_only": True,
        "security_opt": security,
        "shm_size": SHARED_MEMORY,
        "tmpfs": _scratch(options, mounts, user, engine),
        "ulimits": [
            Ulimit(name="nofile", soft=OPEN_FILES, hard=OPEN_FILES),
            Ulimit(name="core", soft=0, hard=0),
        ],
    }
    if engine.version >= (1, 41):
        config["cgroupns"] = "private"
    if options.gpus is not None:
        count = -1 if options.gpus == "all" else int(options.gpus)
        config["device_requests"] = [DeviceRequest(count=count, capabilities=[["gpu"]])]
    return config


def _scratch(options: DockerOptions, mounts: Sequence[Mount], user: str, engine: Traits) -> dict[str, str]:
    """What is in memory: writable places, and empty read-only folders over what is hidden."""
    uid, _, gid = user.partition(":")
    free = "rw,exec,nosuid,nodev"
    # Podman gives a folder in memory what lies below it, which would show what a mask hides; Docker never
    # does and does not know the word. Podman does not know owners of such folders.
    own = "notmpcopyup,mode=1777" if engine.podman else f"mode=0700,uid={uid},gid={gid}"
    everyone = "notmpcopyup,mode=1777" if engine.podman else "mode=1777"
    empty = "notmpcopyup," if engine.podman else ""
    # Empty files take memory too, which their size does not count. Podman does not know the word.
    files = "" if engine.podman else f",nr_inodes={max(options.scratch // FILE_COST, 1024)}"
    found = {
        "/tmp": f"{free},{everyone},size={options.scratch}{files}",  # noqa: S108  the container's
        str(HOME): f"{free},{own},size={options.scratch}{files}",
        str(RUN): f"{free},{own},size={RUN_SIZE}{files}",
    }
    for mount in mounts:
        if mount.kind == "tmpfs":
            found[str(mount.target)] = f"ro,noexec,nosuid,nodev,{empty}mode=0555,size=4096"
    return found


def _engine_mount(mount: Mount) -> EngineMount:
    from docker.types import Mount as EngineMount

    if mount.kind == "volume":
        return EngineMount(
            str(mount.target), str(mount.source), type="volume", read_only=not mount.writable, no_copy=True
        )
    source = os.devnull if mount.kind == "null" else str(mount.source)
    # By this interface a source that is missing is an error; by the older one the engine would make it.
    return EngineMount(
        str(mount.target), source, type="bind", read_only=not mount.writable, propagation="rprivate"
    )


def checked(mounts: Sequence[Mount], *, engine: Traits, socket: Path | None) -> tuple[Mount, ...]:
    """The mounts with their sources where they really lie. Looks at the disk: not for the event loop.

    Args:
        socket: of the engine in use, when it has one here.

    Raises:
        ContainerError: a source must not be shared, is missing, or was replaced by a link.
    """
    found = []
    for mount in mounts:
        if not engine.remote:
            _refuse_links(mount, mounts)
        if mount.kind != "bind":
            found.append(mount)
            continue
        source = Path(str(mount.source))
        _refuse_unsayable(source)
        _refuse_machine(source)
        if not engine.remote:
            source = _resolved(source)
            _refuse_machine(source)
            _refuse_sockets(source, socket)
        found.append(Mount(source, mount.target, "bind", mount.writable))
    return tuple(found)


def _refuse_unsayable(source: Path) -> None:
    try:
        str(source).encode()
    except UnicodeEncodeError as error:
        name = os.fsencode(source).decode(errors="replace")
        raise ContainerError(f"{name} cannot be shared with a container: its name is no UTF-8") from error


def _resolved(source: Path) -> Path:
    try:
        return source.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise ContainerError(f"{source} cannot be shared with a container: it does not exist") from error


def _refuse_machine(source: Path) -> None:
    if not source.is_absolute() or ".." in source.parts:
        raise ContainerError(f"{source} cannot be shared with a container: it is no absolute path")
    kernel = any(source.is_relative_to(folder) for folder in _KERNEL)
    if kernel or str(source) in _MACHINE:
        raise ContainerError(f"{source} is never shared with a container: it is this machine itself")
    home = Path.home()
    if home.is_relative_to(source) or home.resolve().is_relative_to(source):
        raise ContainerError(
            f"{source} is never shared with a container: it holds the home folder; share a folder inside it"
        )


def _refuse_sockets(source: Path, engine: Path | None) -> None:
    if not source.exists():
        raise ContainerError(f"{source} cannot be shared with a container: it does not exist")
    kind = source.stat().st_mode
    if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
        raise ContainerError(f"{source} is never shared with a container: it is neither a file nor a folder")
    sockets = usual_sockets(os.environ, Path.home())
    for path in sockets if engine is None else [engine, *sockets]:
        real = Path(os.path.realpath(path))
        if real.is_relative_to(source) and real.is_socket():
            raise ContainerError(
                f"{source} is never shared with a container: the engine's socket {path} is in it"
            )


def _refuse_links(mount: Mount, mounts: Sequence[Mount]) -> None:
    """Nothing that tools could replace by a link is followed.

    The source of a mount, and the place where it goes, may lie in a folder that tools write. A link left
    there would let the next container show what it leads to, or leave uncovered what was to be covered.
    """
    source = Path(str(mount.source)) if mount.kind == "bind" else None
    for other in mounts:
        folder = Path(str(other.source))
        if other is mount or other.kind != "bind" or not other.writable:
            continue
        for start, path in ((folder, source), (folder, _seen_at(mount, other))):
            if path is not None and path != start and path.is_relative_to(start):
                _refuse_link_between(start, path)


def _seen_at(mount: Mount, other: Mount) -> Path | None:
    """Where on this machine the target of one mount lies, if it lies in another."""
    if mount.target == other.target or not mount.target.is_relative_to(other.target):
        return None
    return Path(str(other.source)) / mount.target.relative_to(other.target)


def _refuse_link_between(start: Path, path: Path) -> None:
    at = start
    for part in path.relative_to(start).parts:
        at /= part
        if at.is_symlink():
            raise ContainerError(f"{at} was replaced by a link: remove it, then try again")
