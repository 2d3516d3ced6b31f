"""Those who want to hear of files do, and those who fail break nothing."""

from __future__ import annotations

import asyncio
import logging
from typing import get_args

import pytest

from conjure_jupyter.fileref import FileRef
from conjure_jupyter.storage import FileCallbacks, FileEvent

REF = FileRef("a", 1, "text/plain", "")


@pytest.mark.parametrize("event", get_args(FileEvent))
def test_each_event_has_its_listener(event: FileEvent) -> None:
    heard: list[tuple[str, FileRef, str]] = []
    listeners = {
        f"on_file_{name}": lambda ref, session, name=name: heard.append((name, ref, session))
        for name in get_args(FileEvent)
    }
    FileCallbacks(**listeners).fire(event, REF, "s1")
    FileCallbacks().fire(event, REF, "s1")
    assert heard == [(event, REF, "s1")]


def test_one_that_raises_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def broken(ref: FileRef, session_id: str) -> None:
        raise ValueError("boom")

    FileCallbacks(on_file_created=broken).fire("created", REF, "s1")
    assert [record.exc_info is not None for record in caplog.records] == [True]
    assert caplog.records[0].levelno == logging.ERROR


async def test_a_coroutine_function_runs_on_the_loop(caplog: pytest.LogCaptureFixture) -> None:
    heard = asyncio.Event()

    async def listener(ref: FileRef, session_id: str) -> None:
        heard.set()

    async def broken(ref: FileRef, session_id: str) -> None:
        raise ValueError("boom")

    callbacks = FileCallbacks(on_file_synced=listener, on_file_deleted=broken)
    callbacks.fire("deleted", REF, "s1")
    callbacks.fire("synced", REF, "s1")
    await asyncio.wait_for(heard.wait(), 10)
    assert "on_file_deleted failed" in caplog.text


def test_a_coroutine_function_runs_without_a_loop() -> None:
    heard: list[str] = []

    async def listener(ref: FileRef, session_id: str) -> None:
        await asyncio.sleep(0)
        heard.append(session_id)

    FileCallbacks(on_file_modified=listener).fire("modified", REF, "s1")
    assert heard == ["s1"]
