"""The resident and its link, over a process of this machine: the same code as in a container."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import sys
import time
import zlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from conjure_jupyter.errors import (
    ConjureError,
    ExecutorError,
    PathNotFoundError,
    PermissionDeniedError,
    ToolError,
)
from conjure_jupyter.executors import ExecutionContext
from conjure_jupyter.executors.docker.link import LinkLostError, NoPythonError
from conjure_jupyter.executors.docker.resident import ARGUMENTS, ResidentLink
from conjure_jupyter.executors.docker.resident import channel as channel_module
from conjure_jupyter.executors.docker.resident import link as link_module
from conjure_jupyter.executors.docker.resident.boot import BOOT
from conjure_jupyter.executors.docker.resident.payload import files
from conjure_jupyter.testing.executor_contract.endings import ESCAPEES
from conjure_jupyter.testing.executor_contract.endings import escape as script
from tests.executors.processes import alive, gone, until

from .local_stream import LocalStream

COMMAND = (sys.executable, *ARGUMENTS[1:])


@pytest.fixture
async def stream(tmp_path: Path) -> AsyncIterator[LocalStream]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TMPDIR": str(tmp_path), "IMAGE": "yes"}
    started = await LocalStream.start(COMMAND, environment)
    yield started
    await started.end()


@pytest.fixture
async def link(stream: LocalStream) -> AsyncIterator[ResidentLink]:
    opened = await ResidentLink.open(stream)
    yield opened
    await opened.close()


@pytest.fixture
def context(tmp_path: Path) -> ExecutionContext:
    work = tmp_path / "work"
    work.mkdir()
    return ExecutionContext(working_directory=work, environment={"GIVEN": "yes"})


def token() -> str:
    return f"resident-{secrets.token_hex(6)}"


class TestCommands:
    async def test_output_and_exit_code(self, link: ResidentLink, context: ExecutionContext) -> None:
        result = await link.run("echo out; echo err >&2; printf '\\xff\\0'; exit 3", context, timeout=20)
        assert (result.output, result.exit_code, result.notes) == (b"out\nerr\n\xff\0", 3, ())

    async def test_output_is_heard_while_it_runs(self, link: ResidentLink, context: ExecutionContext) -> None:
        first = asyncio.Event()
        heard: list[bytes] = []

        def hear(data: bytes) -> None:
            heard.append(data)
            first.set()

        call = asyncio.ensure_future(
            link.run(
                "echo one; until [ -e go ]; do sleep 0.02; done; echo two",
                context,
                timeout=20,
                on_output=hear,
            )
        )
        await asyncio.wait_for(first.wait(), 15)
        await link.write("go", b"", context, mode=None)
        assert (await call).output == b"one\ntwo\n" == b"".join(heard)

    async def test_output_is_bounded(self, link: ResidentLink, context: ExecutionContext) -> None:
        heard: list[bytes] = []
        small = context.with_(output_limit=1000)
        result = await link.run(
            "head -c 5000000 /dev/zero | tr '\\0' x", small, timeout=20, on_output=heard.append
        )
        assert len(b"".join(heard)) == 1000
        assert result.total_bytes == 5_000_000
        assert len(result.output) <= 1064
        assert b"bytes cut" in result.output

    async def test_a_listener_that_fails(self, link: ResidentLink, context: ExecutionContext) -> None:
        def fail(_: bytes) -> None:
            raise ValueError

        assert (await link.run("echo on", context, timeout=20, on_output=fail)).output == b"on\n"

    async def test_environment(self, link: ResidentLink, context: ExecutionContext, tmp_path: Path) -> None:
        told = (await link.run("env", context, timeout=20)).text.splitlines()
        assert {
            "GIVEN=yes",
            "IMAGE=yes",
            "PAGER=cat",
            "LANG=C.UTF-8",
            "TERM=dumb",
            f"HOME={tmp_path}",
        } <= set(told)
        assert not [line for line in told if line.startswith(("LC_", "PYTHON"))]

    async def test_bytes_in_a_command(self, link: ResidentLink, context: ExecutionContext) -> None:
        result = await link.run("printf %s 'é\udcff'", context, timeout=20)
        assert result.output == "é".encode() + b"\xff"
        with pytest.raises(ToolError, match="valid text"):
            await link.run("\ud800", context, timeout=20)

    async def test_a_long_command(self, link: ResidentLink, context: ExecutionContext) -> None:
        result = await link.run(f": {'x' * 3_000_000}\necho done", context, timeout=20)
        assert result.output == b"done\n"

    async def test_too_much_environment(self, link: ResidentLink, context: ExecutionContext) -> None:
        with pytest.raises(ToolError, match="too long"):
            await link.run("true", context.with_(environment={"A": "x" * 2_000_000}), timeout=20)
        assert not link.lost

    async def test_the_folder_is_gone(self, link: ResidentLink, context: ExecutionContext) -> None:
        with pytest.raises(ExecutorError, match="No such file"):
            await link.run("true", context.with_(working_directory=Path("/nowhere")), timeout=20)

    async def test_many_at_once(self, link: ResidentLink, context: ExecutionContext) -> None:
        results = await asyncio.gather(*[link.run(f"echo {n}", context, timeout=30) for n in range(30)])
        assert [result.output for result in results] == [b"%d\n" % n for n in range(30)]

    @pytest.mark.parametrize("kind", sorted(ESCAPEES))
    async def test_the_time_limit(self, link: ResidentLink, context: ExecutionContext, kind: str) -> None:
        mark = token()
        result = await link.run(script(kind, mark), context, timeout=0.5)
        assert result.output.startswith(b"begun")
        assert result.timed_out is (kind != "background, then exit")
        assert gone(mark, within=0.5)

    async def test_cancelling(self, link: ResidentLink, context: ExecutionContext) -> None:
        mark = token()
        call = asyncio.ensure_future(link.run(f"touch begun; {script('setsid', mark)}", context, timeout=60))
        await until(context.working_directory / "begun")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert gone(mark, within=0)
        assert (await link.run("echo on", context, timeout=20)).output == b"on\n"

    async def test_cancelling_at_once(self, link: ResidentLink, context: ExecutionContext) -> None:
        for _ in range(20):
            call = asyncio.ensure_future(link.run("echo x > made; sleep 30", context, timeout=60))
            await asyncio.sleep(0)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
        assert (await link.run("echo on", context, timeout=20)).output == b"on\n"


class TestFiles:
    async def test_large_ones_come_and_go_whole(self, link: ResidentLink, context: ExecutionContext) -> None:
        data = os.urandom(5_000_001)
        await link.write("a/big", data, context, mode=0o640)
        assert await link.read("a/big", context, offset=0, limit=None) == data
        assert await link.read("a/big", context, offset=3, limit=2_000_000) == data[3:2_000_003]
        assert await link.read("a/big", context, offset=5_000_000, limit=1 << 20) == data[-1:]
        assert (await link.stat("a/big", context)).mode == 0o640

    @pytest.mark.parametrize("limit", [None, 0, 1, -1])
    async def test_small_reads(
        self, link: ResidentLink, context: ExecutionContext, limit: int | None
    ) -> None:
        await link.write("empty", b"", context, mode=None)
        await link.write("two", b"ab", context, mode=None)
        assert await link.read("empty", context, offset=0, limit=limit) == b""
        wanted = b"ab" if limit is None else b"ab"[: max(0, limit)]
        assert await link.read("two", context, offset=0, limit=limit) == wanted

    async def test_a_big_one_holds_up_nobody(self, link: ResidentLink, context: ExecutionContext) -> None:
        (context.working_directory / "big").write_bytes(bytes(60_000_000))
        big = asyncio.ensure_future(link.read("big", context, offset=0, limit=None))
        await asyncio.sleep(0)
        await link.stat("big", context)
        assert not big.done()
        assert len(await big) == 60_000_000

    async def test_a_read_that_is_cancelled(self, link: ResidentLink, context: ExecutionContext) -> None:
        (context.working_directory / "big").write_bytes(bytes(60_000_000))
        big = asyncio.ensure_future(link.read("big", context, offset=0, limit=None))
        await link.stat("big", context)
        big.cancel()
        with pytest.raises(asyncio.CancelledError):
            await big
        assert await link.read("big", context, offset=0, limit=5) == bytes(5)

    async def test_a_write_that_is_cancelled_leaves_the_old_file(
        self, link: ResidentLink, context: ExecutionContext
    ) -> None:
        await link.write("kept", b"old", context, mode=None)
        call = asyncio.ensure_future(link.write("kept", bytes(30_000_000), context, mode=None))
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await link.read("kept", context, offset=0, limit=None) == b"old"

    async def test_listing_and_deleting(self, link: ResidentLink, context: ExecutionContext) -> None:
        for name in ("b", "a/c", "a/\udcff\n"):
            await link.write(name, b"x", context, mode=None)
        found = await link.list(".", context, depth=2, limit=100)
        assert [entry.path for entry in found] == ["a", "a/c", "a/\udcff\n", "b"]
        assert len(await link.list(".", context, depth=2, limit=2)) == 2
        await link.delete("b", context)
        with pytest.raises(PathNotFoundError, match="b: no such file"):
            await link.stat("b", context)

    async def test_a_long_listing(self, link: ResidentLink, context: ExecutionContext) -> None:
        for number in range(3000):
            (context.working_directory / f"{number:04}{'x' * 200}").touch()
        found = await link.list(".", context, depth=1, limit=10_000)
        assert [entry.path[:4] for entry in found] == [f"{number:04}" for number in range(3000)]

    @pytest.mark.parametrize(
        ("path", "error", "words"),
        [
            ("none", PathNotFoundError, "none: no such file"),
            ("/etc/passwd", PermissionDeniedError, "/etc/passwd: outside"),
            (".", ToolError, "folder"),
            ("a\0b", ToolError, "NUL"),
            ("\ud800", ToolError, "valid text"),
        ],
    )
    async def test_errors(
        self, link: ResidentLink, context: ExecutionContext, path: str, error: type[Exception], words: str
    ) -> None:
        with pytest.raises(error, match=words):
            await link.read(path, context, offset=0, limit=None)

    async def test_paths_too_long_for_a_frame(self, link: ResidentLink, context: ExecutionContext) -> None:
        with pytest.raises(ToolError, match="too long"):
            await link.stat("x" * 2_000_000, context)


class TestTheEnd:
    async def test_no_python(self) -> None:
        stream = await LocalStream.start(["/bin/sh", "-c", "exec /nonexistent/python3"])
        with pytest.raises(NoPythonError, match="no python3"):
            await ResidentLink.open(stream)
        await stream.end()

    async def test_an_old_python(self) -> None:
        old = f"import sys\nsys.version_info = (3, 8, 1, 'final', 0)\n{BOOT}"
        stream = await LocalStream.start([*COMMAND[:-1], old])
        with pytest.raises(NoPythonError, match=r"3\.8.* 3\.10"):
            await ResidentLink.open(stream)
        await stream.end()

    async def test_something_else_answers(self) -> None:
        stream = await LocalStream.start(["/bin/sh", "-c", "echo 'Traceback: \033[31mbroken' >&2; echo what"])
        with pytest.raises(LinkLostError, match=r"Traceback: \[31mbroken"):
            await ResidentLink.open(stream)
        await stream.end()

    async def test_it_ends_with_its_input_and_leaves_nothing(
        self, stream: LocalStream, context: ExecutionContext, tmp_path: Path
    ) -> None:
        link = await ResidentLink.open(stream)
        mark = token()
        call = asyncio.ensure_future(link.run(f"touch begun; {script('nohup', mark)}", context, timeout=60))
        await until(context.working_directory / "begun")
        await link.close()
        with pytest.raises(LinkLostError, match="closed"):
            await call
        assert await asyncio.wait_for(stream.process.wait(), 10) == 0
        assert alive(mark) == []
        assert [path.name for path in tmp_path.iterdir()] == ["work"]  # noqa: ASYNC240  a look

    async def test_it_is_killed(
        self, stream: LocalStream, link: ResidentLink, context: ExecutionContext
    ) -> None:
        mark = token()
        calls = [
            asyncio.ensure_future(link.run(f"touch begun; {script('setsid', mark)}", context, timeout=60)),
            asyncio.ensure_future(link.read("begun", context, offset=0, limit=None)),
        ]
        await until(context.working_directory / "begun")
        stream.process.kill()
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert isinstance(results[0], LinkLostError)
        assert link.lost
        assert await asyncio.to_thread(gone, mark, 5.0)
        with pytest.raises(LinkLostError):
            await link.stat(".", context)

    async def test_silence_ends_it(
        self, stream: LocalStream, context: ExecutionContext, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sent = files()
        name = next(name for name in sent if name.endswith("resident/frames.py"))
        assert "4.0, 30.0" in sent[name]
        sent[name] = sent[name].replace("4.0, 30.0", "4.0, 0.5")
        packed = zlib.compress(json.dumps(sent).encode())
        monkeypatch.setattr(channel_module, "payload", lambda: len(packed).to_bytes(4, "big") + packed)
        monkeypatch.setattr(channel_module, "PING", 1000)
        link = await ResidentLink.open(stream)
        mark = token()
        with pytest.raises(LinkLostError, match="ended"):
            await link.run(script("double fork", mark), context, timeout=60)
        assert gone(mark, within=0)

    async def test_one_that_is_stopped_is_given_up(
        self, stream: LocalStream, context: ExecutionContext, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(channel_module, "PING", 0.05)
        link = await ResidentLink.open(stream)
        stream.process.send_signal(signal.SIGSTOP)
        try:
            with pytest.raises(LinkLostError, match="stopped"):
                await link.read("x", context, offset=0, limit=None)
        finally:
            stream.process.send_signal(signal.SIGCONT)
        await link.close()

    async def test_a_command_that_cannot_be_ended(
        self, stream: LocalStream, context: ExecutionContext, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(channel_module, "CANCEL_OVERDUE", 0.3)
        link = await ResidentLink.open(stream)
        call = asyncio.ensure_future(link.run("touch begun; sleep 60", context, timeout=60))
        await until(context.working_directory / "begun")
        stream.process.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert time.monotonic() - began >= 0.3
        assert link.lost
        stream.process.send_signal(signal.SIGCONT)
        await link.close()

    async def test_no_answer_in_time(
        self, stream: LocalStream, context: ExecutionContext, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(link_module, "OVERDUE", 0.1)
        link = await ResidentLink.open(stream)
        stream.process.send_signal(signal.SIGSTOP)
        with pytest.raises(ConjureError, match="No answer"):
            await link.run("true", context, timeout=0.1)
        assert link.lost
        stream.process.send_signal(signal.SIGCONT)
        await link.close()
