"""Whatever the other side sends, the link gives an answer or an error of ours, in bounded memory."""

from __future__ import annotations

import asyncio
import gc
import json
import struct
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conjure_jupyter.errors import ConjureError, ExecutorError, PathNotFoundError, ToolError
from conjure_jupyter.executors import CommandResult, ExecutionContext, Stat
from conjure_jupyter.executors.docker.link import LinkLostError, Source, Stream
from conjure_jupyter.executors.docker.resident import ResidentLink
from conjure_jupyter.executors.docker.resident import pending as pending_module
from conjure_jupyter.executors.docker.resident.frames import MAX_FRAME, Frame, FrameError, Frames, encode

CONTEXT = ExecutionContext(working_directory=Path("/workspace"), output_limit=100)
HELLO = encode({"hello": [3, 11, 2]})
RESULT = {
    "exit_code": 0,
    "timed_out": False,
    "duration": 0.5,
    "total_bytes": 2,
    "truncated_bytes": 0,
    "leftovers": 0,
    "notes": [],
}
ROW = ["a", "file", 1, 2, 0o644]


class Forger(Stream):
    """The other side: says hello, then sends what a test has for each call, and ends."""

    def __init__(self, replies: Callable[[dict[str, Any]], Sequence[bytes]], *, ends: bool = True) -> None:
        self._replies = replies
        self._ends = ends
        self._asked = Frames()
        self._payload = True
        self._pieces: asyncio.Queue[tuple[Source, bytes] | None] = asyncio.Queue()
        self._pieces.put_nowait(("stdout", HELLO))
        self.asked: list[dict[str, Any]] = []

    async def read(self) -> tuple[Source, bytes] | None:
        return await self._pieces.get()

    async def write(self, data: bytes) -> None:
        if self._payload:
            self._payload = False
            return
        for header, _ in self._asked.feed(data):
            self.asked.append(header)
            for reply in self._replies(header):
                self._pieces.put_nowait(("stdout", reply))
            if self._ends:
                self._pieces.put_nowait(None)

    def close(self) -> None:
        self._pieces.put_nowait(None)


async def ask(what: str, replies: Callable[[dict[str, Any]], Sequence[bytes]], *, ends: bool = True) -> Any:
    """What the caller of one call gets, an error as a value."""
    link = await ResidentLink.open(Forger(replies, ends=ends))
    calls: dict[str, Callable[[], Any]] = {
        "run": lambda: link.run("true", CONTEXT, timeout=5, on_output=lambda _: None),
        "read": lambda: link.read("f", CONTEXT, offset=0, limit=10),
        "write": lambda: link.write("f", b"data", CONTEXT, mode=None),
        "list": lambda: link.list(".", CONTEXT, depth=1, limit=3),
        "stat": lambda: link.stat("f", CONTEXT),
        "delete": lambda: link.delete("f", CONTEXT),
    }
    try:
        async with asyncio.timeout(20):
            return await calls[what]()
    except ConjureError as error:
        return error
    finally:
        await link.close()


@pytest.fixture(autouse=True)
async def no_errors_elsewhere() -> AsyncIterator[None]:
    """An exception that nobody caught, in a task or a callback, fails the test."""
    seen: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: seen.append(context))
    yield
    gc.collect()
    await asyncio.sleep(0)
    assert seen == []


def done(facts: dict[str, Any], data: bytes = b"") -> Callable[[dict[str, Any]], list[bytes]]:
    return lambda asked: [encode({"id": asked["id"], "done": facts}, data)]


async def test_honest_answers() -> None:
    assert await ask("run", done(RESULT, b"hi")) == CommandResult(b"hi", 0, False, 0.5, 2)
    assert await ask("read", done({}, b"0123456789")) == b"0123456789"
    assert await ask("write", done({})) is None
    assert await ask("list", done({}, json.dumps([ROW]).encode())) == [Stat("a", "file", 1, 2, 0o644)]
    assert await ask("stat", done({"stat": ["f", *ROW[1:]]})) == Stat("f", "file", 1, 2, 0o644)


