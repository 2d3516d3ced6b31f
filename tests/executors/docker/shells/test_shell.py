"""What this side makes of a shell that lies, stalls, floods or breaks off; no engine needed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from conjure_jupyter.errors import (
    ConjureError,
    ContainerError,
    ExecutorError,
    PathNotFoundError,
    PermissionDeniedError,
    ToolError,
)
from conjure_jupyter.executors import ExecutionContext
from conjure_jupyter.executors.docker.link import LinkLostError, Source, Stream
from conjure_jupyter.executors.docker.shells import ShellLink, listing, notes, shell
from conjure_jupyter.executors.docker.shells.refusals import refusal

Piece = tuple[Source, bytes]
#: Answers a request, whose secret and end mark it gets, with pieces of output.
Answer = Callable[[bytes, bytes], list[Piece]]
NOTHING = ExecutionContext(working_directory=Path("/work"))


class Scripted(Stream):
    """A shell that gets ready, answers the survey as it should, and the next call as it is told."""

    def __init__(self, argv: Sequence[str], answer: Answer) -> None:
        self.secret = argv[-1].encode()
        self.answer = answer
        self.closed = False
        self.pieces: asyncio.Queue[Piece | None] = asyncio.Queue()

    async def read(self) -> Piece | None:
        return await self.pieces.get()

    async def write(self, data: bytes) -> None:
        if data == shell.script():
            self.pieces.put_nowait(("stderr", b"\n%s ready 7\n" % self.secret))
            return
        found = re.match(rb"(\w{32}) (\w{32}) [0-9 ]*\n(survey)?", data)
        if found is None:
            return
        answer = honest if found[3] else self.answer
        for piece in answer(found[1], found[2]):
            self.pieces.put_nowait(piece)
        self.pieces.put_nowait(None)

    def close(self) -> None:
        self.closed = True


def honest(secret: bytes, end: bytes) -> list[Piece]:
    return [("stderr", b"\n%s done\n" % secret), ("stdout", b"\x1e" + end)]


async def opened(answer: Answer) -> ShellLink:
    async def attach(argv: Sequence[str]) -> Stream:
        return Scripted(argv, answer)

    return await ShellLink.open(attach)


async def read(answer: Answer) -> bytes:
    link = await opened(answer)
    try:
        return await link.read("f", NOTHING, offset=0, limit=100)
    finally:
        await link.close()


async def test_an_answer_in_pieces() -> None:
    def answer(secret: bytes, end: bytes) -> list[Piece]:
        line = b"noise\n%s done\n" % secret
        data = b"\x1e\x1edata\x1e" + b"\x1e" + end
        return [("stderr", bytes([each])) for each in line] + [("stdout", bytes([each])) for each in data]

    assert await read(answer) == b"\x1e\x1edata\x1e"


async def test_what_comes_after_the_end_is_nobodys() -> None:
    assert (
        await read(lambda secret, end: [("stdout", b"data\x1e" + end + b"more"), *honest(secret, end)])
        == b"data"
    )


@pytest.mark.parametrize(
    "answer",
    [
        lambda secret, end: [],
        lambda secret, end: [("stdout", b"data"), ("stderr", b"\n%s done\n" % secret)],
        lambda secret, end: [("stdout", b"data\x1e" + end)],
        lambda secret, end: [("stdout", b"x" * 101), *honest(secret, end)],
        lambda secret, end: [("stderr", b"x" * (1 << 20))] * 2 + honest(secret, end),
        lambda secret, end: [("stderr", b"\n%s done\n" % end), ("stdout", b"\x1e" + secret)],
    ],
    ids=["nothing", "no end", "no answer", "too much", "noise", "other secrets"],
)
async def test_no_answer(answer: Answer) -> None:
    with pytest.raises(LinkLostError):
        await read(answer)


@pytest.mark.parametrize(
    "said",
    [
        b"done",
        b"done exited x 0 0 0 0 0 0 0",
        b"done exited 256 0 0 0 0 0 0 0",
        b"done exited -1 0 0 0 0 0 0 0",
        b"done gone 0 0 0 0 0 0 0 0",
        b"done exited 0 %s 0 0 0 0 0 0" % (b"9" * 21),
        b"\xff",
        b"ready 1",
    ],
)
async def test_an_end_of_a_command_that_is_none(said: bytes) -> None:
    link = await opened(
        lambda secret, end: [
            ("stderr", b"\n%s begun 0 0 0 0\n%s %s\n" % (secret, secret, said)),
            ("stdout", b"\x1e" + end),
        ]
    )
    with pytest.raises(LinkLostError):
        await link.run("true", NOTHING, timeout=5)
    await link.close()


async def test_a_listing_that_is_none() -> None:
    link = await opened(lambda secret, end: [("stdout", b"81a4 1 1 x/./f/other\n"), *honest(secret, end)])
    with pytest.raises(LinkLostError):
        await link.list(".", NOTHING, depth=1, limit=10)
    with pytest.raises(LinkLostError):
        await link.stat("f", NOTHING)
    await link.close()


async def test_a_container_without_bash() -> None:
    class Missing(Scripted):
        async def write(self, data: bytes) -> None:
            self.pieces.put_nowait(("stdout", b"exec: bash: not found"))
            self.pieces.put_nowait(None)

    async def attach(argv: Sequence[str]) -> Stream:
        return Missing(argv, honest)

    with pytest.raises(ContainerError, match="bash: not found") as told:
        await ShellLink.open(attach)
    assert not isinstance(told.value, LinkLostError)


async def test_an_engine_that_refuses() -> None:
    tries = 0

    async def attach(argv: Sequence[str]) -> Stream:
        nonlocal tries
        tries += 1
        if tries > 1:
            raise ContainerError("no")
        return Scripted(argv, honest)

    link = await ShellLink.open(attach, spare=1)
    with pytest.raises(LinkLostError, match="no"):
        await link.read("f", NOTHING, offset=0, limit=1)
    assert link.lost
    await link.close()


async def test_each_shell_serves_one_call_and_is_closed() -> None:
    made: list[Scripted] = []

    async def attach(argv: Sequence[str]) -> Stream:
        made.append(Scripted(argv, honest))
        return made[-1]

    link = await ShellLink.open(attach, spare=2)
    for _ in range(3):
        await link.delete("f", NOTHING)
    assert sum(each.closed for each in made) == 4  # the survey's too
    await link.close()
    assert all(each.closed for each in made)


@pytest.mark.parametrize(
    ("words", "kind", "told"),
    [
        (["outside"], PermissionDeniedError, "outside"),
        (["readonly"], PermissionDeniedError, "read-only"),
        (["missing"], PathNotFoundError, "no such"),
        (["notdir"], PathNotFoundError, "not a folder"),
        (["links"], ToolError, "links"),
        (["system", "dd: writing './x': No space left on device"], ToolError, "disk is full"),
        (["system", "rmdir: 'd': Directory not empty"], ToolError, "not empty"),
        (["system", "mv: Permission denied"], PermissionDeniedError, "system"),
        (["system", "sh: Read-only file system"], PermissionDeniedError, "read-only"),
        (["system", "bash: fork: retry: Resource temporarily unavailable"], ExecutorError, "processes"),
        (["system"], ToolError, "cannot be written"),
        (["what", "is", "this"], ToolError, "is this"),
        ([], ToolError, "cannot"),
    ],
)
def test_refusals(words: list[str], kind: type[ConjureError], told: str) -> None:
    error = refusal("p", words, "outside the folders")
    assert isinstance(error, kind)
    assert told in error.message


def test_listings_of_both_kinds_of_stat() -> None:
    data = (
        b"81a4 5 1600000000 2020-09-13 12:26:40.123456789 +0000/./a/b/END\n"
        b"41ed 4096 1600000000 2020-09-13 12:26:40/./d\n/END\n"
    )
    file, folder = listing.parse(data, b"END")
    assert (file.path, file.kind, file.size, file.mtime_ns) == ("a/b", "file", 5, 1_600_000_000_123_456_789)
    assert (folder.path, folder.kind, folder.size, folder.mode) == ("d\n", "dir", 0, 0o755)


def test_notes_of_limits() -> None:
    assert notes.limits(0, 0, 0, 0, failed=True) == []
    assert notes.limits(1, 1 << 28, 1, 40, failed=False) == []
    memory, processes = notes.limits(1, 1 << 28, 2, 40, failed=True)
    assert "(256.0 MB, memory_limit)" in memory
    assert "(40, docker_pids)" in processes
    assert notes.limits(1, 1 << 62, 0, 0, failed=True) == [
        "A process was ended because the container ran out of memory (memory_limit)"
    ]


def test_notes_of_disks() -> None:
    said = b"0 4096 1000 10 5\n\nx y\n10000 4096 20000 10 0\n10000 4096 20000 10 5"
    found = notes.disks(["/a", "/b", "/c", "/d", "/e"], said)
    assert [note.split()[4] for note in found] == ["/a", "/d"]
