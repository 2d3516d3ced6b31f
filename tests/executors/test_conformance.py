"""What every executor keeps, whatever it stands on. Nothing here looks behind the contract."""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from pathlib import Path

import pytest

from conjure_jupyter.errors import PathNotFoundError, PermissionDeniedError, ToolError

from .conftest import Place
from .processes import ESCAPEES, gone, script, until

SHARP_S = "Größe ✓ 日本語 🎉"


class TestCommands:
    async def test_output(self, place: Place) -> None:
        result = await place.run("echo hello")
        assert (result.output, result.exit_code, result.timed_out) == (b"hello\n", 0, False)
        assert (result.total_bytes, result.truncated_bytes, result.leftovers) == (6, 0, 0)
        assert result.duration > 0

    async def test_no_output(self, place: Place) -> None:
        assert (await place.run("true")).output == b""

    async def test_stdout_and_stderr_keep_their_order(self, place: Place) -> None:
        command = "for i in 1 2 3 4 5; do echo out$i; echo err$i >&2; done"
        assert await place.text(command) == "".join(f"out{i}\nerr{i}\n" for i in range(1, 6))

    @pytest.mark.parametrize("code", [0, 1, 2, 42, 126, 127, 143, 255])
    async def test_exit_code(self, place: Place, code: int) -> None:
        result = await place.run(f"exit {code}")
        assert (result.exit_code, result.timed_out) == (code, False)

    async def test_unknown_command(self, place: Place) -> None:
        result = await place.run("no-such-command-here")
        assert result.exit_code == 127
        assert "no-such-command-here" in result.text

    @pytest.mark.parametrize(("number", "code"), [("TERM", 143), ("KILL", 137), ("SEGV", 139)])
    async def test_death_by_a_signal_is_no_timeout(self, place: Place, number: str, code: int) -> None:
        result = await place.run(f"kill -{number} $$; sleep 5")
        assert (result.exit_code, result.timed_out) == (code, False)

    async def test_syntax_error(self, place: Place) -> None:
        result = await place.run("if then")
        assert result.exit_code == 2
        assert "syntax error" in result.text

    async def test_it_is_bash(self, place: Place) -> None:
        assert await place.text("a=(1 2 3); echo ${#a[@]} $BASH_VERSION | cut -c1-2") == "3 \n"

    async def test_several_lines_and_quotes(self, place: Place) -> None:
        command = "x='a \"b\" $c'\nprintf '%s\\n' \"$x\"\ncat <<'EOF'\n$HOME `x`\nEOF\n"
        assert await place.text(command) == 'a "b" $c\n$HOME `x`\n'

    async def test_unicode(self, place: Place) -> None:
        assert await place.text(f"echo '{SHARP_S}'") == SHARP_S + "\n"

    async def test_bytes_that_are_no_utf8(self, place: Place) -> None:
        result = await place.run(r"printf 'a\xff\xfeb'")
        assert result.output == b"a\xff\xfeb"
        assert result.text == "a\ufffd\ufffdb"

    async def test_a_character_written_in_two_halves(self, place: Place) -> None:
        assert await place.text(r"printf '\xe2\x9c'; sleep 0.1; printf '\x93'") == "✓"

    async def test_long_command(self, place: Place) -> None:
        text = "x" * 300_000
        assert await place.text(f"v='{text}'; echo ${{#v}} $0") == "300000 bash\n"

    async def test_long_command_keeps_its_exit_code(self, place: Place) -> None:
        assert (await place.run("#" + "x" * 200_000 + "\nexit 7")).exit_code == 7

    async def test_nul_in_a_command(self, place: Place) -> None:
        with pytest.raises(ToolError, match="NUL"):
            await place.run("echo a\0b")

    async def test_half_a_surrogate_pair_in_a_command(self, place: Place) -> None:
        with pytest.raises(ToolError, match="text"):
            await place.run("echo \ud83d")

    async def test_standard_input_is_empty(self, place: Place) -> None:
        assert await place.text("cat; read -r x; echo done") == "done\n"

    async def test_no_terminal(self, place: Place) -> None:
        assert await place.text("test -t 1 || test -t 0 || echo none") == "none\n"

    async def test_working_directory(self, place: Place) -> None:
        await place.executor.write("here.txt", b"1", place.context)
        assert await place.text("ls here.txt") == "here.txt\n"

    async def test_each_command_has_a_fresh_shell(self, place: Place) -> None:
        await place.run("mkdir sub; cd sub; x=1; export y=2; f() { :; }")
        assert await place.text('basename "$PWD"; echo "[$x$y]"; type f 2>/dev/null || true') == "work\n[]\n"

    async def test_files_last_from_call_to_call(self, place: Place) -> None:
        await place.run("echo kept > file.txt")
        assert await place.text("cat file.txt") == "kept\n"

    async def test_environment_of_the_context(self, place: Place) -> None:
        assert await place.text("echo $GIVEN") == "yes\n"

    async def test_secrets_of_this_process_are_not_seen(
        self, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "SOME_THING"):
            monkeypatch.setenv(name, "sk-secret")
        assert "sk-secret" not in await place.text("env")

    async def test_python_runs(self, place: Place) -> None:
        text = await place.text("python -c 'print(6*7)'; python3 -c 'print(6*7)'")
        assert text == "42\n42\n"


