"""Whether tools in a container may use the workspace, which belongs to the notebook's user."""

from __future__ import annotations

import os

from ...errors import ContainerError, ExecutorError
from .connection import Engine
from .link import Link, LinkLostError
from .mounts import Places
from .options import DockerOptions

#: Seconds that the look may take.
LIMIT = 10.0


async def see_access(link: Link, shared: Places, options: DockerOptions, engine: Engine, user: str) -> None:
    """See that tools may use the workspace, as far as this process may.

    Args:
        user: ``UID:GID`` of the tools.

    Raises:
        ContainerError: they may not: they are another user, or the engine gives containers other ones.
        LinkLostError: the container is gone.
    """
    folder = shared.on_host(".")
    if folder is None:
        return
    see = "test -r . -a -x ." + (" -a -w ." if os.access(folder, os.W_OK) else "")
    try:
        if (await link.run(see, shared.context, timeout=LIMIT)).exit_code == 0:
            return
    except LinkLostError:
        raise
    except ExecutorError:
        pass  # it cannot even be entered
    if options.user is not None:
        advice = "leave docker_user unset, so that they run as you"
    elif engine.remapped:
        advice = "the engine gives containers users of its own (userns-remap); use one that does not"
    else:
        found = folder.stat()
        advice = f"set docker_user to its owner, {found.st_uid}:{found.st_gid}"
    raise ContainerError(f"Tools run in the container as {user}, who may not use {folder}: {advice}")
