"""``kill -9`` at random points of a writer, and two processes at one local copy."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conjure_jupyter.errors import StorageConflictError
from conjure_jupyter.storage import Backoff, S3Storage
from tests.s3 import Server

from .proxy import Fault, Proxy

ROOT = Path(__file__).parents[2]
KILLS = 9


class Writer:
    """A process that writes; ``acknowledged`` is what it said it had kept, the last of a key counting."""

    def __init__(self, options: dict[str, Any], start: int = 0) -> None:
        self.lines: list[str] = []
        command = [sys.executable, "-m", "tests.storage.writer_child", json.dumps(options), str(start)]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.lines += [self.process.stdout.readline()]
        self.lines.extend(self.process.stdout)

    def wait(self, lines: int) -> None:
        deadline = time.monotonic() + 60
        while len(self.lines) < lines and self.process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.002)

    def kill(self) -> dict[str, str | None]:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()
        whole = [line for line in self.lines[1:] if line.endswith("\n")]
        return dict(map(json.loads, whole))


@contextlib.contextmanager
def writing(options: dict[str, Any], start: int = 0) -> Iterator[Writer]:
    writer = Writer(options, start)
    try:
        yield writer
    finally:
        writer.kill()


@pytest.fixture
def proxy(files_server: Server) -> Iterator[Proxy]:
    with Proxy(files_server.port) as running:
        yield running


async def test_nothing_acknowledged_is_lost(
    files_server: Server, proxy: Proxy, prefix: str, cache: Path
) -> None:
    options = {**files_server.options(prefix, port=proxy.port), "cache_path": str(cache)}
    chance = random.Random(7)
    expected: dict[str, str | None] = {}
    start = 0
    for round_ in range(KILLS):
        proxy.online = round_ % 3 != 1
        proxy.faults = [Fault("500 after", times=2), Fault("reset", times=2)] if round_ % 3 == 2 else []
        with writing(options, start) as writer:
            writer.wait(1 + chance.randrange(1, 40))
            await asyncio.sleep(chance.random() * 0.02)
            acknowledged = writer.kill()
        assert writer.lines[:1] == ["ready\n"]
        expected.update(acknowledged)
        start += 1000
    proxy.online, proxy.faults = True, []
    storage = S3Storage(**options, backoff=Backoff(first=0.01, most=0.05))
    await storage.init("s1")
    await storage.sync_to_remote()
    there = files_server.files(f"{prefix}/s1")
    for key, content in expected.items():
        if key.startswith("gone/"):  # a deletion may have been kept, and its acknowledgement cut off
            assert content is not None or key not in there
            continue
        if key == "state":  # the one after the last may have been on its way to the disk
            assert int(there[key]) >= int(content or 0)
        elif key == "large":
            assert there[key] == there[key][:8] * 40_000, "one version, whole"
            assert int(there[key][:8]) >= int((content or "")[:8])
        else:
            assert there[key].decode() == content, key
        assert await storage.read(key) == there[key]
    segments = [key.rpartition("/")[2] for key in proxy.puts("segment-")]
    assert sorted({*segments}) == list(dict.fromkeys(segments)), "segments arrive in order"
    await storage.close()


async def test_one_process_at_a_time_drains(
    files_server: Server, proxy: Proxy, prefix: str, cache: Path
) -> None:
    proxy.online = False
    options = {**files_server.options(prefix, port=proxy.port), "cache_path": str(cache)}
    with writing(options) as writer:
        writer.wait(6)
        storage = S3Storage(**options, backoff=Backoff(first=0.01, most=0.05))
        await storage.init("s1")
        assert (await storage.read("state")).isdigit()
        with pytest.raises(StorageConflictError, match="another process"):
            await storage.write("a", b"1")
        with pytest.raises(StorageConflictError, match="another process"):
            await storage.sync_to_remote()
        expected = writer.kill()
    proxy.online = True
    await storage.write("a", b"1")  # the other has gone: its queue is ours now
    await storage.sync_to_remote()
    there = files_server.files(f"{prefix}/s1")
    assert there["a"] == b"1"
    for key, content in expected.items():
        if key.startswith(("blobs/", "segment-")):
            assert there[key].decode() == content
    await storage.close()


async def test_what_waits_for_one_address_never_goes_to_another(
    files_server: Server, proxy: Proxy, prefix: str, cache: Path
) -> None:
    proxy.online = False
    first = S3Storage(**files_server.options(prefix, port=proxy.port), cache_path=cache)
    await first.init("s1")
    await first.write("a", b"1")
    await first.close()
    other = S3Storage(**files_server.options(f"{prefix}/other"), cache_path=cache)
    with pytest.raises(StorageConflictError, match="wait here"):
        await other.init("s1")
    assert files_server.files(f"{prefix}/other") == {}