class TestOutputBounds:
    async def test_head_and_tail_are_kept(self, place: Place) -> None:
        result = await place.run("seq 1 100000", output_limit=1000)
        assert result.total_bytes == 588_895
        assert result.truncated_bytes + 1000 >= 588_895 > result.truncated_bytes > 587_000
        assert result.text.startswith("1\n2\n3\n")
        assert result.text.endswith("99999\n100000\n")
        assert f"\n[... {result.truncated_bytes} bytes cut ...]\n" in result.text

    async def test_output_of_just_the_limit_is_whole(self, place: Place) -> None:
        result = await place.run("head -c 1000 /dev/zero | tr '\\0' x", output_limit=1000)
        assert (len(result.output), result.truncated_bytes) == (1000, 0)

    async def test_a_cut_leaves_whole_characters(self, place: Place) -> None:
        result = await place.run("for i in {1..2000}; do printf '✓'; done", output_limit=1001)
        assert "\ufffd" not in result.text
        assert result.truncated_bytes > 0

    async def test_a_flood_stays_bounded(self, place: Place) -> None:
        result = await place.run("head -c 100000000 /dev/zero", output_limit=10_000)
        assert result.total_bytes == 100_000_000
        assert len(result.output) < 10_100

    async def test_listener_hears_output_as_it_comes(self, place: Place) -> None:
        heard: list[bytes] = []
        first = asyncio.Event()

        def listen(data: bytes) -> None:
            heard.append(data)
            first.set()

        command = "echo one; until test -e go; do sleep 0.02; done; echo two"
        running = asyncio.create_task(
            place.executor.run(command, place.context, timeout=20, on_output=listen)
        )
        await asyncio.wait_for(first.wait(), 15)
        assert b"".join(heard) == b"one\n"
        await place.executor.write("go", b"", place.context)
        assert (await running).output == b"one\ntwo\n" == b"".join(heard)

    async def test_listener_is_bounded(self, place: Place) -> None:
        heard: list[bytes] = []
        context = place.context.with_(output_limit=5000)
        await place.executor.run("seq 1 50000", context, timeout=20, on_output=heard.append)
        assert sum(map(len, heard)) == 5000

    async def test_a_failing_listener_loses_nothing(
        self, place: Place, caplog: pytest.LogCaptureFixture
    ) -> None:
        def listen(data: bytes) -> None:
            raise ValueError("no")

        result = await place.executor.run("seq 1 3", place.context, timeout=20, on_output=listen)
        assert result.output == b"1\n2\n3\n"
        assert "listener" in caplog.text


