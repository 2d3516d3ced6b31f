"""Symbolic links: followed while they stay inside."""

from __future__ import annotations

from ...errors import PathNotFoundError, PermissionDeniedError, ToolError
from ..checks import equal, raises
from .place import Place
from .suite import Suite, check


class LinkChecks(Suite):
    """Links."""

    @check
    async def test_links_that_stay_inside(self, place: Place) -> None:
        """Relative, absolute, chained and upwards; a write goes to what they lead to."""
        await place.run(
            'mkdir d; echo 1 > d/f; ln -s d/f rel; ln -s "$PWD/d" abs; ln -s rel chain; ln -s ../d d/up'
        )
        for path in ("rel", "abs/f", "chain", "d/up/up/f", "abs/../rel"):
            equal(await place.read(path), b"1\n", path)
        await place.write("chain", b"2")
        equal(await place.text("cat d/f; readlink chain; readlink rel"), "2rel\nd/f\n")

    @check
    async def test_a_link_into_another_allowed_folder(self, place: Place) -> None:
        """Has that folder's rights."""
        await place.text(f"ln -s '{place.readable}' there; ln -s '{place.writable}' here")
        equal(await place.read("there/note.txt"), b"note")
        await raises(PermissionDeniedError, place.write("there/note.txt", b"x"))
        await place.write(f"here/{place.name}.txt", b"1")
        equal(await place.read(place.writable / f"{place.name}.txt"), b"1")

    @check
    async def test_links_that_lead_outside(self, place: Place) -> None:
        """Neither read nor written; named, and deleted as links."""
        await place.make_outside()
        for target in (
            place.relative(place.outside),
            str(place.outside),
            f"/proc/self/root{place.outside}",
            f"/proc/self/cwd/{place.relative(place.outside)}",
            "hop",
        ):
            await place.text(f"ln -s '{place.outside}' hop; ln -s '{target}' l")
            await raises(PermissionDeniedError, place.read("l"))
            await raises(PermissionDeniedError, place.write("l", b"x"))
            equal((await place.stat("l")).kind, "link", target)
            equal([e.kind for e in await place.list(".")], ["link", "link"], target)
            await place.delete("l")
            await place.delete("hop")
        equal(await place.executor.read(str(place.outside), place.started), b"secret")

    @check
    async def test_folders_behind_links_that_lead_outside(self, place: Place) -> None:
        """Nothing is listed or made in them."""
        await place.make_outside()
        await place.text(f"ln -s '{place.outside.parent}' door")
        for call in (place.list, place.stat):
            await raises(PermissionDeniedError, call("door/"))
        await raises(PermissionDeniedError, place.read("door/secret.txt"))
        await raises(PermissionDeniedError, place.write("door/new/file", b"x"))
        await raises(PermissionDeniedError, place.delete("door/secret.txt"))
        equal([e.path for e in await place.list(".", depth=5)], ["door"])
        found = await place.executor.list(str(place.outside.parent), place.started)
        equal([entry.path for entry in found], ["secret.txt"])

    @check
    async def test_links_to_nowhere_and_in_circles(self, place: Place) -> None:
        """Told apart, and never followed for ever."""
        await place.run("ln -s nowhere gone; ln -s b a; ln -s a b; ln -s me me; mkdir d; ln -s . d/loop")
        kinds = {entry.path: entry.kind for entry in await place.list(".")}
        equal([kinds[name] for name in ("gone", "a", "b", "me")], ["link"] * 4)
        await raises(PathNotFoundError, place.read("gone"))
        for path in ("a", "me", "a/x"):
            await raises(ToolError, place.read(path), "links")
        equal([entry.path for entry in await place.list("d", depth=20)], ["loop"])
