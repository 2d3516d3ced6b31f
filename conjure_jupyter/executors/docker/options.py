"""What a container may be and use; every limit has a default and can be changed."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal, cast

from ...errors import SettingsError
from ...settings import MB, Settings

#: What the sandbox image is called when the user names no other.
IMAGE = "conjure/sandbox:latest"

#: ``none`` has loopback only; ``limited`` adds a proxy to allowed hosts; ``bridge`` is the engine's own.
ContainerNetwork = Literal["none", "limited", "bridge"]

_USER = re.compile(r"[0-9]{1,10}(:[0-9]{1,10})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """A folder or file of the engine's machine that the user puts into the container.

    Attributes:
        source: an absolute path, or the name of a volume of the engine.
        target: an absolute path in the container.
        writable: whether it may be written there.
    """

    source: str
    target: PurePosixPath
    writable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DockerOptions:
    """The limits of a container.

    Attributes:
        image: its image.
        memory: bytes, files in ``/tmp`` and the home folder included; there is no swap besides.
        cpus: processors, in parts.
        pids: processes and threads at the same time.
        network: what it reaches.
        hosts: for ``limited``: names of hosts, ``*.example.com`` for all below one.
        volumes: what else is mounted.
        user: ``UID`` or ``UID:GID`` that tools run as; the notebook's when None.
        gpus: ``all``, or how many; none when None.
        idle: seconds without a call after which the container is stopped; 0 never does.
        scratch: bytes of ``/tmp``, and as many of the home folder.

    Raises:
        SettingsError: one of them cannot be used.
    """

    image: str = IMAGE
    memory: int = 2048 * MB
    cpus: float = 1.0
    pids: int = 256
    network: ContainerNetwork = "none"
    hosts: tuple[str, ...] = ()
    volumes: tuple[Volume, ...] = ()
    user: str | None = None
    gpus: str | None = None
    idle: float = 900.0
    scratch: int = 512 * MB

    def __post_init__(self) -> None:
        if not self.image or self.image != self.image.strip() or self.image.startswith("-"):
            raise SettingsError("docker_image", f"{self.image!r} is no name of an image")
        if self.network not in ("none", "limited", "bridge"):
            raise SettingsError("network", _network_reason(self.network))
        if self.memory < 32 * MB:
            raise SettingsError("memory_limit", f"{self.memory} bytes are too few; a container needs 32 MB")
        for name, value, low in (("cpus", self.cpus, 0.01), ("pids", self.pids, 16), ("idle", self.idle, 0)):
            if not (math.isfinite(value) and value >= low):
                raise SettingsError(f"docker_{name}", f"{value!r} is less than {low:g}")
        if self.user is not None and not _USER.fullmatch(self.user):
            raise SettingsError("docker_user", f"{self.user!r} is neither UID nor UID:GID, in numbers")
        if self.gpus is not None and self.gpus != "all" and not self.gpus.isdigit():
            raise SettingsError("docker_gpus", f"{self.gpus!r} is neither 'all' nor a number")

    @classmethod
    def of(cls, settings: Settings) -> DockerOptions:
        """The options that the settings ask for.

        Raises:
            SettingsError: one cannot be used.
        """
        return cls(
            image=settings.docker_image,
            memory=2048 * MB if settings.memory_limit is None else settings.memory_limit,
            cpus=settings.docker_cpus,
            pids=settings.docker_pids,
            network=container_network(settings.network),
            hosts=settings.network_hosts,
            volumes=tuple(parse_volume(text) for text in settings.docker_volumes),
            user=settings.docker_user,
            gpus=settings.docker_gpus,
            idle=settings.docker_idle,
        )


def container_network(asked: str | None) -> ContainerNetwork:
    """The container's network for what a setting asks; ``full`` is the engine's bridge.

    Raises:
        SettingsError: it is refused, such as the network of the host.
    """
    found = {None: "none", "full": "bridge"}.get(asked, asked)
    if found not in ("none", "limited", "bridge"):
        raise SettingsError("network", _network_reason(found))
    return cast("ContainerNetwork", found)


def _network_reason(asked: str | None) -> str:
    if asked == "host":
        return "'host' would put the container on this machine's own network; use 'limited' or 'bridge'"
    return f"{asked!r} is not one of none, limited, bridge"


def parse_volume(text: str) -> Volume:
    """``SOURCE:TARGET``, ``SOURCE:TARGET:ro`` or ``SOURCE:TARGET:rw``; read-only when not said.

    Raises:
        SettingsError: it is none of these, or a path that must not be mounted.
    """
    parts = text.split(":")
    if len(parts) not in (2, 3) or (len(parts) == 3 and parts[2] not in ("ro", "rw")):
        raise SettingsError("docker_volumes", f"{text!r} is not SOURCE:TARGET[:ro|rw]")
    source, target = parts[0], PurePosixPath(parts[1])
    if source.startswith("~"):
        source = str(Path(source).expanduser())
    if not source or not target.is_absolute() or ".." in target.parts or target == PurePosixPath("/"):
        raise SettingsError("docker_volumes", f"{text!r}: the target must be an absolute path, not /")
    if source.endswith("docker.sock") or source in ("/", "/proc", "/sys", "/dev", "/run", "/var/run"):
        raise SettingsError("docker_volumes", f"{source} would hand this machine to the container")
    return Volume(source=source, target=target, writable=parts[2:] == ["rw"])