class TestEndings:
    async def test_time_limit(self, place: Place) -> None:
        result = await place.run("echo begun; sleep 60; echo never", timeout=0.5)
        assert (result.timed_out, result.exit_code, result.output) == (True, None, b"begun\n")

    async def test_the_context_has_the_time_limit_of_a_call_without_one(self, place: Place) -> None:
        result = await place.executor.run("sleep 60", place.context.with_(timeout=0.2))
        assert result.timed_out

    @pytest.mark.parametrize("kind", sorted(ESCAPEES))
    async def test_nothing_outlives_its_command(self, place: Place, kind: str) -> None:
        token = f"escapee-{secrets.token_hex(6)}"
        limit = 0.7
        begun = time.monotonic()
        result = await place.run(script(kind, token), timeout=limit)
        took = time.monotonic() - begun
        assert gone(token, within=0), kind
        assert took < limit + 2.0
        assert b"begun" in result.output
        assert result.timed_out == (kind != "background, then exit")

    async def test_leftovers_are_counted(self, place: Place) -> None:
        token = f"left-{secrets.token_hex(6)}"
        command = f'for i in 1 2 3; do bash -c "exec -a {token} sleep 300" & done; echo ok'
        result = await place.run(command)
        assert (result.exit_code, result.leftovers, result.output) == (0, 3, b"ok\n")
        assert gone(token, within=0)

    async def test_last_lines_of_a_substitution_are_kept(self, place: Place) -> None:
        assert await place.text("echo kept > >(sleep 0.02; cat)") == "kept\n"

    async def test_term_lets_a_command_clean_up(self, place: Place) -> None:
        result = await place.run("trap 'echo bye; exit 1' TERM; echo begun; sleep 60 & wait", timeout=0.5)
        assert result.output == b"begun\nbye\n"  # once: one signal, not two

    async def test_stopped_processes_end_too(self, place: Place) -> None:
        token = f"stopped-{secrets.token_hex(6)}"
        sleeper = f'bash -c "exec -a {token} sleep 300" & '
        result = await place.run(f"{sleeper} kill -STOP $!; kill -STOP $$", timeout=0.5)
        assert result.timed_out
        assert gone(token, within=0)

    async def test_a_fork_race_is_won(self, place: Place) -> None:
        token = f"race-{secrets.token_hex(6)}"
        respawn = f"trap '' TERM; f() {{ : {token}; (sleep 0.01; f) & }}; f; f; f; sleep 300"
        result = await place.run(f'bash -c "{respawn}" {token}', timeout=0.5)
        assert result.timed_out
        for _ in range(5):  # one that forks and exits can slip past one look
            assert gone(token, within=0)

    async def test_cancellation_ends_the_tree_first(self, place: Place) -> None:
        token = f"cancel-{secrets.token_hex(6)}"
        command = (
            f"trap '' TERM; setsid bash -c 'exec -a {token} sleep 300' & touch begun; : {token}; wait; wait"
        )
        running = asyncio.create_task(place.run(command))
        await until(place.workspace / "begun")
        begun = time.monotonic()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert gone(token, within=0)
        assert time.monotonic() - begun < 2.0

    async def test_two_cancellations_leave_nothing(self, place: Place) -> None:
        token = f"twice-{secrets.token_hex(6)}"
        command = f"trap '' TERM; bash -c 'exec -a {token} sleep 300' & touch begun; while :; do wait; done"
        running = asyncio.create_task(place.run(command))
        await until(place.workspace / "begun")
        running.cancel()
        await asyncio.sleep(0.05)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert gone(token, within=0)

    async def test_cancelled_before_it_began(self, place: Place) -> None:
        running = asyncio.create_task(place.run("sleep 60"))
        await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert await place.text("echo still here") == "still here\n"

    async def test_work_goes_on_after_all_of_that(self, place: Place) -> None:
        await place.run("sleep 60", timeout=0.1)
        await place.run("kill -9 $$")
        assert await place.text("echo fine") == "fine\n"

    async def test_closing_twice(self, place: Place) -> None:
        await place.executor.close()
        await place.executor.close()


