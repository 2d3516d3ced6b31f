"""Which folders may be read and written."""

from __future__ import annotations

from pathlib import Path

from ...errors import PathNotFoundError, PermissionDeniedError, ToolError
from ..checks import equal, raises
from .place import Place
from .suite import Suite, check

LOCKED = ("locked/kept.txt", "locked/new", "./locked/../locked/new", "locked/sub/new", "alias/new")
OUTSIDE = ("/etc/passwd", "../../../../../../../etc/passwd", "/", "..", "/proc/self/root/etc/passwd")


class FolderChecks(Suite):
    """Folders."""

    @check
    async def test_a_readable_folder(self, place: Place) -> None:
        """Read by file calls and commands, written by no file call."""
        note = place.readable / "note.txt"
        equal(await place.text(f"cat '{note}'"), "note")
        for path in (note, place.relative(note)):
            equal(await place.read(path), b"note")
        equal(await place.names(place.readable), ["note.txt"])
        await raises(PermissionDeniedError, place.write(note), "written")
        await raises(PermissionDeniedError, place.write(place.readable / "new"), "written")
        await raises(PermissionDeniedError, place.delete(note), "written")

    @check
    async def test_a_writable_folder(self, place: Place) -> None:
        """Both."""
        path = place.writable / place.name / "f"
        await place.write(path, b"1")
        equal(await place.text(f"cat '{path}'; echo 2 > '{path}'"), "1")
        equal(await place.read(path), b"2\n")
        await place.delete(path)
        await raises(PathNotFoundError, place.read(path))

    @check
    async def test_the_folder_of_the_skills(self, place: Place) -> None:
        """Read, by file calls and commands, and never written."""
        manual = place.skills / "sums" / "SKILL.md"
        equal((await place.run(f"cat '{manual}'")).output, await place.read(manual))
        for path in (manual, place.skills / "sums" / "new"):
            await raises(PermissionDeniedError, place.write(path, b"x"))
        await raises(PermissionDeniedError, place.delete(manual))

    @check
    async def test_a_read_only_folder_inside(self, place: Place) -> None:
        """By any name; it can be read."""
        await place.make_locked()
        await place.run("ln -s locked alias")
        for path in LOCKED:
            await raises(PermissionDeniedError, place.write(path, b"x"), "read-only")
        for path in ("locked/kept.txt", "locked"):
            await raises(PermissionDeniedError, place.delete(path), "read-only")
        equal(await place.read("locked/kept.txt"), b"kept")
        equal(await place.names("locked"), ["kept.txt"])

    @check
    async def test_outside(self, place: Place) -> None:
        """Every primitive refuses, however the path is written. Nothing here harms where one does not."""
        await place.make_outside()
        ours = (str(place.outside), place.relative(place.outside))
        for path in (*OUTSIDE, *ours):
            for call in (place.read, place.stat, place.list):
                await raises(PermissionDeniedError, call(path))
        for path in (*ours, f"/etc/{place.name}", f"../../../../../../../etc/{place.name}", "/", ".."):
            await raises(PermissionDeniedError, place.write(path, b"x"))
            await raises(PermissionDeniedError, place.delete(path))
        equal(await place.executor.read(str(place.outside), place.started), b"secret")

    @check
    async def test_a_name_that_starts_the_same(self, place: Place) -> None:
        """Is another folder."""
        twin = place.context.working_directory.with_name(f"{place.name}2") / "f"
        await place.executor.write(str(twin), b"twin", place.started)
        for path in (twin, place.relative(twin)):
            await raises(PermissionDeniedError, place.read(path))
            await raises(PermissionDeniedError, place.write(path))

    @check
    async def test_the_context_of_the_call_decides(self, place: Place) -> None:
        """Not the one of the start."""
        await place.write("sub/f", b"1")
        narrow = place.context.with_(working_directory=place.context.working_directory / "sub")
        equal(await place.executor.read("f", narrow), b"1")
        equal((await place.executor.run("cat f", narrow)).output, b"1")
        await raises(PermissionDeniedError, place.executor.write("../g", b"1", narrow))
        unseen = place.context.with_(allowed_paths=())
        note = place.readable / "note.txt"
        await raises(PermissionDeniedError, place.executor.read(str(note), unseen))

    @check
    async def test_a_working_directory_that_is_gone(self, place: Place) -> None:
        """The call fails; the next one elsewhere does not."""
        gone = place.context.with_(working_directory=Path(f"{place.context.working_directory}/gone"))
        await raises(ToolError, place.executor.read("f", gone))
        equal(await place.text("echo fine"), "fine\n")