@pytest.mark.parametrize(
    ("what", "facts", "data"),
    [
        ("run", {}, b""),
        ("run", {**RESULT, "exit_code": 256}, b""),
        ("run", {**RESULT, "exit_code": True}, b""),
        ("run", {**RESULT, "duration": float("nan")}, b""),
        ("run", {**RESULT, "duration": 10**400}, b""),
        ("run", {**RESULT, "total_bytes": -1}, b""),
        ("run", {**RESULT, "timed_out": 1}, b""),
        ("run", {**RESULT, "notes": ["x"] * 100}, b""),
        ("run", {**RESULT, "notes": "x"}, b""),
        ("run", RESULT, b"x" * 1000),
        ("read", {}, b"x" * 11),
        ("read", {"more": 1}, b""),
        ("write", {}, b"x"),
        ("list", {}, b"[]" * 2),
        ("list", {}, b"[" * 100_000),
        ("list", {}, json.dumps([ROW] * 4).encode()),
        ("list", {}, json.dumps([["../a", *ROW[1:]]]).encode()),
        ("list", {}, json.dumps([["/etc", *ROW[1:]]]).encode()),
        ("list", {}, json.dumps([["a", "socket", 1, 2, 3]]).encode()),
        ("list", {}, json.dumps([["a", [], 1, 2, 3]]).encode()),
        ("list", {}, json.dumps([["a", "file", 1.5, 2, 3]]).encode()),
        ("list", {}, b"7"),
        ("stat", {"stat": ROW}, b""),
        ("stat", {"stat": None}, b""),
    ],
)
async def test_answers_that_cannot_be(what: str, facts: dict[str, Any], data: bytes) -> None:
    assert isinstance(await ask(what, done(facts, data), ends=False), LinkLostError)


@pytest.mark.parametrize(
    "reply",
    [
        struct.pack(">II", 1, MAX_FRAME) + b"x",
        struct.pack(">II", 1 << 17, 0) + b" " * (1 << 17),
        struct.pack(">II", 2, 0) + b"[]",
        struct.pack(">II", 2, 0) + b"\xff\xff",
        struct.pack(">II", 60_000, 0) + b"[" * 60_000,
        struct.pack(">II", 10_007, 0) + b'{"a": ' + b"1" * 10_000 + b"}",
        b"Traceback (most recent call last):",
    ],
)
async def test_what_is_no_frame(reply: bytes) -> None:
    assert isinstance(await ask("stat", lambda _: [reply], ends=False), LinkLostError)


@pytest.mark.parametrize(
    "header",
    [
        {"out": True},
        {"data": True},
        {"fail": "cancelled", "words": ""},
        {"fail": "SystemExit", "words": ""},
        {"done": None},
        {},
    ],
)
async def test_frames_that_nobody_asked_for(header: dict[str, Any]) -> None:
    answer = await ask("stat", lambda asked: [encode({"id": asked["id"], **header}, b"x")], ends=False)
    assert isinstance(answer, LinkLostError)


@pytest.mark.parametrize(
    "endless",
    [
        lambda asked: encode({"id": asked["id"], "out": True}, b"x" * 60),
        lambda asked: encode({"id": asked["id"], "out": True}),
        lambda asked: encode({"id": asked["id"], "data": True}, b"x" * 60),
        lambda asked: encode({"id": asked["id"] + 1, "data": True}, b"x"),
        lambda _: encode({"pong": True}),
        lambda _: HELLO,
    ],
)
async def test_floods(endless: Callable[[dict[str, Any]], bytes]) -> None:
    assert isinstance(await ask("run", lambda asked: [endless(asked)] * 1100, ends=False), LinkLostError)


async def test_a_file_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending_module, "MAX_READ", 1000)
    stream = Forger(
        lambda asked: (
            [encode({"id": asked["id"], "data": True}, b"x" * 400)] * 9 if asked["op"] == "read" else []
        ),
        ends=False,
    )
    link = await ResidentLink.open(stream)
    with pytest.raises(ToolError, match="read it in parts"):
        await link.read("f", CONTEXT, offset=0, limit=None)
    await asyncio.sleep(0.05)
    assert stream.asked[-1] == {"op": "cancel", "id": 1}
    assert not link.lost
    await link.close()


