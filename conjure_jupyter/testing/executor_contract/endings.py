"""Time limits, cancellation, and what tries to outlive its command."""

from __future__ import annotations

import asyncio
import secrets
import time

from ..checks import equal, expecting, true
from .place import Place
from .suite import Suite, check

#: Seconds past its time limit within which a command has been ended and told.
GRACE = 2.0

#: Each prints ``begun`` at once and leaves processes that carry the token in their command line.
ESCAPEES = {
    "foreground": "echo begun; {sleeper}",
    "background, then exit": "({sleeper}) >/dev/null 2>&1 & echo begun; exit 0",
    "background and wait": "{sleeper} & echo begun; wait",
    "grandchild holds the pipe": "(({sleeper}) &) ; echo begun; {sleeper}",
    "nohup": "nohup {sleeper} >/dev/null 2>&1 & echo begun; {sleeper}",
    "setsid": "setsid {sleeper} & echo begun; {sleeper}",
    "double fork": "(setsid bash -c '({sleeper} >/dev/null 2>&1 &) ; exit' &) ; echo begun; {sleeper}",
    "ignores TERM": "trap '' TERM INT HUP; echo begun; while :; do {sleeper}; done",
    "process substitution": "exec > >(trap '' TERM; tee /dev/null); echo begun; {sleeper}",
    "output flood": "echo begun; ({sleeper}) & yes {token}",
    "job control": "set -m; {sleeper} & echo begun; ({sleeper} &); {sleeper}",
}


def escape(kind: str, token: str) -> str:
    """The command of an escapee."""
    # ``exec -a`` puts the token into the command line.
    return ESCAPEES[kind].format(sleeper=f'bash -c "exec -a {token} sleep 300"', token=token)


def new_token() -> str:
    """What marks the processes of one test."""
    return f"contract-{secrets.token_hex(6)}"


