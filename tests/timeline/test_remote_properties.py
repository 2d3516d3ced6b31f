"""Whatever happens in whatever order, what is remote is a prefix of the log, byte for byte."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from conjure_jupyter.errors import StorageUnavailableError
from conjure_jupyter.timeline.remote import LogMirror, blobs_of, restore
from conjure_jupyter.timeline.remote.keys import read_listing
from conjure_jupyter.timeline.remote.naming import named_in

from .remote_machine import Machine, Machines, remote_log
from .remote_stores import Remote, memory_bucket

steps = st.lists(
    st.sampled_from(
        ["say", "artifact", "flush", "sync", "crash", "crash soon", "close", "down", "up", "lose"]
    ),
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(steps)
def test_what_is_remote_is_a_prefix_of_the_log(plan: list[str]) -> None:
    with tempfile.TemporaryDirectory() as root:
        asyncio.run(_follow(plan, Path(root)))


async def _follow(plan: Sequence[str], root: Path) -> None:
    remote = Remote(memory_bucket())
    machines = Machines(root, remote)
    here = machines("one")
    mirror = await _start(here)
    acknowledged = 0
    for number, step in enumerate(plan):
        if step == "say":
            here.say(f"step {number}" + "x" * (number % 7) * 100)
        elif step == "artifact":
            here.artifact(b"%d" % number)
        elif step == "flush":
            mirror.flush()
            await asyncio.sleep(0)
        elif step == "sync":
            size = len(here.log)
            with contextlib.suppress(StorageUnavailableError):
                assert await mirror.synced()
                acknowledged = size
        elif step in ("down", "up"):
            remote.down = step == "down"
        elif step == "lose":
            remote.lose = 1
        else:
            if step == "close":
                await mirror.close(0.05)
                here.timeline.close()
            else:
                if step == "crash soon":
                    mirror.flush()
                    await asyncio.sleep(0.0003 * (number % 5))
                await here.crash()
            here = machines("one")
            mirror = await _start(here)
        await _check(remote, here, acknowledged)
    remote.down, remote.lose = False, 0
    with contextlib.suppress(StorageUnavailableError):  # what was on its way when the service came back
        await mirror.synced()
    assert await mirror.synced()
    assert await remote_log(remote) == here.log
    await machines.close()
    await restore(remote, machines.folder("two"))
    assert machines("two").log == here.log
    await machines.close()


async def _start(here: Machine) -> LogMirror:
    mirror = here.mirror(interval=0.001)
    await mirror.start()
    return mirror


async def _check(remote: Remote, here: Machine, acknowledged: int) -> None:
    """What is remote now is a prefix, and names no blob that is not there."""
    down, remote.down = remote.down, False
    try:
        sent = await remote_log(remote)  # first: the mirror goes on meanwhile
        items = await remote.bucket.list()
    finally:
        remote.down = down
    listing = read_listing("", [(item.key, item.size, item.etag) for item in items])
    assert here.log.startswith(sent)
    assert len(sent) >= acknowledged
    named, _ = named_in(sent, blobs_of)
    assert named <= set(listing.blobs)
