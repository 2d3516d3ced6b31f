"""The one background loop."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time

import pytest

from conjure_jupyter.engine import engine


async def give(value: int) -> int:
    await asyncio.sleep(0)
    return value


def test_sync_callers_get_results_and_errors() -> None:
    async def fail() -> None:
        raise ValueError("told")

    assert engine().run(give(3)) == 3
    with pytest.raises(ValueError, match="told"):
        engine().run(fail())


async def test_async_callers_keep_their_own_loop() -> None:
    async def where() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    theirs = await engine().submit(where()).wait_async()
    assert theirs is engine().loop
    assert theirs is not asyncio.get_running_loop()


def test_a_call_from_inside_is_refused_instead_of_waiting_for_itself() -> None:
    async def inside() -> None:
        engine().run(give(1))

    with pytest.raises(RuntimeError, match="async twin"):
        engine().run(inside())


async def test_cancelling_the_waiter_cancels_the_work() -> None:
    ended = threading.Event()

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    waiter = asyncio.ensure_future(engine().submit(work()).wait_async())
    await asyncio.sleep(0.05)
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    assert await asyncio.to_thread(ended.wait, 5)


def test_an_interrupt_waits_for_the_clean_up() -> None:
    cleaned = threading.Event()

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.2)
            cleaned.set()

    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        engine().run(work())
    assert cleaned.is_set()


def test_done_means_the_clean_up_is_over() -> None:
    cleaned = threading.Event()

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.1)
            cleaned.set()

    job = engine().submit(work())
    time.sleep(0.05)
    job.cancel()
    assert job.settle(5)
    assert cleaned.is_set()


@pytest.mark.filterwarnings(
    "ignore:This process .* is multi-threaded:DeprecationWarning"
)  # the case under test
def test_a_forked_child_gets_an_engine_of_its_own() -> None:
    engine().run(give(1))
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if engine().run(give(7)) == 7 else 1)
        except BaseException:  # noqa: BLE001  the child must not return into pytest
            os._exit(2)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert engine().run(give(2)) == 2


def test_work_that_exits_does_not_take_the_engine_with_it() -> None:
    async def leave() -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        engine().run(leave())
    assert engine().run(give(4)) == 4


def test_a_callback_that_fails_keeps_nobody_waiting() -> None:
    called = threading.Event()

    def fail() -> None:
        raise RuntimeError("its loop was closed")

    job = engine().submit(asyncio.sleep(0.05))
    job.on_done(fail)
    job.on_done(called.set)
    assert called.wait(10)
