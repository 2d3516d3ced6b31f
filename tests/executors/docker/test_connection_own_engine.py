"""What needs an engine of the test's own: it stops, crashes, hangs and comes back, and is pruned whole."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from conjure_jupyter.errors import DockerUnavailableError
from conjure_jupyter.executors.docker import wire
from conjure_jupyter.executors.docker.connection import Engine
from conjure_jupyter.executors.docker.container import Container
from conjure_jupyter.executors.docker.link import LinkLostError
from conjure_jupyter.executors.docker.owner import OWNER, labels, owner
from conjure_jupyter.executors.docker.sweep import prune
from scripts.setup_docker import ARCHIVE, IMAGE, SEARCH, answers

from . import images
from .containers import exists, plan, shell, until

pytestmark = pytest.mark.docker

#: Seconds after which a call that waits for a dead engine must have ended; far below any limit of ours.
QUICKLY = 10.0


class OwnEngine:
    """A dockerd that a test may end as it likes."""

    def __init__(self, folder: Path, program: str) -> None:
        self.folder = folder
        self.address = f"unix://{folder}/e.sock"
        self._command = [
            program,
            "--bridge=none",
            "--iptables=false",
            "--ip6tables=false",
            "-H",
            self.address,
        ]
        self._command += [
            "--data-root",
            f"{folder}/data",
            "--exec-root",
            f"{folder}/run",
            "-p",
            f"{folder}/pid",
        ]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        (self.folder / "pid").unlink(missing_ok=True)
        # The helper of a killed dockerd dies with it; where nobody waits for the dead, it seems to live.
        (self.folder / "run/containerd/containerd.pid").unlink(missing_ok=True)
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                self._command,
                env={**os.environ, "PATH": SEARCH},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + 60
        while not answers(self.address):
            if self.process.poll() is not None or time.monotonic() > deadline:
                pytest.skip("no second engine can be started here")
            time.sleep(0.1)

    def end(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)
        self.process.wait(60)

    def remove(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.end(signal.SIGTERM)
        for line in reversed(Path("/proc/self/mountinfo").read_text().splitlines()):
            if (point := line.split()[4]).startswith(f"{self.folder}/"):
                subprocess.run(["umount", "--lazy", point], capture_output=True, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture(scope="module")
def own() -> Iterator[OwnEngine]:
    program = shutil.which("dockerd", path=SEARCH)
    if program is None or os.geteuid() != 0 or not ARCHIVE.exists():
        pytest.skip("a second engine needs dockerd, root and the image of the tests")
    engine = OwnEngine(Path(tempfile.mkdtemp(prefix="conjure-own-")), program)
    try:
        engine.start()
        images.base(engine.address)
        yield engine
    finally:
        engine.remove()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_restarted_in_the_middle(own: OwnEngine, number: signal.Signals) -> None:
    engine = await Engine.connect(own.address)
    container = await Container.create(engine, plan(IMAGE))
    stream = await container.attach(["bash", "-c", "echo started; sleep 100"])
    assert await stream.read() == ("stdout", b"started\n")
    reading = asyncio.ensure_future(stream.read())
    await asyncio.to_thread(own.end, number)
    assert await asyncio.wait_for(reading, QUICKLY) is None
    await asyncio.wait_for(container.ended(), QUICKLY)
    assert container.gone
    assert "engine was stopped" in await container.why()
    with pytest.raises(LinkLostError):
        await stream.write(b"x")
    with pytest.raises(LinkLostError):
        await container.attach(["true"])
    with pytest.raises(DockerUnavailableError, match="start it"):
        await Container.create(engine, plan(IMAGE))
    await asyncio.wait_for(container.remove(), QUICKLY)

    await asyncio.to_thread(own.start)
    again = await Container.create(engine, plan(IMAGE))
    assert await shell(again, "echo back") == "back"
    await again.remove()
    await engine.close()


async def test_why_after_a_restart(own: OwnEngine) -> None:
    engine = await Engine.connect(own.address)
    container = await Container.create(engine, plan(IMAGE))
    await asyncio.to_thread(own.end, signal.SIGTERM)
    await asyncio.to_thread(own.start)
    await asyncio.wait_for(container.ended(), QUICKLY)
    assert "engine is restarted" in await container.why()
    await container.remove()
    await engine.close()


async def test_one_that_hangs(own: OwnEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = await Engine.connect(own.address)
    container = await Container.create(engine, plan(IMAGE))
    monkeypatch.setattr(engine.api, "timeout", 1.0)
    monkeypatch.setattr(wire, "ANSWER_LIMIT", 1.0)
    assert own.process is not None
    own.process.send_signal(signal.SIGSTOP)
    try:
        with pytest.raises(LinkLostError, match="does not answer"):
            await asyncio.wait_for(container.attach(["true"]), QUICKLY)
        await asyncio.wait_for(container.remove(), QUICKLY)
    finally:
        own.process.send_signal(signal.SIGCONT)

    async def gone() -> bool:
        return not await exists(engine, container.id)

    await until(gone, QUICKLY)  # what was asked for while it hung is done, or the guard has ended it
    await engine.close()


async def test_pruning(own: OwnEngine) -> None:
    engine = await Engine.connect(own.address)
    ours = await Container.create(engine, plan(IMAGE))

    async def made(label: str | None) -> tuple[str, str]:
        tags = {} if label is None else {**labels("pruned", "container"), OWNER: label}
        volume = await engine.call(engine.api.create_volume, labels=tags)
        container = await engine.call(engine.api.create_container, IMAGE, ["true"], labels=tags)
        return volume["Name"], container["Id"]

    async def there(volume: str, container: str) -> bool:
        listed = await engine.call(engine.api.volumes)
        names = {each["Name"] for each in listed["Volumes"] or ()}
        assert (volume in names) == await exists(engine, container)
        return volume in names

    unknown, live, plain = [await made(label) for label in ("other:1:2:3:", owner(), None)]
    swept = await prune(engine, everything=False)
    assert (len(swept.containers), swept.volumes) == (1, (unknown[0],))
    assert [await there(*each) for each in (unknown, live, plain)] == [False, True, True]
    assert not ours.gone

    swept = await prune(engine, everything=True)
    assert (len(swept.containers), swept.volumes) == (2, (live[0],))
    assert [await there(*each) for each in (live, plain)] == [False, True]
    await asyncio.wait_for(ours.ended(), QUICKLY)
    await ours.remove()
    await engine.close()