class TestConcurrency:
    async def test_commands_run_at_the_same_time(self, place: Place) -> None:
        # Each waits for the file the other makes: one after the other they would never end.
        one = place.run("touch a; until test -e b; do sleep 0.01; done; echo one")
        two = place.run("touch b; until test -e a; do sleep 0.01; done; echo two")
        results = await asyncio.gather(one, two)
        assert [result.output for result in results] == [b"one\n", b"two\n"]

    async def test_outputs_do_not_mix(self, place: Place) -> None:
        results = await asyncio.gather(*(place.run(f"seq {n}000 {n}999") for n in range(1, 9)))
        for n, result in enumerate(results, 1):
            assert result.text.split() == [str(k) for k in range(n * 1000, n * 1000 + 1000)]

    async def test_one_time_limit_ends_one_command(self, place: Place) -> None:
        slow = place.run("sleep 60", timeout=0.3)
        other = place.run("sleep 1; echo done")
        ended, done = await asyncio.gather(slow, other)
        assert ended.timed_out
        assert (done.timed_out, done.output) == (False, b"done\n")

    async def test_writes_of_one_file_never_mix(self, place: Place) -> None:
        texts = [bytes([65 + n]) * 50_000 for n in range(8)]
        await asyncio.gather(*(place.executor.write("one", text, place.context) for text in texts))
        assert await place.executor.read("one", place.context) in texts


