"""One command in a container that has little: as the sandbox runs, and stricter."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from .builds import connected

#: A user that no image has a name for.
NOBODY = "12345:23456"


async def run(address: str, image: str, command: Sequence[str], *, user: str = NOBODY) -> str:
    """What it prints, errors included: read-only root, no network, no capability, a home in memory."""
    uid, _, gid = user.partition(":")
    async with connected(address) as engine:
        api = engine.api
        host = api.create_host_config(
            read_only=True,
            network_mode="none",
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            init=True,
            mem_limit="2g",
            pids_limit=256,
            tmpfs={"/tmp": "exec,mode=1777", "/home/sandbox": f"exec,uid={uid},gid={gid},mode=0700"},
        )
        made = await engine.call(
            api.create_container, image, list(command), user=user, working_dir="/tmp", host_config=host
        )
        try:
            await engine.call(api.start, made)
            await engine.call(api.wait, made, timeout=600)
            said: bytes = await engine.call(api.logs, made)
            return said.decode()
        finally:
            with contextlib.suppress(Exception):
                await engine.call(api.remove_container, made, force=True, v=True)
