"""When a block is on disk, who waits for it, and what is said when the disk refuses."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conjure_jupyter.errors import TimelineError
from conjure_jupyter.timeline import Timeline, durable, log


class Disk:
    """Stands in for the flush of the log: counts, holds, fails."""

    def __init__(self) -> None:
        self.flushes = 0
        self.begun = threading.Semaphore(0)
        self.gate = threading.Event()
        self.gate.set()
        self.failure: OSError | None = None
        self.at_start: Callable[[], None] = lambda: None

    def flush(self, fd: int) -> None:
        self.flushes += 1
        self.at_start()
        self.begun.release()
        assert self.gate.wait(10)
        if self.failure is not None:
            raise self.failure
        os.fsync(fd)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk = Disk()
    monkeypatch.setattr(log, "flush_file", disk.flush)
    return disk


@pytest.fixture
def timeline(tmp_path: Path, disk: Disk) -> Iterator[Timeline]:
    timeline = Timeline.create(tmp_path / "s1", {})
    yield timeline
    disk.gate.set()
    timeline.close()


async def begun(disk: Disk) -> None:
    assert await asyncio.to_thread(disk.begun.acquire, timeout=10)


async def test_one_flush_serves_all_who_wait(timeline: Timeline, disk: Disk) -> None:
    disk.gate.clear()
    first = asyncio.create_task(timeline.synced())
    await begun(disk)
    waiting = []
    for i in range(20):
        timeline.append("notice", {"i": i})
        waiting.append(asyncio.create_task(timeline.synced()))
    await asyncio.sleep(0)
    assert timeline.durable == 0
    disk.gate.set()

    assert await asyncio.gather(first, *waiting) == [True] * 21
    assert disk.flushes == 2
    assert timeline.durable == 21


async def test_a_flush_speaks_only_for_what_was_written_before_it_began(
    timeline: Timeline, disk: Disk
) -> None:
    durable_at_start: list[int] = []
    disk.at_start = lambda: durable_at_start.append(timeline.durable)
    disk.gate.clear()
    first = asyncio.create_task(timeline.synced())
    await begun(disk)
    timeline.append("notice", {})
    second = asyncio.create_task(timeline.synced())
    await asyncio.sleep(0)
    disk.gate.set()
    await first
    await second

    assert durable_at_start == [0, 1]
    assert timeline.durable == 2
    assert disk.flushes == 2


async def test_what_is_on_disk_is_not_flushed_again(timeline: Timeline, disk: Disk) -> None:
    await timeline.synced()
    await timeline.synced()
    timeline.sync()

    assert disk.flushes == 1


async def test_the_event_loop_goes_on_while_the_disk_works(timeline: Timeline, disk: Disk) -> None:
    disk.gate.clear()
    waiting = asyncio.create_task(timeline.synced())
    await begun(disk)
    timeline.append("notice", {"while": "flushing"})
    assert not waiting.done()
    disk.gate.set()

    assert await waiting


async def test_who_stops_waiting_takes_nothing_from_the_others(timeline: Timeline, disk: Disk) -> None:
    disk.gate.clear()
    first = asyncio.create_task(timeline.synced())
    await begun(disk)
    timeline.append("notice", {})
    second, third = (asyncio.create_task(timeline.synced()) for _ in range(2))
    await asyncio.sleep(0)
    for task in (first, second):
        task.cancel()
    await asyncio.sleep(0)
    disk.gate.set()

    assert await third
    assert timeline.durable == 2


async def test_after_a_failed_flush_nothing_is_claimed_any_more(timeline: Timeline, disk: Disk) -> None:
    await timeline.synced()
    disk.failure = OSError(errno.EIO, "Input/output error")
    timeline.append("notice", {"text": "doubtful"})
    for _ in range(2):
        with pytest.raises(TimelineError, match=r"could not be put on disk \(Input/output error\)"):
            await timeline.synced()
    disk.failure = None  # the kernel has forgotten the pages: a flush that succeeds now says nothing
    with pytest.raises(TimelineError):
        timeline.sync()
    timeline.append("notice", {"text": "still written"})
    with pytest.raises(TimelineError):
        await timeline.synced()

    assert timeline.durable == 1
    assert disk.flushes == 2
    assert len(Timeline.open(timeline.folder, readonly=True).blocks) == 3


async def test_all_who_wait_hear_of_the_failure(timeline: Timeline, disk: Disk) -> None:
    disk.gate.clear()
    disk.failure = OSError(errno.ENOSPC, "No space left on device")
    first = asyncio.create_task(timeline.synced())
    await begun(disk)
    timeline.append("notice", {})
    second = asyncio.create_task(timeline.synced())
    await asyncio.sleep(0)
    disk.gate.set()
    heard = await asyncio.gather(first, second, return_exceptions=True)

    assert [type(error) for error in heard] == [TimelineError, TimelineError]


async def test_threads_and_tasks_wait_together(timeline: Timeline, disk: Disk) -> None:
    disk.gate.clear()
    task = asyncio.create_task(timeline.synced())
    await begun(disk)
    timeline.append("notice", {})
    thread = asyncio.create_task(asyncio.to_thread(timeline.sync))
    await asyncio.sleep(0.01)
    disk.gate.set()

    assert await task
    assert await thread
    assert timeline.durable == 2


def test_a_deleted_log_is_not_called_safe(timeline: Timeline) -> None:
    timeline.path.unlink()
    timeline.append("notice", {})

    with pytest.raises(TimelineError, match="deleted"):
        timeline.sync()
    assert timeline.durable == 0


def test_a_new_log_gets_its_name_on_disk_up_to_the_folder_that_was_there(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(log, "flush_folder", synced.append)
    timeline = Timeline.create(tmp_path / ".conjure" / "sessions" / "s1", {})
    assert synced == []
    timeline.sync()
    timeline.append("notice", {})
    timeline.sync()
    timeline.close()

    folder = timeline.folder
    assert sorted(synced) == [tmp_path, tmp_path / ".conjure", folder.parent, folder]


def test_macos_flushes_the_drive_and_falls_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[int] = []

    def fcntl_(fd: int, command: int) -> None:
        asked.append(command)
        if len(asked) > 1:
            raise OSError(errno.ENOTSUP, "not supported")

    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", fcntl_)
    fallbacks: list[int] = []
    monkeypatch.setattr(os, "fsync", fallbacks.append)
    durable.flush_file(7)
    durable.flush_file(7)

    assert asked == [51, 51]
    assert fallbacks == [7]


def test_a_real_disk(tmp_path: Path) -> None:
    timeline = Timeline.create(tmp_path / "s1", {})
    assert timeline.sync()
    timeline.close()
    again = Timeline.open(timeline.folder)
    assert again.durable == 0, "what an earlier process wrote may not be on disk yet"
    again.sync()

    assert again.durable == 1
    again.close()
