"""How much of a command's output is kept, and who hears it."""

from __future__ import annotations

import asyncio

from ..checks import equal, true
from .place import PATIENCE, Place
from .suite import Suite, check


class OutputChecks(Suite):
    """Output bounds and listeners."""

    @check
    async def test_head_and_tail_are_kept(self, place: Place) -> None:
        """A line between them says how much was cut."""
        result = await place.run("seq 1 100000", output_limit=1000)
        equal(result.total_bytes, 588_895)
        true(result.truncated_bytes + 1000 >= 588_895 > result.truncated_bytes > 587_000, "figures add up")
        true(result.text.startswith("1\n2\n3\n"), "the head is kept")
        true(result.text.endswith("99999\n100000\n"), "the tail is kept")
        true(f"\n[... {result.truncated_bytes} bytes cut ...]\n" in result.text, "the cut is told")

    @check
    async def test_output_of_just_the_limit_is_whole(self, place: Place) -> None:
        """The limit itself is within."""
        result = await place.run("head -c 1000 /dev/zero | tr '\\0' x", output_limit=1000)
        equal((len(result.output), result.truncated_bytes), (1000, 0))

    @check
    async def test_a_cut_leaves_whole_characters(self, place: Place) -> None:
        """On both sides of it."""
        result = await place.run("for i in {1..2000}; do printf '✓'; done", output_limit=1001)
        true("\ufffd" not in result.text, "no broken character")
        true(result.truncated_bytes > 0, "something was cut")

    @check
    async def test_a_flood_stays_bounded(self, place: Place) -> None:
        """All of it is counted, little is kept."""
        result = await place.run("head -c 100000000 /dev/zero", output_limit=10_000)
        equal(result.total_bytes, 100_000_000)
        true(len(result.output) < 10_100, "the limit holds")

    @check
    async def test_listener_hears_output_as_it_comes(self, place: Place) -> None:
        """Before the command ends."""
        heard: list[bytes] = []
        first = asyncio.Event()

        def listen(data: bytes) -> None:
            heard.append(data)
            first.set()

        command = "echo one; until test -e go; do sleep 0.02; done; echo two"
        work = place.executor.run(command, place.context, timeout=2 * PATIENCE, on_output=listen)
        running = asyncio.create_task(work)
        await asyncio.wait_for(first.wait(), PATIENCE)
        equal(b"".join(heard), b"one\n")
        await place.write("go")
        equal((await running).output, b"one\ntwo\n")
        equal(b"".join(heard), b"one\ntwo\n")

    @check
    async def test_listener_is_bounded(self, place: Place) -> None:
        """By the same limit, from the head."""
        heard: list[bytes] = []
        context = place.context.with_(output_limit=5000)
        await place.executor.run("seq 1 50000", context, timeout=20, on_output=heard.append)
        equal(sum(map(len, heard)), 5000)
        true(b"".join(heard).startswith(b"1\n2\n3\n"), "from the head")

    @check
    async def test_a_failing_listener_loses_nothing(self, place: Place) -> None:
        """Its fault is not the command's."""

        def listen(data: bytes) -> None:
            raise ValueError(data)

        result = await place.executor.run("seq 1 3", place.context, timeout=20, on_output=listen)
        equal((result.output, result.exit_code), (b"1\n2\n3\n", 0))
