"""What the dead left on an engine, found by its labels and removed.

A running container needs nobody: its guard ends it. What is left are containers that were never started or
are paused, and volumes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...errors import ContainerError
from .connection import Engine
from .owner import MARK, OWNER, alive, boot

#: Whether something is to go, by its owner's label and whether it runs.
Judge = Callable[[str, bool], bool]


@dataclass(frozen=True, slots=True)
class Swept:
    """What was removed.

    Attributes:
        containers: their names.
        volumes: their names.
    """

    containers: tuple[str, ...] = ()
    volumes: tuple[str, ...] = ()


async def sweep(engine: Engine) -> Swept:
    """Remove containers and volumes whose owner is dead; not those of one that cannot be judged from here.

    Raises:
        DockerUnavailableError: the engine does not answer.
    """
    return await _remove(engine, _is_left)


async def prune(engine: Engine, *, everything: bool) -> Swept:
    """Remove what the dead left, and what nobody can tell the owner of unless it runs.

    Args:
        everything: also what is in use, by this process as well.

    Raises:
        DockerUnavailableError: the engine does not answer.
    """
    if everything:
        return await _remove(engine, lambda *_: True, force=True)
    return await _remove(
        engine, lambda owner, runs: _is_left(owner, runs) or (not runs and alive(owner) is None)
    )


def _is_left(owner: str, runs: bool) -> bool:
    """Whether its owner is dead.

    What runs under an owner of another start of the machine stays: somebody feeds its guard, so it is
    another machine that gives itself out as this one, as copies of one disk do.
    """
    return alive(owner) is False and (not runs or owner.startswith(f"{boot()}:"))


async def _remove(engine: Engine, judge: Judge, *, force: bool = False) -> Swept:
    api, ours = engine.api, {"label": f"{MARK}=1"}
    found = await engine.call(api.containers, all=True, filters=ours)
    containers = []
    for each in found:
        owner = (each.get("Labels") or {}).get(OWNER, "")
        runs = each.get("State") in ("running", "restarting")
        if judge(owner, runs) and await _done(engine, api.remove_container, each["Id"], v=True, force=True):
            containers.append(str((each.get("Names") or [each["Id"]])[0]).lstrip("/"))
    listed = await engine.call(api.volumes, filters=ours)
    volumes = []
    for each in listed.get("Volumes") or ():
        owner, name = (each.get("Labels") or {}).get(OWNER, ""), str(each["Name"])
        # The engine refuses to remove one that a container has.
        if judge(owner, False) and await _done(engine, api.remove_volume, name, force=force):
            volumes.append(name)
    return Swept(tuple(containers), tuple(volumes))


async def _done(engine: Engine, function: Callable[..., Any], *args: Any, **named: Any) -> bool:
    try:
        await engine.call(function, *args, **named)
    except ContainerError:
        return False  # in use, or another process removes it at this moment
    return True