class TestFiles:
    @pytest.mark.parametrize("data", [b"", b"text\n", bytes(range(256)), SHARP_S.encode()])
    async def test_write_and_read(self, place: Place, data: bytes) -> None:
        await place.executor.write("f.bin", data, place.context)
        assert await place.executor.read("f.bin", place.context) == data

    async def test_large_file(self, place: Place) -> None:
        data = os.urandom(5_000_000)
        await place.executor.write("large", data, place.context)
        assert await place.executor.read("large", place.context) == data

    async def test_offset_and_limit(self, place: Place) -> None:
        await place.executor.write("f", b"0123456789", place.context)
        read = place.executor.read
        assert await read("f", place.context, offset=3, limit=4) == b"3456"
        assert await read("f", place.context, offset=8, limit=100) == b"89"
        assert await read("f", place.context, offset=50) == b""
        assert await read("f", place.context, limit=0) == b""

    @pytest.mark.parametrize(
        "name", ["with space", "..test", "...", "-rf", "~", "~/x", SHARP_S, "a\nb", "*", "x" * 255]
    )
    async def test_names(self, place: Place, name: str) -> None:
        await place.executor.write(name, b"1", place.context)
        assert await place.executor.read(name, place.context) == b"1"
        await place.executor.delete(name, place.context)
        with pytest.raises(PathNotFoundError):
            await place.executor.stat(name, place.context)

    @pytest.mark.parametrize("name", ["x" * 256, "", "a\0b", "\ud83d"])
    async def test_names_that_cannot_be(self, place: Place, name: str) -> None:
        with pytest.raises(ToolError):
            await place.executor.read(name, place.context)
        with pytest.raises(ToolError):
            await place.executor.write(name, b"", place.context)

    async def test_folders_are_made(self, place: Place) -> None:
        await place.executor.write("a/b/c/d.txt", b"1", place.context)
        assert await place.text("cat a/b/c/d.txt") == "1"

    async def test_absolute_paths(self, place: Place) -> None:
        path = str(place.context.working_directory / "abs.txt")
        await place.executor.write(path, b"1", place.context)
        assert await place.executor.read("abs.txt", place.context) == b"1"

    async def test_missing(self, place: Place) -> None:
        for call in (place.executor.read, place.executor.stat, place.executor.list, place.executor.delete):
            with pytest.raises(PathNotFoundError):
                await call("nothing/here", place.context)

    async def test_a_folder_is_no_file(self, place: Place) -> None:
        await place.run("mkdir d")
        with pytest.raises(ToolError, match="folder"):
            await place.executor.read("d", place.context)
        for path in ("d", "d/", ".", "new/"):
            with pytest.raises(ToolError, match="folder"):
                await place.executor.write(path, b"", place.context)
        assert await place.text("ls") == "d\nlocked\n"

    async def test_a_file_is_no_folder(self, place: Place) -> None:
        await place.executor.write("f", b"", place.context)
        for path in ("f/x", "f/"):
            with pytest.raises(PathNotFoundError):
                await place.executor.read(path, place.context)
        with pytest.raises(ToolError, match="not a folder"):
            await place.executor.list("f", place.context)

    async def test_overwriting_keeps_the_mode(self, place: Place) -> None:
        await place.executor.write("s.sh", b"#!/bin/sh\necho 1\n", place.context, mode=0o755)
        await place.executor.write("s.sh", b"#!/bin/sh\necho 2\n", place.context)
        assert await place.text("./s.sh") == "2\n"
        assert (await place.executor.stat("s.sh", place.context)).mode == 0o755

    async def test_a_file_marked_read_only_stays(self, place: Place) -> None:
        await place.executor.write("r", b"old", place.context, mode=0o444)
        with pytest.raises(PermissionDeniedError):
            await place.executor.write("r", b"new", place.context)
        assert await place.executor.read("r", place.context) == b"old"

    async def test_nothing_is_left_beside_a_written_file(self, place: Place) -> None:
        await place.executor.write("d/f", b"1", place.context)
        await place.executor.write("d/f", b"2", place.context)
        assert [entry.path for entry in await place.executor.list("d", place.context)] == ["f"]

    async def test_stat(self, place: Place) -> None:
        await place.executor.write("f", b"12345", place.context, mode=0o640)
        found = await place.executor.stat("f", place.context)
        assert (found.path, found.kind, found.size, found.mode) == ("f", "file", 5, 0o640)
        assert abs(found.mtime_ns / 1e9 - time.time()) < 100
        folder = await place.executor.stat(".", place.context)
        assert (folder.kind, folder.size) == ("dir", 0)

    async def test_list(self, place: Place) -> None:
        await place.run("mkdir -p t/a/b/c t/z; touch t/f t/a/g t/a/b/h t/a/b/c/i t/.hidden; mkfifo t/pipe")
        one = await place.executor.list("t", place.context)
        assert [(e.path, e.kind) for e in one] == [
            (".hidden", "file"),
            ("a", "dir"),
            ("f", "file"),
            ("pipe", "other"),
            ("z", "dir"),
        ]
        two = await place.executor.list("t", place.context, depth=2)
        assert [e.path for e in two] == [".hidden", "a", "a/b", "a/g", "f", "pipe", "z"]
        assert await place.executor.list("t/z", place.context) == []

    async def test_list_limit(self, place: Place) -> None:
        await place.run("mkdir many; cd many; touch {100..299}")
        found = await place.executor.list("many", place.context, limit=10)
        assert [entry.path for entry in found] == [str(n) for n in range(100, 110)]

    async def test_delete(self, place: Place) -> None:
        await place.run("mkdir -p d/full empty; touch d/full/x f; ln -s f l")
        for path in ("f", "empty/", "l"):
            await place.executor.delete(path, place.context)
        with pytest.raises(ToolError, match="not empty"):
            await place.executor.delete("d", place.context)
        for path in (".", "d/.."):
            with pytest.raises(ToolError):
                await place.executor.delete(path, place.context)
        assert await place.text("ls") == "d\nlocked\n"

    @pytest.mark.parametrize(
        "special",
        ["mkfifo s", "ln -s /dev/zero s", "python3 -c \"import socket as s; s.socket(s.AF_UNIX).bind('s')\""],
    )
    async def test_special_files_never_block(self, place: Place, special: str) -> None:
        await place.run(special)
        with pytest.raises(ToolError):
            await asyncio.wait_for(place.executor.read("s", place.context), 5)
        with pytest.raises(ToolError):
            await asyncio.wait_for(place.executor.write("s", b"x", place.context), 5)