async def test_errors_come_from_a_table_and_are_cleaned() -> None:
    def failed(kind: str, words: object) -> Callable[[dict[str, Any]], list[bytes]]:
        return lambda asked: [encode({"id": asked["id"], "fail": kind, "words": words})]

    missing = await ask("stat", failed("missing", "gone\x1b[31m\x07"))
    assert isinstance(missing, PathNotFoundError)
    assert missing.message == "f: gone[31m"
    fault = await ask("stat", failed("executor", "x" * 5000))
    assert type(fault) is ExecutorError
    assert len(fault.message) == 2000
    assert type(await ask("run", failed("tool", ["no", "text"]))) is ToolError


async def test_notes_are_cleaned_and_short() -> None:
    result = await ask("run", done({**RESULT, "notes": ["\x1b]0;x\x07" + "y" * 1000, 5]}))
    assert len(result.notes) == 1
    assert result.notes[0].startswith("]0;xyyy")
    assert len(result.notes[0]) == 300


leaf = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.just("f")
names = st.sampled_from(["id", "out", "data", "done", "fail", "words", "pong", "hello", "stat", *RESULT])
anything = st.recursive(
    leaf,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(names | st.text(max_size=5), inner, max_size=5)
    ),
    max_leaves=12,
)
facts = st.fixed_dictionaries(
    {}, optional={name: anything | st.just(value) for name, value in RESULT.items()}
)
rows = st.lists(st.lists(anything, max_size=6) | st.just(ROW), max_size=5)
headers = st.dictionaries(names, anything, max_size=4) | st.fixed_dictionaries(
    {"id": st.sampled_from([1, 1.0, True, "1", 2])},
    optional={
        "done": facts | st.fixed_dictionaries({"stat": rows | st.just(["f", *ROW[1:]])}) | anything,
        "fail": st.sampled_from(["missing", "tool", "x", "cancelled"]),
        "words": anything,
        "out": st.just(True),
        "data": st.just(True),
    },
)
bodies = st.binary(max_size=40) | rows.map(lambda found: json.dumps(found).encode())
frames: st.SearchStrategy[Frame] = st.tuples(headers, bodies)


@st.composite
def replies(draw: st.DrawFn) -> list[bytes]:
    """Frames, some of them cut, lengthened or with a byte changed, in pieces of any size."""
    sent = bytearray(b"".join(encode(*frame) for frame in draw(st.lists(frames, max_size=5))))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(sent)))
        sent[at : at + draw(st.integers(0, 3))] = draw(st.binary(max_size=3))
    step = draw(st.integers(1, 50))
    return [bytes(sent[start : start + step]) for start in range(0, len(sent), step)]


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(["run", "read", "write", "list", "stat", "delete"]), replies())
async def test_anything_at_all(what: str, sent: list[bytes]) -> None:
    answer = await ask(what, lambda _: sent)
    if isinstance(answer, CommandResult):
        assert len(answer.output) <= CONTEXT.output_limit + pending_module.CUT_LINE
        assert answer.exit_code is None or 0 <= answer.exit_code <= 255
    elif isinstance(answer, bytes):
        assert len(answer) <= 10
    elif isinstance(answer, list):
        assert len(answer) <= 3
        assert all(isinstance(entry, Stat) for entry in answer)
    else:
        assert answer is None or isinstance(answer, (Stat, ToolError, ExecutorError))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.binary(max_size=200), max_size=20))
async def test_noise_for_frames(pieces: list[bytes]) -> None:
    taken = Frames(100)
    try:
        for piece in pieces:
            taken.feed(piece)
    except FrameError:
        return
    assert len(taken._buffer) <= MAX_FRAME + 8


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.dictionaries(st.text(), st.text() | st.integers()), st.binary())),
    st.integers(1, 30),
)
async def test_frames_come_out_as_they_went_in(sent: list[Frame], step: int) -> None:
    taken = Frames()
    whole = b"".join(encode(*frame) for frame in sent)
    found = [
        frame for start in range(0, len(whole), step) for frame in taken.feed(whole[start : start + step])
    ]
    assert found == sent
