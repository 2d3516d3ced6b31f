"""Several calls at the same time."""

from __future__ import annotations

import asyncio

from ..checks import equal, true
from .place import Place
from .suite import Suite, check


class ConcurrencyChecks(Suite):
    """Concurrency."""

    @check
    async def test_commands_run_at_the_same_time(self, place: Place) -> None:
        """Each waits for the file the other makes: one after the other they would never end."""
        one = place.run("touch a; until test -e b; do sleep 0.01; done; echo one")
        two = place.run("touch b; until test -e a; do sleep 0.01; done; echo two")
        equal([result.output for result in await asyncio.gather(one, two)], [b"one\n", b"two\n"])

    @check
    async def test_outputs_do_not_mix(self, place: Place) -> None:
        """Each command has its own."""
        results = await asyncio.gather(*(place.run(f"seq {n}000 {n}999") for n in range(1, 9)))
        for n, result in enumerate(results, 1):
            equal(result.text.split(), [str(k) for k in range(n * 1000, n * 1000 + 1000)])

    @check
    async def test_one_time_limit_ends_one_command(self, place: Place) -> None:
        """The others go on."""
        slow = place.run("sleep 60", timeout=0.3)
        other = place.run("sleep 1; echo done")
        ended, done = await asyncio.gather(slow, other)
        true(ended.timed_out, "one reached its limit")
        equal((done.timed_out, done.output), (False, b"done\n"))

    @check
    async def test_writes_of_one_file_never_mix(self, place: Place) -> None:
        """The last one counts, whole."""
        texts = [bytes([65 + n]) * 50_000 for n in range(8)]
        await asyncio.gather(*(place.write("one", text) for text in texts))
        true(await place.read("one") in texts, "one of them, whole")

    @check
    async def test_a_reader_sees_old_or_new(self, place: Place) -> None:
        """Never a part, while a file is written over and over."""
        texts = [bytes([65 + n]) * 100_000 for n in range(6)]
        await place.write("one", texts[0])

        async def write() -> None:
            for text in texts:
                await place.write("one", text)

        writing = asyncio.create_task(write())
        seen = [await place.read("one") for _ in range(20)]
        await writing
        true(all(data in texts for data in seen), "whole at every look")

    @check
    async def test_files_while_a_command_runs(self, place: Place) -> None:
        """Calls for files do not wait for commands."""
        running = asyncio.create_task(place.run("until test -e go; do sleep 0.02; done; cat go"))
        await place.write("other", b"1")
        equal(await place.read("other"), b"1")
        await place.write("go", b"on")
        equal((await running).output, b"on")

    @check
    async def test_many_calls_at_once(self, place: Place) -> None:
        """None is lost or answered with another's result."""
        commands = [place.run(f"echo {n}; exit {n}") for n in range(20)]
        files = [place.write(f"f/{n}", str(n).encode()) for n in range(20)]
        results = (await asyncio.gather(*commands, *files))[:20]
        equal([(r.text, r.exit_code) for r in results if r], [(f"{n}\n", n) for n in range(20)])
        equal(
            await asyncio.gather(*(place.read(f"f/{n}") for n in range(20))), [b"%d" % n for n in range(20)]
        )
