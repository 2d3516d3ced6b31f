"""A container that sends anything: nothing is raised, nothing grows, nothing forbidden is reached."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from conjure_jupyter.errors import ContainerError
from conjure_jupyter.executors.docker.limited.relay import (
    CLOSE,
    CREDIT,
    DATA,
    EOF,
    HEADER,
    MOST,
    NUMBER,
    OPEN,
    PIECE,
    READY,
    WINDOW,
    Decoder,
    frame,
)
from conjure_jupyter.executors.docker.link import Source, Stream

from .world import FORBIDDEN, NAME, World, connect, get

READ = frame(READY, 0, NUMBER.pack(8080))


class Told(Stream):
    """A container that sends pieces and then ends, or waits when ``stays``; what it is sent is kept."""

    def __init__(self, pieces: Sequence[bytes], *, stays: bool = False, reads: bool = True) -> None:
        self.pieces = list(pieces)
        self.received = bytearray()
        self.closed = asyncio.Event()
        self._stays = stays
        self._reads = reads

    async def read(self) -> tuple[Source, bytes] | None:
        await asyncio.sleep(0)
        if self.pieces:
            return "stdout", self.pieces.pop(0)
        if self._stays:
            await self.closed.wait()
        return None

    async def write(self, data: bytes) -> None:
        if not self._reads:
            await asyncio.Event().wait()
        self.received += data
        await asyncio.sleep(0)

    def close(self) -> None:
        self.closed.set()


class Tells:
    """A container with one relay."""

    def __init__(self, stream: Stream) -> None:
        self.stream: Stream | None = stream

    async def attach(self, argv: Sequence[str]) -> Stream:
        stream, self.stream = self.stream, None
        if stream is None:
            raise ContainerError("gone")
        return stream


class Silent(World):
    """A world in which nobody answers: every connection is noted, and fails."""

    async def connect(self, address: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        self.connected.append((address, port))
        raise OSError


async def serve(pieces: Sequence[bytes]) -> tuple[Silent, bytes]:
    """What becomes of a relay that sends this; ends when the network has taken it all."""
    failures: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: failures.append(context))
    place = Silent(names={NAME: [["93.184.216.34"]], FORBIDDEN: [["93.184.216.34"]]})
    stream = Told([READ, *pieces])
    network = place.network()
    await network.start(Tells(stream))
    assert network._keeper is not None
    async with asyncio.timeout(20):
        await network._keeper
    await network.close()
    assert stream.closed.is_set()
    assert failures == []
    assert len([each for each in place.told if each.startswith("the container has no network")]) == 1
    assert len(asyncio.all_tasks()) == 1
    return place, bytes(stream.received)


channel = st.one_of(st.integers(0, 3), st.integers(0, 2**32 - 1))
payload = st.one_of(
    st.binary(max_size=40),
    st.sampled_from([get(f"http://{NAME}/"), connect(f"{NAME}:443"), connect(f"{FORBIDDEN}:443")]),
    st.integers(0, 2**32 - 1).map(NUMBER.pack),
)
#: Frames that could be meant, and such that cannot.
frames = st.one_of(
    st.builds(frame, st.sampled_from([OPEN, EOF, CLOSE]), channel),
    st.builds(frame, st.just(DATA), channel, payload),
    st.builds(frame, st.just(CREDIT), channel, st.integers(0, 2**32 - 1).map(NUMBER.pack)),
    st.builds(frame, st.integers(0, 255), channel, payload),
    st.builds(HEADER.pack, st.integers(0, 255), channel, st.integers(0, 2**32 - 1)),
    st.binary(max_size=30),
)


@settings(deadline=None, max_examples=200)
@given(st.lists(frames, max_size=30), st.booleans())
def test_whatever_frames_come_the_network_is_gone_at_most(found: list[bytes], joined: bool) -> None:
    place, _ = asyncio.run(serve([b"".join(found)] if joined else found))
    assert {address for address, _ in place.connected} <= {"93.184.216.34"}
    assert set(place.looked_up) <= {NAME}


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_a_mutated_conversation_harms_nobody(data: st.DataObject) -> None:
    said = bytearray(
        frame(OPEN, 1)
        + frame(DATA, 1, connect(f"{FORBIDDEN}:443"))
        + frame(EOF, 1)
        + frame(OPEN, 2)
        + frame(DATA, 2, get(f"http://{NAME}/"))
        + frame(CREDIT, 2, NUMBER.pack(0))
        + frame(CLOSE, 2)
    )
    for _ in range(data.draw(st.integers(1, 6))):
        said[data.draw(st.integers(0, len(said) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(said)))
    asyncio.run(serve([bytes(said[:cut]), bytes(said[cut:])]))


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from([DATA]), channel, st.binary(min_size=1, max_size=99))), st.data())
def test_frames_come_out_as_they_went_in_whatever_the_pieces(
    sent: list[tuple[int, int, bytes]], data: st.DataObject
) -> None:
    joined = b"".join(frame(*each) for each in sent)
    found: list[tuple[int, int, bytes]] = []
    decoder, at = Decoder(), 0
    while at < len(joined):
        step = data.draw(st.integers(1, 60))
        found += decoder.feed(joined[at : at + step])
        at += step
    assert found == sent


async def gone(pieces: Sequence[bytes]) -> str:
    place, _ = await serve(pieces)
    return place.told[-1]


async def test_what_no_relay_sends_ends_the_network_and_is_said() -> None:
    full = [frame(DATA, 1, bytes(PIECE))] * (WINDOW // PIECE)
    for pieces in (
        [b"\xff" * 9],
        [READ],
        [frame(OPEN, 1), frame(OPEN, 1)],
        [frame(OPEN, number) for number in range(MOST + 1)],
        [HEADER.pack(DATA, 1, PIECE + 1)],
        [frame(DATA, 1)],
        [frame(OPEN, 1), frame(CREDIT, 1, NUMBER.pack(1))],
        [frame(OPEN, 1), frame(EOF, 1), frame(DATA, 1, b"x")],
        # Two windows of what is no head of a request: the second was never asked for.
        [b"".join([frame(OPEN, 1), *full, *full])],
    ):
        assert "something else than its relay answered" in await gone(pieces)


async def test_frames_for_channels_that_are_not_there_are_nothing() -> None:
    late = [frame(kind, 7) for kind in (EOF, CLOSE)] + [frame(DATA, 7, b"x"), frame(CREDIT, 7, bytes(4))]
    assert "started again" in await gone(late * 100)


async def test_a_container_that_never_reads_makes_nothing_grow() -> None:
    """All channels ask and none takes its answer: each keeps its bounds, and the network ends well."""
    place = Silent()
    asked = [frame(OPEN, n) + frame(DATA, n, connect(f"{FORBIDDEN}:443")) for n in range(MOST)]
    stream = Told([READ, *asked], stays=True, reads=False)
    network = place.network()
    await network.start(Tells(stream))
    assert network._mux is not None
    while stream.pieces or network._mux._tasks:  # noqa: ASYNC110  it is the loop's other work that is waited for
        await asyncio.sleep(0)
    assert len(network._mux._channels) == MOST
    assert (
        sum(len(channel._out) + len(channel._in) for channel in network._mux._channels.values()) < MOST * 1000
    )
    await network.close()
    assert len(asyncio.all_tasks()) == 1