class EndingChecks(Suite):
    """Endings."""

    @check
    async def test_time_limit(self, place: Place) -> None:
        """What was printed until then is kept."""
        result = await place.run("echo begun; sleep 60; echo never", timeout=0.5)
        equal((result.timed_out, result.exit_code, result.output), (True, None, b"begun\n"))

    @check
    async def test_the_context_has_the_time_limit_of_a_call_without_one(self, place: Place) -> None:
        """``context.timeout``."""
        result = await place.executor.run("sleep 60", place.context.with_(timeout=0.2))
        true(result.timed_out, "the context's limit counts")

    def test_escape_foreground(self) -> None:
        """A plain command that is still running."""
        self._nothing_outlives("foreground")

    def test_escape_background_then_exit(self) -> None:
        """What is left in the background when bash exits."""
        self._nothing_outlives("background, then exit")

    def test_escape_background_and_wait(self) -> None:
        """A background process that bash waits for."""
        self._nothing_outlives("background and wait")

    def test_escape_grandchild_holds_the_pipe(self) -> None:
        """One that keeps the output open."""
        self._nothing_outlives("grandchild holds the pipe")

    def test_escape_nohup(self) -> None:
        """One that ignores a hang-up."""
        self._nothing_outlives("nohup")

    def test_escape_setsid(self) -> None:
        """One in a session of its own."""
        self._nothing_outlives("setsid")

    def test_escape_double_fork(self) -> None:
        """One whose parents are gone, as daemons do."""
        self._nothing_outlives("double fork")

    def test_escape_ignoring_term(self) -> None:
        """One that will not be asked."""
        self._nothing_outlives("ignores TERM")

    def test_escape_process_substitution(self) -> None:
        """One behind the output."""
        self._nothing_outlives("process substitution")

    def test_escape_output_flood(self) -> None:
        """One that prints without end."""
        self._nothing_outlives("output flood")

    def test_escape_job_control(self) -> None:
        """Process groups of their own."""
        self._nothing_outlives("job control")

    def _nothing_outlives(self, kind: str) -> None:
        async def steps(place: Place) -> None:
            token, limit = new_token(), 0.7
            begun = time.monotonic()
            result = await place.run(escape(kind, token), timeout=limit)
            took = time.monotonic() - begun
            await place.expect_gone(token)
            true(took < limit + GRACE, f"it ended in time, not after {took:.1f} s")
            true(b"begun" in result.output, "it had begun")
            equal(result.timed_out, kind != "background, then exit")

        self.run_in_place(steps)

    @check
    async def test_leftovers_are_counted(self, place: Place) -> None:
        """And ended, while the result is the command's own."""
        token = new_token()
        result = await place.run(f'for i in 1 2 3; do bash -c "exec -a {token} sleep 300" & done; echo ok')
        equal((result.exit_code, result.leftovers, result.output), (0, 3, b"ok\n"))
        await place.expect_gone(token)

    @check
    async def test_last_lines_of_a_substitution_are_kept(self, place: Place) -> None:
        """What ends right after the command may still write."""
        equal(await place.text("echo kept > >(sleep 0.02; cat)"), "kept\n")

    @check
    async def test_term_lets_a_command_clean_up(self, place: Place) -> None:
        """Once: one signal, not two."""
        result = await place.run("trap 'echo bye; exit 1' TERM; echo begun; sleep 60 & wait", timeout=0.5)
        equal(result.output, b"begun\nbye\n")

    @check
    async def test_stopped_processes_end_too(self, place: Place) -> None:
        """They take no signal but the last."""
        token = new_token()
        sleeper = f'bash -c "exec -a {token} sleep 300" & '
        result = await place.run(f"{sleeper} kill -STOP $!; kill -STOP $$", timeout=0.5)
        true(result.timed_out, "it reached its limit")
        await place.expect_gone(token)

    @check
    async def test_a_fork_race_is_won(self, place: Place) -> None:
        """Processes that fork and exit all the time."""
        token = new_token()
        respawn = f"trap '' TERM; f() {{ : {token}; (sleep 0.01; f) & }}; f; f; f; sleep 300"
        result = await place.run(f'bash -c "{respawn}" {token}', timeout=0.5)
        true(result.timed_out, "it reached its limit")
        for _ in range(5):  # one that forks and exits can slip past one look
            await place.expect_gone(token)

    @check
    async def test_cancellation_ends_the_tree_first(self, place: Place) -> None:
        """Nothing lives any more when the caller hears of it."""
        token = new_token()
        command = (
            f"trap '' TERM; setsid bash -c 'exec -a {token} sleep 300' & touch begun; : {token}; wait; wait"
        )
        running = asyncio.create_task(place.run(command))
        await place.until("begun")
        begun = time.monotonic()
        running.cancel()
        with expecting(asyncio.CancelledError):
            await running
        took = time.monotonic() - begun
        await place.expect_gone(token)
        true(took < GRACE, f"it ended in time, not after {took:.1f} s")

    @check
    async def test_two_cancellations_leave_nothing(self, place: Place) -> None:
        """As when someone presses the key again."""
        token = new_token()
        command = f"trap '' TERM; bash -c 'exec -a {token} sleep 300' & touch begun; while :; do wait; done"
        running = asyncio.create_task(place.run(command))
        await place.until("begun")
        running.cancel()
        await asyncio.sleep(0.05)
        running.cancel()
        with expecting(asyncio.CancelledError):
            await running
        await place.expect_gone(token)

    @check
    async def test_cancelled_before_it_began(self, place: Place) -> None:
        """The next command finds all in order."""
        token = new_token()
        running = asyncio.create_task(place.run(f"bash -c 'exec -a {token} sleep 60'"))
        await asyncio.sleep(0)
        running.cancel()
        with expecting(asyncio.CancelledError):
            await running
        await place.expect_gone(token)

    @check
    async def test_work_goes_on_after_all_of_that(self, place: Place) -> None:
        """A time limit and a killed shell leave the executor as it was."""
        await place.run("sleep 60", timeout=0.1)
        await place.run("kill -9 $$")
        equal(await place.text("echo fine"), "fine\n")
