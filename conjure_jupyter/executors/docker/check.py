"""What an engine offers for containers, and what is missing; nothing is changed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..._version import __version__
from ...engine import engine as background
from ...errors import DockerImageError, DockerUnavailableError
from .connection import Engine
from .options import IMAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """An engine and an image on it. What the engine did not say is empty.

    Attributes:
        image: the name that was looked for.
        address: of the engine, as a URL.
        engine: ``Docker`` or ``Podman``.
        version: of the engine.
        api_version: of its interface.
        system: ``linux``.
        architecture: of its machine, such as ``x86_64``.
        rootless: whether its containers' root is an ordinary user.
        remote: whether it is on another machine; files are then copied to and fro.
        image_id: None when the image is not there.
        image_created: when it was built (ISO 8601).
        image_size: in bytes.
        cgroup_version: ``1`` or ``2``.
        memory_limit: whether containers can be limited in memory.
        swap_limit: and in swap.
        seccomp: whether system calls are filtered.
        storage_driver: such as ``overlay2``.
        warnings: what works less well than it could, a sentence each with what to do.
        problems: what keeps containers from starting, likewise.
    """

    image: str
    address: str = ""
    engine: str = ""
    version: str = ""
    api_version: str = ""
    system: str = ""
    architecture: str = ""
    rootless: bool = False
    remote: bool = False
    image_id: str | None = None
    image_created: str | None = None
    image_size: int | None = None
    cgroup_version: str = ""
    memory_limit: bool = False
    swap_limit: bool = False
    seccomp: bool = False
    storage_driver: str = ""
    warnings: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether containers can start."""
        return not self.problems


def check_environment(*, image: str = IMAGE) -> Environment:
    """See whether an engine answers and has the image; what is missing stands in ``problems``."""
    return background().run(acheck_environment(image=image))


async def acheck_environment(*, image: str = IMAGE, engine: Engine | None = None) -> Environment:
    """``check_environment``, to be awaited. Looks at ``engine`` where one is given."""
    try:
        there = await Engine.connect() if engine is None else engine
    except DockerUnavailableError as error:
        return Environment(image=image, problems=(_sentence(error),))
    try:
        return await _examined(there, image)
    except DockerUnavailableError as error:
        return Environment(
            image=image, address=there.address, remote=there.remote, problems=(_sentence(error),)
        )
    finally:
        if engine is None:
            await there.close()


async def _examined(engine: Engine, image: str) -> Environment:
    info = await engine.call(engine.api.info)
    said = await engine.call(engine.api.version)
    networks = await engine.call(engine.api.networks)
    problems: list[str] = []
    found: Mapping[str, Any] = {}
    try:
        found = await engine.call(engine.api.inspect_image, image)
    except DockerImageError:
        problems.append(
            f"The image {image} is not on the engine: build the sandbox with `{_build_command(image)}`, "
            f"or get an image of your own with `docker pull {image}`."
        )
    if said.get("Os", "linux") != "linux":
        problems.append("The engine runs Windows containers: switch it to Linux containers.")
    seccomp = [str(each) for each in info.get("SecurityOptions") or () if "name=seccomp" in str(each)]
    warnings = [
        *_limits(info),
        *_about_image(found, image, str(said.get("Arch", ""))),
    ]
    if not seccomp or "unconfined" in seccomp[0]:
        warnings.append("The engine filters no system calls: give it its default seccomp profile back.")
    if not any(network.get("Driver") == "bridge" for network in networks):
        warnings.append(
            "The engine has no bridge network: the setting network='bridge' cannot be used, the others can."
        )
    return Environment(
        image=image,
        address=engine.address,
        engine="Podman" if engine.podman else "Docker",
        version=str(said.get("Version", "")),
        api_version=str(said.get("ApiVersion", "")),
        system=str(said.get("Os", "")),
        architecture=str(info.get("Architecture", "")),
        rootless=engine.rootless,
        remote=engine.remote,
        image_id=found.get("Id"),
        image_created=found.get("Created"),
        image_size=found.get("Size"),
        cgroup_version=str(info.get("CgroupVersion", "")),
        memory_limit=bool(info.get("MemoryLimit")),
        swap_limit=bool(info.get("SwapLimit")),
        seccomp=bool(seccomp) and "unconfined" not in seccomp[0],
        storage_driver=str(info.get("Driver", "")),
        warnings=tuple(warnings),
        problems=tuple(problems),
    )


def _limits(info: Mapping[str, Any]) -> list[str]:
    """What of a container the engine cannot limit."""
    names = {
        "MemoryLimit": "memory",
        "SwapLimit": "swap",
        "CpuCfsQuota": "processors",
        "PidsLimit": "processes",
    }
    lacking = [text for name, text in names.items() if info.get(name) is False]
    if not lacking:
        return []
    remedy = (
        "delegate the controllers to your user (systemd's Delegate=cpu cpuset io memory pids)"
        if "name=rootless" in map(str, info.get("SecurityOptions") or ())
        else "switch the kernel's control groups on (cgroup_enable=memory swapaccount=1 at its start)"
    )
    return [f"The engine cannot limit the {' and '.join(lacking)} of a container: {remedy}."]


def _about_image(found: Mapping[str, Any], image: str, architecture: str) -> list[str]:
    """What speaks against an image that is there."""
    warnings = []
    made_by = ((found.get("Config") or {}).get("Labels") or {}).get("conjure.version")
    if made_by and made_by != __version__:
        warnings.append(
            f"The image {image} was built by version {made_by} of Conjure: "
            f"build it again with `{_build_command(image)}`."
        )
    own = found.get("Architecture")
    if own and architecture and own != architecture:
        warnings.append(
            f"The image {image} is for {own} and runs emulated on {architecture}: build it on this engine."
        )
    return warnings


def _build_command(image: str) -> str:
    return "conjure docker build" if image == IMAGE else f"conjure docker build --tag {image}"


def _sentence(error: Exception) -> str:
    text = re.sub(r"\s*\n\s*", " ", str(error)).strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."
