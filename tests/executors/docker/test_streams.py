"""Input and output of a process in a container."""

from __future__ import annotations

import asyncio
import hashlib
import os
import socket

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conjure_jupyter.executors.docker import streams
from conjure_jupyter.executors.docker.link import LinkLostError
from conjure_jupyter.executors.docker.streams import EngineStream
from conjure_jupyter.executors.docker.wire import AHEAD, Wire

from .containers import plan, running, says, shell


async def pair() -> tuple[EngineStream, socket.socket]:
    """A stream, and the engine's end of its connection."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    return EngineStream(Wire(*await asyncio.open_unix_connection(sock=ours, limit=AHEAD)), "x"), theirs


def frame(source: int, data: bytes) -> bytes:
    return bytes([source, 0, 0, 0]) + len(data).to_bytes(4, "big") + data


@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=300)), max_size=12),
    st.integers(1, 97),
)
def test_frames_come_apart_however_they_arrive(frames: list[tuple[int, bytes]], step: int) -> None:
    async def work() -> None:
        stream, theirs = await pair()
        wire = b"".join(frame(*each) for each in frames)
        loop = asyncio.get_running_loop()

        async def send() -> None:
            for start in range(0, len(wire), step):
                await loop.sock_sendall(theirs, wire[start : start + step])
            theirs.close()

        sending = asyncio.ensure_future(send())
        got = {"stdout": b"", "stderr": b""}
        while (piece := await stream.read()) is not None:
            got[piece[0]] += piece[1]
        await sending
        assert got == {
            name: b"".join(data for source, data in frames if source == number)
            for name, number in (("stdout", 1), ("stderr", 2))
        }

    asyncio.run(work())


async def test_what_is_no_frame_ends_the_stream() -> None:
    stream, theirs = await pair()
    theirs.sendall(frame(1, b"fine") + b"\x07nonsense that is no frame")
    assert await stream.read() == ("stdout", b"fine")
    assert await stream.read() is None
    assert await stream.read() is None
    with pytest.raises(LinkLostError):
        await stream.write(b"x")
    theirs.close()


async def test_a_slow_reader_makes_the_engine_wait() -> None:
    stream, theirs = await pair()
    theirs.settimeout(0.5)
    sent = 0
    chunk = frame(1, bytes(32 * 1024))

    def flood() -> None:
        nonlocal sent
        try:
            while sent < 64 * 2**20:
                sent += theirs.send(chunk)
        except TimeoutError:
            pass

    await asyncio.to_thread(flood)
    # Twice AHEAD and one read in the process, and what the system keeps for the two sockets.
    assert sent < 2 * AHEAD + 256 * 1024 + 2 * 2**20
    stream.end()
    theirs.close()


async def test_a_slow_process_makes_the_writer_wait() -> None:
    stream, theirs = await pair()
    writing = asyncio.ensure_future(stream.write(bytes(32 * 2**20)))
    await asyncio.sleep(0.2)
    assert not writing.done()
    assert stream._wire.writer.transport.get_write_buffer_size() <= streams.PIECE
    theirs.close()
    with pytest.raises(LinkLostError, match="lost"):
        await writing
    stream.end()


async def test_writers_do_not_mix() -> None:
    stream, theirs = await pair()
    size = 3 * streams.PIECE
    loop = asyncio.get_running_loop()
    writing = [asyncio.ensure_future(stream.write(letter * size)) for letter in (b"a", b"b", b"c")]
    got = bytearray()
    while len(got) < 3 * size:
        got += await loop.sock_recv(theirs, 2**20)
    await asyncio.gather(*writing)
    assert bytes(got) == b"a" * size + b"b" * size + b"c" * size
    stream.end()
    theirs.close()


async def test_what_nobody_reads_after_the_close_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "GRACE", 0.1)
    stream, theirs = await pair()
    stream.close()
    stream.close()
    with pytest.raises(LinkLostError):
        await stream.write(b"late")
    loop = asyncio.get_running_loop()
    assert await loop.sock_recv(theirs, 1) == b""
    reading = asyncio.ensure_future(stream.read())
    await asyncio.sleep(0.3)
    assert not reading.done()  # somebody reads: it stays
    theirs.sendall(frame(1, b"late"))
    assert await reading == ("stdout", b"late")
    while True:  # nobody does: it goes, and the other side sees it
        await asyncio.sleep(0.05)
        try:
            theirs.sendall(b"x")
        except OSError:
            break
    assert await stream.read() is None
    theirs.close()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # which is what is tried here
async def test_a_fork_does_not_hold_the_connection() -> None:
    stream, theirs = await pair()
    told, tell = os.pipe()
    wait, go = os.pipe()
    pid = os.fork()
    if pid == 0:  # nothing but system calls in here: the loop is the parent's
        os.close(go)
        os.write(tell, b"x")
        os.read(wait, 1)
        os._exit(0)
    os.read(told, 1)
    stream.end()
    # With a copy in the child the end would not arrive while it lives.
    loop = asyncio.get_running_loop()
    assert await asyncio.wait_for(loop.sock_recv(theirs, 1), 10) == b""
    for descriptor in (go, wait, told, tell):
        os.close(descriptor)
    await asyncio.to_thread(os.waitpid, pid, 0)
    theirs.close()


@pytest.mark.docker
async def test_both_outputs_and_the_exit_code(docker_engine: str, docker_image: str) -> None:
    async with running(docker_engine, plan(docker_image)) as container:
        stream = await container.attach(
            ["bash", "-c", "read -r line; echo out:$line; echo err:$NAME >&2; exit 7"],
            environment={"NAME": "value"},
        )
        await stream.write(b"hello\n")
        got = {"stdout": b"", "stderr": b""}
        while (piece := await stream.read()) is not None:
            got[piece[0]] += piece[1]
        assert got == {"stdout": b"out:hello\n", "stderr": b"err:value\n"}
        assert await container.exec_code(stream) == 7
        code, text = await says(container, "no-such-program")
        assert code in (126, 127)
        assert "no-such-program" in text


@pytest.mark.docker
async def test_binary_and_large_both_ways(docker_engine: str, docker_image: str) -> None:
    async with running(docker_engine, plan(docker_image)) as container:
        data = os.urandom(8 * 2**20) + bytes(range(256))
        stream = await container.attach(["cat"])

        async def send() -> None:
            await stream.write(data)
            stream.close()  # half: what comes back is read to the end

        sending = asyncio.ensure_future(send())
        digest, size = hashlib.sha256(), 0
        while (piece := await stream.read()) is not None:
            assert len(piece[1]) <= streams.PIECE
            digest.update(piece[1])
            size += len(piece[1])
        await sending
        assert (size, digest.digest()) == (len(data), hashlib.sha256(data).digest())


@pytest.mark.docker
async def test_the_first_output_is_not_lost(docker_engine: str, docker_image: str) -> None:
    async with running(docker_engine, plan(docker_image)) as container:
        for _ in range(5):
            assert await shell(container, "echo at once") == "at once"


@pytest.mark.docker
async def test_streams_end_with_the_container(docker_engine: str, docker_image: str) -> None:
    async with running(docker_engine, plan(docker_image)) as container:
        stream = await container.attach(["bash", "-c", "echo started; sleep 60"])
        assert await stream.read() == ("stdout", b"started\n")
        reading = asyncio.ensure_future(stream.read())
        await container.remove()
        assert await asyncio.wait_for(reading, 10) is None
        with pytest.raises(LinkLostError):
            await stream.write(b"x")
        with pytest.raises(LinkLostError):
            await container.attach(["true"])