class TestFolders:
    def outside(self, place: Place) -> Path:
        return place.workspace.parent / "outside" / "secret.txt"

    async def test_a_readable_folder(self, place: Place) -> None:
        note = str(place.workspace.parent / "readable" / "note.txt")
        assert await place.executor.read(note, place.context) == b"note"
        assert await place.executor.read("../readable/note.txt", place.context) == b"note"
        with pytest.raises(PermissionDeniedError, match="written"):
            await place.executor.write(note, b"", place.context)
        with pytest.raises(PermissionDeniedError, match="written"):
            await place.executor.delete(note, place.context)

    async def test_a_writable_folder(self, place: Place) -> None:
        path = str(place.workspace.parent / "writable" / "new" / "f")
        await place.executor.write(path, b"1", place.context)
        assert await place.executor.read(path, place.context) == b"1"
        await place.executor.delete(path, place.context)

    @pytest.mark.parametrize(
        "path", ["locked/kept.txt", "locked/new", "./locked/../locked/new", "locked/sub/new", "alias/new"]
    )
    async def test_a_read_only_folder_inside(self, place: Place, path: str) -> None:
        await place.run("ln -s locked alias")
        with pytest.raises(PermissionDeniedError, match="read-only"):
            await place.executor.write(path, b"x", place.context)
        assert await place.executor.read("locked/kept.txt", place.context) == b"kept"
        assert [entry.path for entry in await place.executor.list("locked", place.context)] == ["kept.txt"]

    async def test_a_read_only_folder_is_not_deleted(self, place: Place) -> None:
        for path in ("locked/kept.txt", "locked"):
            with pytest.raises(PermissionDeniedError, match="read-only"):
                await place.executor.delete(path, place.context)

    @pytest.mark.parametrize(
        "path",
        [
            "../outside/secret.txt",
            "/etc/passwd",
            "../../../../../../../etc/passwd",
            "/",
            "..",
            "/proc/self/root/etc/passwd",
        ],
    )
    async def test_outside(self, place: Place, path: str) -> None:
        for call in (place.executor.read, place.executor.stat, place.executor.list, place.executor.delete):
            with pytest.raises(PermissionDeniedError):
                await call(path, place.context)
        with pytest.raises(PermissionDeniedError):
            await place.executor.write(path, b"x", place.context)

    async def test_a_name_that_starts_the_same(self, place: Place) -> None:
        twin = place.workspace.with_name("work2")
        twin.mkdir()
        (twin / "f").write_text("twin")
        for path in (str(twin / "f"), "../work2/f"):
            with pytest.raises(PermissionDeniedError):
                await place.executor.read(path, place.context)

    async def test_links_that_stay_inside(self, place: Place) -> None:
        await place.run(
            'mkdir d; echo 1 > d/f; ln -s d/f rel; ln -s "$PWD/d" abs; ln -s rel chain; ln -s ../d d/up'
        )
        for path in ("rel", "abs/f", "chain", "d/up/up/f", "abs/../rel"):
            assert await place.executor.read(path, place.context) == b"1\n", path
        await place.executor.write("chain", b"2", place.context)
        assert await place.text("cat d/f; readlink chain rel") == "2rel\nd/f\n"

    async def test_a_link_into_another_allowed_folder(self, place: Place) -> None:
        (place.workspace / "there").symlink_to(place.workspace.parent / "readable")
        assert await place.executor.read("there/note.txt", place.context) == b"note"
        with pytest.raises(PermissionDeniedError):
            await place.executor.write("there/note.txt", b"x", place.context)

    @pytest.mark.parametrize(
        "target", ["../outside/secret.txt", "{outside}", "/proc/self/root{outside}", "hop"]
    )
    async def test_links_that_lead_outside(self, place: Place, target: str) -> None:
        secret = self.outside(place)
        (place.workspace / "hop").symlink_to(secret)
        (place.workspace / "l").symlink_to(target.format(outside=secret))
        with pytest.raises(PermissionDeniedError):
            await place.executor.read("l", place.context)
        with pytest.raises(PermissionDeniedError):
            await place.executor.write("l", b"x", place.context)
        assert (await place.executor.stat("l", place.context)).kind == "link"
        await place.executor.delete("l", place.context)
        assert secret.read_text() == "secret"

    async def test_links_to_nowhere_and_in_circles(self, place: Place) -> None:
        await place.run("ln -s nowhere gone; ln -s b a; ln -s a b; ln -s me me")
        kinds = {e.path: e.kind for e in await place.executor.list(".", place.context)}
        assert [kinds[name] for name in ("gone", "a", "b", "me")] == ["link"] * 4
        with pytest.raises(PathNotFoundError):
            await place.executor.read("gone", place.context)
        for path in ("a", "me", "a/x"):
            with pytest.raises(ToolError, match="links"):
                await place.executor.read(path, place.context)
