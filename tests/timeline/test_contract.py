"""What holds for every timeline, on disk or in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conjure_jupyter.errors import SessionClosedError, TimelineError
from conjure_jupyter.timeline import BaseTimeline, MemoryTimeline, Timeline
from conjure_jupyter.types import Block

Make = Callable[[], BaseTimeline]


@pytest.fixture(params=["disk", "memory"])
def timeline(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BaseTimeline]:
    meta = {"id": "s1", "notebook": "n.ipynb"}
    made: BaseTimeline = (
        Timeline.create(tmp_path / "s1", meta) if request.param == "disk" else MemoryTimeline(meta)
    )
    yield made
    made.close()


def test_the_first_block_says_what_the_session_is(timeline: BaseTimeline) -> None:
    (block,) = timeline.blocks

    assert (block.seq, block.turn, block.kind) == (0, 0, "session")
    assert block.data["id"] == timeline.id == "s1"
    assert block.data["format"] == 1
    assert block.data["notebook"] == "n.ipynb"
    assert block.data["created"][:10] == block.time[:10]


def test_blocks_carry_their_position_and_the_current_turn(timeline: BaseTimeline) -> None:
    assert timeline.turn == 0
    assert timeline.begin_turn() == timeline.turn == 1
    first = timeline.append("notice", {"text": "a"})
    other = timeline.append("notice", {"text": "b"}, turn=0)
    timeline.append("notice", {"text": "c"}, turn=5)

    assert [(block.seq, block.turn) for block in timeline.blocks] == [(0, 0), (1, 1), (2, 0), (3, 5)]
    assert list(timeline.blocks[1:3]) == [first, other]
    assert timeline.begin_turn() == 6


def test_data_is_copied_as_json_would_give_it_back(timeline: BaseTimeline) -> None:
    class Name(str):
        __slots__ = ()

    inner = [1]
    data: dict[str, Any] = {"list": inner, "tuple": (1, (2,)), "name": Name("x"), "flag": True, "none": None}
    block = timeline.append("notice", data)
    inner.append(2)
    data["new"] = 1

    assert block.data == {"list": [1], "tuple": [1, [2]], "name": "x", "flag": True, "none": None}
    assert type(block.data["name"]) is str


ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)


@pytest.mark.parametrize(
    "value", [{1: "x"}, {"x": Path("y")}, {"x": {1, 2}}, {"x": b"y"}, {"x": ENDLESS}], ids=repr
)
def test_what_json_cannot_hold_is_refused_and_leaves_nothing(timeline: BaseTimeline, value: Any) -> None:
    with pytest.raises(TimelineError, match="cannot be written"):
        timeline.append("notice", value)

    assert len(timeline.blocks) == 1
    assert timeline.append("notice", {}).seq == 1


@pytest.mark.parametrize(("kind", "turn"), [("notice", -1), (None, 1)])
def test_what_could_not_be_read_again_is_refused(timeline: BaseTimeline, kind: Any, turn: int) -> None:
    with pytest.raises(TimelineError, match="cannot be written"):
        timeline.append(kind, {}, turn=turn)

    assert timeline.append("notice", {}).seq == 1


def test_subscribers_hear_each_block_once_and_in_order(timeline: BaseTimeline) -> None:
    early: list[Block] = []
    late: list[Block] = []

    def echo(block: Block) -> None:
        if block.kind == "ping":
            timeline.append("pong", {})

    timeline.subscribe(echo)
    timeline.subscribe(early.append)
    timeline.append("ping", {})
    end = timeline.subscribe(late.append, replay=True)
    timeline.append("ping", {})
    end()
    end()
    timeline.append("ping", {})

    assert [block.kind for block in early] == ["ping", "pong"] * 3
    assert [block.seq for block in early] == [1, 2, 3, 4, 5, 6]
    assert late == list(timeline.blocks[:5])


def test_who_subscribes_while_blocks_are_delivered_misses_none(timeline: BaseTimeline) -> None:
    heard: list[Block] = []

    def join(block: Block) -> None:
        if block.kind == "ping":
            timeline.append("pong", {})
            timeline.subscribe(heard.append, replay=True)

    timeline.subscribe(join)
    timeline.append("ping", {})

    assert heard == list(timeline.blocks)


def test_a_failing_subscriber_is_logged_and_stops_nobody(
    timeline: BaseTimeline, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[Block] = []

    def fail(block: Block) -> None:
        raise RuntimeError("no")

    timeline.subscribe(fail)
    timeline.subscribe(heard.append)
    timeline.append("notice", {})

    assert len(heard) == 1
    assert "failed at block 1" in caplog.text


def test_threads_append_without_a_gap_or_a_mix_up(timeline: BaseTimeline) -> None:
    heard: list[Block] = []
    timeline.subscribe(heard.append)

    def write(name: int) -> None:
        for i in range(100):
            timeline.append("notice", {"name": name, "i": i, "text": "x" * 500})

    threads = [threading.Thread(target=write, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [block.seq for block in timeline.blocks] == list(range(401))
    assert heard == list(timeline.blocks[1:])
    for name in range(4):
        assert [b.data["i"] for b in heard if b.data["name"] == name] == list(range(100))


async def test_sync_says_whether_blocks_are_on_disk(timeline: BaseTimeline) -> None:
    on_disk = isinstance(timeline, Timeline)

    assert timeline.durable == 0
    assert timeline.sync() is on_disk
    assert timeline.durable == (1 if on_disk else 0)
    timeline.append("notice", {})
    assert await timeline.synced() is on_disk
    assert timeline.durable == (2 if on_disk else 0)


async def test_a_closed_timeline_takes_nothing(timeline: BaseTimeline) -> None:
    assert not timeline.closed
    timeline.close()
    timeline.close()

    assert timeline.closed
    with pytest.raises(SessionClosedError):
        timeline.append("notice", {})
    with pytest.raises(SessionClosedError):
        timeline.sync()
    with pytest.raises(SessionClosedError):
        await timeline.synced()
    assert len(timeline.blocks) == 1
