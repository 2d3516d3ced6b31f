"""Commands and file calls act as the same user."""

from __future__ import annotations

from ...errors import PermissionDeniedError, ToolError
from ..checks import equal, true
from .place import Place
from .suite import Suite, check


class UserChecks(Suite):
    """Users and permissions."""

    @check
    async def test_files_belong_to_the_user_of_commands(self, place: Place) -> None:
        """Whether a command made them or ``write`` did, folders too."""
        await place.run("mkdir made; touch made/f")
        await place.write("written/f")
        command = "for f in made made/f written written/f; do test -O $f && test -w $f && echo $f; done"
        equal(await place.text(command), "made\nmade/f\nwritten\nwritten/f\n")
        await place.run("rm written/f; rmdir written")
        await place.delete("made/f")
        await place.delete("made")
        equal(await place.names(), [])

    @check
    async def test_every_command_is_the_same_user(self, place: Place) -> None:
        """With a number at least."""
        first = await place.text("id -u; id -g")
        equal(await place.text("id -u; id -g"), first)
        true(all(line.isdigit() for line in first.split()), "numbers")

    @check
    async def test_the_home_folder_is_writable(self, place: Place) -> None:
        """Programs keep their caches there."""
        command = f'f="$HOME/.{place.name}"; echo 1 > "$f" && cat "$f" && rm "$f"'
        equal(await place.text(command), "1\n")

    @check
    async def test_the_folder_for_temporary_files_is_writable(self, place: Place) -> None:
        """Wherever it is."""
        equal(await place.text('f="$(mktemp)" && echo 1 > "$f" && cat "$f" && rm "$f"'), "1\n")

    @check
    async def test_a_file_without_read_permission(self, place: Place) -> None:
        """``read`` may what ``cat`` may; a superuser may more than others."""
        await place.write("hidden", b"1", mode=0o000)
        allowed = (await place.run("cat hidden")).exit_code == 0
        try:
            equal(await place.read("hidden"), b"1")
        except PermissionDeniedError:
            true(not allowed, "a command can read it, so read must")
        else:
            true(allowed, "a command cannot read it, so read must not")
        equal((await place.stat("hidden")).mode, 0)

    @check
    async def test_a_folder_without_write_permission(self, place: Place) -> None:
        """``write`` may what a command may."""
        await place.run("mkdir d; chmod 555 d")
        allowed = (await place.run("(echo > d/a) 2>/dev/null")).exit_code == 0
        try:
            await place.write("d/b")
        except ToolError:
            true(not allowed, "a command can write there, so write must")
        else:
            true(allowed, "a command cannot write there, so write must not")

    @check
    async def test_modes_are_kept(self, place: Place) -> None:
        """Those asked for, whatever the umask."""
        for mode in (0o600, 0o644, 0o700, 0o755, 0o777):
            await place.write(f"f{mode:o}", b"#!/bin/sh\n", mode=mode)
            equal((await place.stat(f"f{mode:o}")).mode, mode)
        await place.run("chmod 711 f600")
        equal((await place.stat("f600")).mode, 0o711)
        equal((await place.run("./f755 && ./f644 2>/dev/null")).exit_code, 126)
