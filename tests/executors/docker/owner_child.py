"""A process with a container, for the tests that kill, stop and fork it.

Arguments: the engine's address, the image, and what to have: ``container``, ``fork`` (and a child besides,
that lives on) or ``leftovers`` (a volume and a container that was never started).
It prints one line when it has it, then waits.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time

from conjure_jupyter.executors.docker.connection import Engine
from conjure_jupyter.executors.docker.container import Container
from conjure_jupyter.executors.docker.owner import labels

from .containers import plan


async def main(address: str, image: str, what: str) -> None:
    engine = await Engine.connect(address)
    if what == "leftovers":
        api, ours = engine.api, labels("swept", "container")
        volume = await engine.call(api.create_volume, labels=labels("swept", "volume"))
        made = await engine.call(api.create_container, image, ["true"], labels=ours)
        print(volume["Name"], made["Id"], flush=True)
        await asyncio.Event().wait()
    container = await Container.create(engine, plan(image))
    stream = await container.attach(["bash", "-c", "while :; do sleep 1; done"])
    if what == "fork" and (pid := os.fork()) == 0:
        time.sleep(120)  # noqa: ASYNC251  the child has no loop, only the parent's memory of one
        os._exit(0)
    elif what == "fork":
        print(container.id, pid, flush=True)
    else:
        print(container.id, flush=True)
    await stream.read()
    await container.ended()
    print("gone:", await container.why(), flush=True)
    await container.remove()
    await engine.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
