"""What a command sees and how it ends by itself."""

from __future__ import annotations

import unittest

from ...errors import ToolError
from ..checks import equal, raises, true
from .place import Place
from .suite import Suite, check, variables

SHARP_S = "Größe ✓ 日本語 🎉"


class CommandChecks(Suite):
    """Commands."""

    @check
    async def test_output(self, place: Place) -> None:
        """What a command prints, and figures about it."""
        result = await place.run("echo hello")
        equal((result.output, result.exit_code, result.timed_out), (b"hello\n", 0, False))
        equal((result.total_bytes, result.truncated_bytes, result.leftovers), (6, 0, 0))
        true(result.duration > 0, "it took time")

    @check
    async def test_no_output(self, place: Place) -> None:
        """Nothing printed is nothing."""
        equal((await place.run("true")).output, b"")

    @check
    async def test_stdout_and_stderr_keep_their_order(self, place: Place) -> None:
        """One stream, as a terminal would show it."""
        command = "for i in 1 2 3 4 5; do echo out$i; echo err$i >&2; done"
        equal(await place.text(command), "".join(f"out{i}\nerr{i}\n" for i in range(1, 6)))

    @check
    async def test_exit_code(self, place: Place) -> None:
        """All of them, those included that look like a signal or a time limit."""
        for code in (0, 1, 2, 42, 124, 126, 127, 137, 143, 255):
            result = await place.run(f"exit {code}")
            equal((result.exit_code, result.timed_out), (code, False))

    @check
    async def test_unknown_command(self, place: Place) -> None:
        """Bash says which."""
        result = await place.run("no-such-command-here")
        equal(result.exit_code, 127)
        true("no-such-command-here" in result.text, "its name is in the output")

    @check
    async def test_death_by_a_signal_is_no_timeout(self, place: Place) -> None:
        """128 and the number of the signal."""
        for name, code in (("TERM", 143), ("KILL", 137), ("SEGV", 139)):
            result = await place.run(f"kill -{name} $$; sleep 5")
            equal((result.exit_code, result.timed_out), (code, False), name)

    @check
    async def test_syntax_error(self, place: Place) -> None:
        """Bash's own code and words."""
        result = await place.run("if then")
        equal(result.exit_code, 2)
        true("syntax error" in result.text, "bash says so")

    @check
    async def test_it_is_bash(self, place: Place) -> None:
        """Not another shell: arrays work, and its version is 3 or newer."""
        equal(await place.text("a=(1 2 3); echo ${#a[@]}; ((BASH_VERSINFO >= 3))"), "3\n")

    @check
    async def test_several_lines_and_quotes(self, place: Place) -> None:
        """The command reaches bash as it was given."""
        command = "x='a \"b\" $c'\nprintf '%s\\n' \"$x\"\ncat <<'EOF'\n$HOME `x`\nEOF\n"
        equal(await place.text(command), 'a "b" $c\n$HOME `x`\n')

    @check
    async def test_unicode(self, place: Place) -> None:
        """Both ways."""
        equal(await place.text(f"echo '{SHARP_S}'"), SHARP_S + "\n")

    @check
    async def test_bytes_that_are_no_utf8(self, place: Place) -> None:
        """Kept as bytes, replaced in text."""
        result = await place.run(r"printf 'a\xff\xfe\0b'")
        equal((result.output, result.text), (b"a\xff\xfe\0b", "a\ufffd\ufffd\0b"))

    @check
    async def test_a_character_written_in_two_halves(self, place: Place) -> None:
        """Comes whole."""
        equal(await place.text(r"printf '\xe2\x9c'; sleep 0.1; printf '\x93'"), "✓")

    @check
    async def test_long_command(self, place: Place) -> None:
        """Longer than a system lets one argument be."""
        text = "x" * 300_000
        equal(await place.text(f"v='{text}'; echo ${{#v}} $0"), "300000 bash\n")
        equal((await place.run("#" + "x" * 200_000 + "\nexit 7")).exit_code, 7)

    @check
    async def test_what_can_be_no_command(self, place: Place) -> None:
        """Refused in words that the model can act on."""
        await raises(ToolError, place.run("echo a\0b"), "NUL")
        await raises(ToolError, place.run("echo \ud83d"), "text")

    @check
    async def test_standard_input_is_empty(self, place: Place) -> None:
        """Nothing waits for an answer, and nothing of another command's is read."""
        equal(await place.text("cat; read -r x; echo done"), "done\n")

    @check
    async def test_no_terminal(self, place: Place) -> None:
        """Neither attached nor to be opened."""
        equal(await place.text("test -t 1 || test -t 0 || test -t 2 || echo none"), "none\n")
        equal((await place.run("(: </dev/tty) 2>/dev/null")).exit_code, 1)

    @check
    async def test_working_directory(self, place: Place) -> None:
        """Where relative paths of files start from, too."""
        await place.write("here.txt", b"1")
        equal(await place.text('cat here.txt; basename "$PWD"'), f"1{place.name}\n")

    @check
    async def test_each_command_has_a_fresh_shell(self, place: Place) -> None:
        """Neither folder nor variables nor functions are left from the last."""
        await place.run("mkdir sub; cd sub; x=1; export y=2; f() { :; }; set -e; umask 0777")
        command = 'basename "$PWD"; echo "[$x$y]"; type f 2>/dev/null || true; false; echo new > f; cat f'
        equal(await place.text(command), f"{place.name}\n[]\nnew\n")

    @check
    async def test_files_last_from_call_to_call(self, place: Place) -> None:
        """In the working directory, and in the folder for temporary files."""
        other = f'"${{TMPDIR:-/tmp}}/{place.name}"'
        await place.run(f"echo kept > file.txt; echo also > {other}")
        equal(await place.text(f"cat file.txt {other}; rm {other}"), "kept\nalso\n")

    @check
    async def test_environment_of_the_context(self, place: Place) -> None:
        """Given at the start, or for one call."""
        equal(await place.text("echo $GIVEN"), "yes\n")
        changed = {"GIVEN": "a\nb", "MORE": SHARP_S}
        equal((await place.run('echo "$GIVEN" $MORE', environment=changed)).text, f"a\nb {SHARP_S}\n")

    @check
    async def test_common_variables(self, place: Place) -> None:
        """What programs rely on; text is UTF-8."""
        equal(await place.text('test -d "$HOME" && test -n "$PATH" && echo good'), "good\n")
        equal(await place.text("x=✓; echo ${#x}"), "1\n")

    @check
    async def test_secrets_of_this_process_are_not_seen(self, place: Place) -> None:
        """By the name of a service or not; whether set before the executor started or after."""
        names = ("ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "SOME_THING")
        with variables(**dict.fromkeys(names, "sk-secret")):
            true("sk-secret" not in await place.text("env"), "set after the start")
            async with self.fresh() as other:
                true("sk-secret" not in await other.text("env"), "set before the start")

    @check
    async def test_python_runs(self, place: Place) -> None:
        """By both names."""
        if not self.has_python:
            raise unittest.SkipTest("there is no Python here")
        equal(await place.text("python -c 'print(6*7)'; python3 -c 'print(6*7)'"), "42\n42\n")
