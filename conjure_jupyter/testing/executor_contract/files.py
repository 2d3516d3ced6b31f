"""The file primitives, where they are allowed."""

from __future__ import annotations

import asyncio
import os
import time

from ...errors import PathNotFoundError, PermissionDeniedError, ToolError
from ..checks import equal, expecting, raises, true
from .commands import SHARP_S
from .place import Place
from .suite import Suite, check

NAMES = (
    "with space",
    "..test",
    "...",
    "-rf",
    "~",
    "~/x",
    SHARP_S,
    "a\nb",
    "*",
    "$HOME",
    "a'b\"c\\",
    "x" * 255,
)


class FileChecks(Suite):
    """Files."""

    @check
    async def test_write_and_read(self, place: Place) -> None:
        """Bytes come back as they were."""
        for data in (b"", b"text\n", b"a\r\nb\r", bytes(range(256)), SHARP_S.encode()):
            await place.write("f.bin", data)
            equal(await place.read("f.bin"), data)

    @check
    async def test_commands_and_files_agree(self, place: Place) -> None:
        """What one wrote the other reads."""
        await place.write("from-write", b"a\xff\n")
        equal((await place.run("cat from-write")).output, b"a\xff\n")
        await place.run(r"printf 'b\xfe' > from-command")
        equal(await place.read("from-command"), b"b\xfe")
        await place.run("rm from-write; mkdir d; mv from-command d/moved")
        await raises(PathNotFoundError, place.read("from-write"))
        equal(await place.read("d/moved"), b"b\xfe")

    @check
    async def test_large_file(self, place: Place) -> None:
        """Five million bytes, both ways, and by parts."""
        data = os.urandom(5_000_000)
        await place.write("large", data)
        true(await place.read("large") == data, "the same bytes")
        true(await place.read("large", offset=4_000_000, limit=10) == data[4_000_000:4_000_010], "a part")
        equal(await place.text("wc -c < large | tr -d ' '"), "5000000\n")

    @check
    async def test_offset_and_limit(self, place: Place) -> None:
        """Past the end there is nothing."""
        await place.write("f", b"0123456789")
        equal(await place.read("f", offset=3, limit=4), b"3456")
        equal(await place.read("f", offset=8, limit=100), b"89")
        equal(await place.read("f", offset=50), b"")
        equal(await place.read("f", limit=0), b"")

    @check
    async def test_names(self, place: Place) -> None:
        """Names that look like options, patterns or ways up are just names."""
        for name in NAMES:
            await place.write(name, b"data")
            equal(await place.read(name), b"data", name)
            equal((await place.stat(name)).path, name)
            top = name.split("/")[0]
            true(top in await place.names(), f"{name!r} is listed")
            await place.delete(name)
            await raises(PathNotFoundError, place.read(name))

    @check
    async def test_names_that_cannot_be(self, place: Place) -> None:
        """Refused as the call's fault."""
        for name in ("", "a\0b", "x" * 256, "a/" * 5000, "half \ud800"):
            await raises(ToolError, place.write(name, b"1"))
            await raises(ToolError, place.read(name))
        equal(await place.names(), [])

    @check
    async def test_parent_folders_are_made(self, place: Place) -> None:
        """As many as it takes."""
        await place.write("a/b/c/d.txt", b"1")
        equal(await place.text("cat a/b/c/d.txt"), "1")

    @check
    async def test_absolute_paths(self, place: Place) -> None:
        """The same file."""
        await place.write(place.context.working_directory / "abs.txt", b"1")
        equal(await place.read("abs.txt"), b"1")

    @check
    async def test_missing(self, place: Place) -> None:
        """Every primitive says so."""
        for call in (place.read, place.stat, place.list, place.delete):
            for path in ("none", "nothing/here"):
                await raises(PathNotFoundError, call(path))

    @check
    async def test_a_folder_is_no_file(self, place: Place) -> None:
        """It is told, and nothing is changed."""
        await place.run("mkdir d")
        await raises(ToolError, place.read("d"), "folder")
        for path in ("d", "d/", ".", "new/"):
            await raises(ToolError, place.write(path), "folder")
        equal(await place.names(), ["d"])

    @check
    async def test_a_file_is_no_folder(self, place: Place) -> None:
        """Nothing lies below it."""
        await place.write("f")
        for path in ("f/x", "f/"):
            await raises(PathNotFoundError, place.read(path))
        await raises(ToolError, place.write("f/x"))
        await raises(ToolError, place.list("f"), "not a folder")

    @check
    async def test_overwriting_keeps_the_mode(self, place: Place) -> None:
        """A script stays one."""
        await place.write("s.sh", b"#!/bin/sh\necho 1\n", mode=0o755)
        await place.write("s.sh", b"#!/bin/sh\necho 2\n")
        equal(await place.text("./s.sh"), "2\n")
        equal((await place.stat("s.sh")).mode, 0o755)

    @check
    async def test_a_file_marked_read_only_stays(self, place: Place) -> None:
        """Although its folder would let it be replaced."""
        await place.write("r", b"old", mode=0o444)
        await raises(PermissionDeniedError, place.write("r", b"new"))
        equal(await place.read("r"), b"old")

    @check
    async def test_nothing_is_left_beside_a_written_file(self, place: Place) -> None:
        """No temporary name."""
        await place.write("d/f", b"1")
        await place.write("d/f", b"2")
        equal(await place.names("d"), ["f"])

    @check
    async def test_stat(self, place: Place) -> None:
        """Kind, size, mode and time."""
        await place.write("f", b"12345", mode=0o640)
        found = await place.stat("f")
        equal((found.path, found.kind, found.size, found.mode), ("f", "file", 5, 0o640))
        true(abs(found.mtime_ns / 1e9 - time.time()) < 100, "changed just now")
        folder = await place.stat(".")
        equal((folder.kind, folder.size), ("dir", 0))

    @check
    async def test_list(self, place: Place) -> None:
        """Sorted by path, hidden ones included, as deep as asked."""
        await place.run("mkdir -p t/a/b/c t/z; touch t/f t/a/g t/a/b/h t/a/b/c/i t/.hidden; mkfifo t/pipe")
        one = [(entry.path, entry.kind) for entry in await place.list("t")]
        hidden, rest = (".hidden", "file"), [("f", "file"), ("pipe", "other"), ("z", "dir")]
        equal(one, [hidden, ("a", "dir"), *rest])
        two = [entry.path for entry in await place.list("t", depth=2)]
        equal(two, [".hidden", "a", "a/b", "a/g", "f", "pipe", "z"])
        equal(await place.names("t/z"), [])

    @check
    async def test_list_limit(self, place: Place) -> None:
        """The first of them by name."""
        await place.run("mkdir many; cd many; touch {100..299}")
        found = await place.list("many", limit=10)
        equal([entry.path for entry in found], [str(n) for n in range(100, 110)])

    @check
    async def test_delete(self, place: Place) -> None:
        """Files, links and empty folders; not full ones, not the one in use."""
        await place.run("mkdir -p d/full empty; touch d/full/x f; ln -s f l")
        for path in ("f", "empty/", "l"):
            await place.delete(path)
        await raises(ToolError, place.delete("d"), "not empty")
        for path in (".", "d/.."):
            await raises(ToolError, place.delete(path))
        equal(await place.names(), ["d"])

    @check
    async def test_special_files_never_block(self, place: Place) -> None:
        """Pipes, devices and sockets are neither read nor written."""
        make = {"pipe": "mkfifo pipe", "device": "ln -s /dev/zero device"}
        if self.has_python:
            make["socket"] = "python3 -c \"import socket as s; s.socket(s.AF_UNIX).bind('socket')\""
        for name, command in make.items():
            made = await place.run(command)
            if name == "socket" and made.exit_code:
                continue  # a place may let nobody make sockets
            equal(made.exit_code, 0, name)
            with expecting(ToolError):
                await asyncio.wait_for(place.read(name), 5)
            with expecting(ToolError):
                await asyncio.wait_for(place.write(name, b"x"), 5)
