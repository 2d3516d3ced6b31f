"""Nothing outside a folder is ever reached, by the kernel's own resolution and by the walk alike."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conjure_jupyter.errors import (
    ConjureError,
    ExecutorError,
    PathNotFoundError,
    PermissionDeniedError,
    ToolError,
)
from conjure_jupyter.paths import (
    located,
    make_private_dir,
    open_beneath,
    open_within,
    opening,
    read_beneath,
    tool_error,
    validate_path,
    write_atomic,
)


@pytest.fixture(params=["kernel", "walk"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of opening; ``kernel`` falls back to the walk where the system has no openat2."""
    if request.param == "walk":
        monkeypatch.setattr(opening, "_syscall", lambda: None)
    return str(request.param)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "p"
    (folder / "d" / "e").mkdir(parents=True)
    (folder / "f").write_bytes(b"in")
    (folder / "d" / "g").write_bytes(b"in")
    (folder / "..test").write_bytes(b"in")
    for name in ("p2", "p-old", "P", "outside"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").write_bytes(b"SECRET")
    return folder


@pytest.mark.usefixtures("way")
class TestReading:
    @pytest.mark.parametrize(
        "path", ["f", "./f", "d/g", "d//g", "d/./g", "d/../f", "d/e/../../f", "..test", "d/../d/e/../g"]
    )
    def test_inside(self, root: Path, path: str) -> None:
        assert read_beneath(root, path) == b"in"

    @pytest.mark.parametrize(
        "path",
        [
            "..",
            "../p2/f",
            "../p-old/f",
            "../P/f",
            "../outside/f",
            "d/../../outside/f",
            "d/e/../../../outside/f",
            "/etc/passwd",
            "/",
            "//etc/passwd",
            "/proc/self/root/etc/passwd",
            "../" * 50 + "etc/passwd",
        ],
    )
    def test_outside(self, root: Path, path: str) -> None:
        with pytest.raises(PermissionDeniedError):
            read_beneath(root, path)

    def test_out_and_in_again(self, root: Path) -> None:
        assert read_beneath(root, "../p/f") == b"in"
        assert read_beneath(root, f"{root}/f") == b"in"
        assert read_beneath(root, f"{root.parent}/outside/../p/f") == b"in"

    @pytest.mark.parametrize(
        ("path", "message"), [("", "empty"), ("f\0g", "NUL"), ("\ud83d", "text"), ("a" * 300, "long")]
    )
    def test_no_path_at_all(self, root: Path, path: str, message: str) -> None:
        with pytest.raises(ToolError, match=message):
            read_beneath(root, path)

    @pytest.mark.parametrize("path", ["missing", "missing/f", "f/", "f/x", "f/.", "f/..", "d/missing"])
    def test_missing(self, root: Path, path: str) -> None:
        with pytest.raises(PathNotFoundError):
            read_beneath(root, path)

    @pytest.mark.parametrize("path", [".", "d", "d/", "d/e/.."])
    def test_a_folder(self, root: Path, path: str) -> None:
        with pytest.raises(ToolError, match="folder"):
            read_beneath(root, path)

    def test_limit(self, root: Path) -> None:
        assert read_beneath(root, "f", limit=1) == b"i"
        assert read_beneath(root, "f", limit=0) == b""

    def test_links_inside(self, root: Path) -> None:
        (root / "rel").symlink_to("d/g")
        (root / "abs").symlink_to(root / "d")
        (root / "d" / "up").symlink_to("../rel")
        (root / "roundabout").symlink_to("../p/d")
        (root / "dots").symlink_to(f"{root.parent}/outside/../p/d/")
        for path in ("rel", "abs/g", "d/up", "abs/up", "roundabout/g", "dots/g", "abs/../f", "abs/e/../g"):
            assert read_beneath(root, path) == b"in", path

    @pytest.mark.parametrize(
        "target",
        [
            "../outside/f",
            "{}/outside/f",
            "/etc/passwd",
            "{}/p2/f",
            "/proc/self/root{}/outside/f",
            "/proc/self/cwd",
            "d/../../outside/f",
        ],
    )
    def test_links_outside(self, root: Path, target: str) -> None:
        (root / "first").symlink_to(target.format(root.parent))
        (root / "chain").symlink_to("d/../first")
        for path in ("first", "chain"):
            with pytest.raises(PermissionDeniedError):
                read_beneath(root, path)

    def test_a_linked_folder_outside(self, root: Path) -> None:
        (root / "l").symlink_to("../outside")
        for path in ("l/f", "l/../p/l/f", "l/../outside/f", "l/"):
            with pytest.raises(PermissionDeniedError):
                read_beneath(root, path)

    def test_cycles(self, root: Path) -> None:
        (root / "me").symlink_to("me")
        (root / "a").symlink_to("b")
        (root / "b").symlink_to(root / "a")
        for path in ("me", "me/x", "a", "b"):
            with pytest.raises(ToolError, match="links"):
                read_beneath(root, path)

    def test_a_long_chain(self, root: Path) -> None:
        (root / "l0").symlink_to("f")
        for n in range(1, 60):
            (root / f"l{n}").symlink_to(f"l{n - 1}")
        assert read_beneath(root, "l30") == b"in"
        with pytest.raises(ToolError, match="links"):
            read_beneath(root, "l59")

    def test_special_files_never_block(self, root: Path) -> None:
        os.mkfifo(root / "pipe")
        with pytest.raises(ToolError, match="regular"):
            read_beneath(root, "pipe")
        with pytest.raises(ToolError, match="regular"):
            open_beneath(root, "pipe", os.O_WRONLY)
        with pytest.raises(ToolError, match="regular"):
            read_beneath(Path("/dev"), "zero")

    def test_a_link_of_the_process_file_system_is_text(self) -> None:
        with pytest.raises(PermissionDeniedError):
            read_beneath(Path("/proc/self"), "root/etc/hostname")

    def test_the_root_of_all(self) -> None:
        assert read_beneath(Path("/"), "../../etc/passwd") == Path("/etc/passwd").read_bytes()

    def test_a_root_that_is_a_link(self, root: Path) -> None:
        (root.parent / "alias").symlink_to(root)
        (root / "abs").symlink_to(root / "f")
        assert read_beneath(root.parent / "alias", "abs") == b"in"
        assert read_beneath(root.parent / "alias", f"{root}/f") == b"in"

    def test_a_root_that_is_missing(self, root: Path) -> None:
        with pytest.raises(PathNotFoundError):
            read_beneath(root / "no", "f")

    def test_making_files(self, root: Path) -> None:
        fd = open_beneath(root, "d/new", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o640)
        os.close(fd)
        assert (root / "d" / "new").stat().st_mode & 0o777 == 0o640
        (root / "dangling").symlink_to("d/made")
        os.close(open_beneath(root, "dangling", os.O_WRONLY | os.O_CREAT))
        assert (root / "d" / "made").is_file()
        (root / "trap").symlink_to("../outside/made")
        with pytest.raises(PermissionDeniedError):
            open_beneath(root, "trap", os.O_WRONLY | os.O_CREAT)
        assert not (root.parent / "outside" / "made").exists()

    def test_descriptors_are_not_inherited_or_leaked(self, root: Path) -> None:
        (root / "l").symlink_to("../outside")
        before = len(list(Path("/proc/self/fd").iterdir()))
        fd = open_beneath(root, "d/../f", os.O_RDONLY)
        assert not os.get_inheritable(fd)
        os.close(fd)
        for path in ("l/f", "f/x", "missing/x", "d/e/../../.."):
            with pytest.raises(ToolError):
                open_beneath(root, path, os.O_RDONLY)
        assert len(list(Path("/proc/self/fd").iterdir())) == before

    def test_a_folder_swapped_for_a_link_while_reading(self, root: Path) -> None:
        swap, spare, trap = root / "swap", root / "spare", root / "trap"
        swap.mkdir()
        (swap / "f").write_bytes(b"in")
        trap.symlink_to(root.parent / "outside")
        stop = threading.Event()

        def swapper() -> None:
            while not stop.is_set():
                swap.rename(spare)
                trap.rename(swap)
                swap.rename(trap)
                spare.rename(swap)

        thread = threading.Thread(target=swapper)
        thread.start()
        seen: dict[str, int] = {}
        try:
            for _ in range(4000):
                try:
                    found = read_beneath(root, "swap/f").decode()
                except ToolError as error:
                    found = type(error).__name__
                seen[found] = seen.get(found, 0) + 1
        finally:
            stop.set()
            thread.join()
        assert "SECRET" not in seen
        assert seen["in"] > 0


NAMES = st.sampled_from(
    ["f", "d", "e", "g", "..", ".", "", "..test", "rel", "abs", "out", "loop", "missing", "F", "~", " "]
)


class TestGrammar:
    @pytest.fixture
    def tree(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        base = tmp_path_factory.mktemp("grammar")
        folder = base / "p"
        (folder / "d" / "e").mkdir(parents=True)
        (base / "f").write_bytes(b"SECRET")
        for place in (folder, folder / "d", folder / "d" / "e"):
            (place / "f").write_bytes(b"in")
            (place / "rel").symlink_to("../p/d" if place == folder else "..")
            (place / "abs").symlink_to(folder / "d")
            (place / "out").symlink_to(base)
            (place / "loop").symlink_to("loop")
        return folder

    @settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        parts=st.lists(NAMES, min_size=1, max_size=8),
        prefix=st.sampled_from(["", "/", "{root}/", "{root}/../"]),
    )
    def test_both_ways_agree_and_agree_with_the_system(
        self, tree: Path, parts: list[str], prefix: str
    ) -> None:
        path = prefix.format(root=tree) + "/".join(parts)
        walked, kernel = outcome(tree, path, walk=True), outcome(tree, path, walk=False)
        assert walked == kernel
        assert walked != b"SECRET"
        if walked == b"in":
            # What we read is what the system reads at that path, and it lies inside.
            assert (tree / path).read_bytes() == b"in"
            assert (tree / path).resolve().is_relative_to(tree)

    @settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(path=st.text(max_size=40))
    def test_any_text_is_refused_or_missing(self, tree: Path, path: str) -> None:
        with pytest.raises(ToolError):
            os.close(open_beneath(tree, "no/" + path, os.O_RDONLY))

    @settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(parts=st.lists(NAMES, min_size=1, max_size=6))
    def test_validation_agrees_with_the_system(self, tree: Path, parts: list[str]) -> None:
        path = f"{tree}/" + "/".join(parts)
        try:
            found = validate_path(path, [tree])
        except ToolError:
            return
        assert found.is_relative_to(tree)
        assert os.path.realpath(path) == str(found)


def outcome(root: Path, path: str, *, walk: bool) -> bytes | str:
    with pytest.MonkeyPatch.context() as patch:
        if walk:
            patch.setattr(opening, "_syscall", lambda: None)
        try:
            return read_beneath(root, path)
        except ToolError as error:
            return type(error).__name__


class TestSeveralRoots:
    def test_a_link_from_one_into_another(self, root: Path) -> None:
        other = root.parent / "other"
        other.mkdir()
        (other / "f").write_bytes(b"other")
        (root / "there").symlink_to(other)
        (root / "rel").symlink_to("../other/f")
        for path in ("there/f", "rel", "../other/f", str(other / "f")):
            fd = open_within(path, (root, other), os.O_RDONLY)
            assert os.read(fd, 10) == b"other"
            os.close(fd)

    def test_the_deepest_root_counts(self, root: Path) -> None:
        with located(str(root / "d" / "g"), (root, root / "d")) as spot:
            assert (spot.name, spot.real) == ("g", str((root / "d" / "g").resolve()))

    def test_folders_are_shown_before_they_are_entered(self, root: Path) -> None:
        refused = (root / "d").stat().st_ino

        def visit(fd: int) -> None:
            if os.fstat(fd).st_ino == refused:
                raise PermissionDeniedError("d", "no")

        (root / "alias").symlink_to("d")
        for path in ("d/e/x", "alias/e/x", "d/"):
            with pytest.raises(PermissionDeniedError), located(path, (root,), visit=visit):
                pytest.fail("entered")


class TestWriting:
    def test_a_new_file_has_the_mode_asked_for(self, tmp_path: Path) -> None:
        old = os.umask(0o777)
        try:
            write_atomic(tmp_path / "f", b"1", mode=0o600)
        finally:
            os.umask(old)
        assert (tmp_path / "f").stat().st_mode & 0o777 == 0o600
        assert (tmp_path / "f").read_bytes() == b"1"

    def test_a_link_is_replaced_not_followed(self, root: Path) -> None:
        (root / "l").symlink_to(root.parent / "outside" / "f")
        with pytest.raises(ToolError):
            write_atomic(root / "l", b"x")
        assert (root.parent / "outside" / "f").read_bytes() == b"SECRET"

    def test_no_folder(self, tmp_path: Path) -> None:
        with pytest.raises(PathNotFoundError):
            write_atomic(tmp_path / "no" / "f", b"")

    def test_a_longest_name(self, tmp_path: Path) -> None:
        write_atomic(tmp_path / ("x" * 255), b"1")
        with pytest.raises(ToolError, match="long"):
            write_atomic(tmp_path / ("x" * 256), b"1")

    def test_a_file_size_limit_keeps_the_old_file(self, tmp_path: Path) -> None:
        program = (
            "import resource, sys; from pathlib import Path; from conjure_jupyter.paths import write_atomic\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
            "try: write_atomic(Path(sys.argv[1]), b'x' * 5000)\n"
            "except Exception as error: print(type(error).__name__, error)\n"
        )
        (tmp_path / "f").write_bytes(b"old")
        done = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / "f")], capture_output=True, text=True, check=True
        )
        assert done.stdout.startswith("ToolError")
        assert "larger" in done.stdout
        assert (tmp_path / "f").read_bytes() == b"old"
        assert [path.name for path in tmp_path.iterdir()] == ["f"]

    @pytest.mark.parametrize("step", ["write", "fsync", "rename", "fchmod"])
    def test_a_full_disk_at_any_step_keeps_the_old_file(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
    ) -> None:
        def full(*args: object, **kwargs: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        write_atomic(tmp_path / "f", b"old")
        with monkeypatch.context() as patch:
            patch.setattr(os, step, full)
            with pytest.raises(ToolError, match="disk is full"):
                write_atomic(tmp_path / "f", b"new")
        assert (tmp_path / "f").read_bytes() == b"old"
        assert [path.name for path in tmp_path.iterdir()] == ["f"]

    def test_a_reader_sees_the_old_or_the_new(self, tmp_path: Path) -> None:
        path = tmp_path / "f"
        write_atomic(path, b"a" * 100_000)
        stop = threading.Event()
        torn = []

        def reader() -> None:
            while not stop.is_set():
                data = path.read_bytes()
                if len(data) != 100_000 or len(set(data)) != 1:
                    torn.append(data)

        thread = threading.Thread(target=reader)
        thread.start()
        for n in range(50):
            write_atomic(path, bytes([97 + n % 26]) * 100_000)
        stop.set()
        thread.join()
        assert not torn


class TestPrivateFolders:
    @pytest.mark.parametrize("umask", [0, 0o077, 0o777])
    def test_only_the_owner_enters(self, tmp_path: Path, umask: int) -> None:
        old = os.umask(umask)
        try:
            make_private_dir(tmp_path / "s")
        finally:
            os.umask(old)
        assert (tmp_path / "s").stat().st_mode & 0o777 == 0o700

    def test_an_open_one_is_closed(self, tmp_path: Path) -> None:
        (tmp_path / "s").mkdir(mode=0o755)
        make_private_dir(tmp_path / "s")
        assert (tmp_path / "s").stat().st_mode & 0o777 == 0o700

    def test_folders_above_are_made(self, tmp_path: Path) -> None:
        make_private_dir(tmp_path / "a" / "b")
        assert (tmp_path / "a" / "b").is_dir()

    def test_a_link_or_a_file_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "d").mkdir(mode=0o755)
        (tmp_path / "l").symlink_to("d")
        (tmp_path / "f").touch()
        for name in ("l", "f"):
            with pytest.raises(ToolError):
                make_private_dir(tmp_path / name)
        assert (tmp_path / "d").stat().st_mode & 0o777 == 0o755


class TestValidation:
    @pytest.mark.parametrize("path", ["", ".", "f", "d/e", "missing", "missing/deeper", "..test", "d/.."])
    def test_inside(self, root: Path, path: str) -> None:
        assert validate_path(f"{root}/{path}", [root]) == (root / path).resolve()

    @pytest.mark.parametrize(
        "path", ["/p2", "/p-old/f", "/p/../p2/f", "/P/f", "", "/outside/missing", "/p/../outside"]
    )
    def test_outside(self, root: Path, path: str) -> None:
        with pytest.raises(PermissionDeniedError):
            validate_path(f"{root.parent}{path}", [root])

    def test_links(self, root: Path) -> None:
        (root / "in").symlink_to("d")
        (root / "out").symlink_to("../outside")
        (root / "me").symlink_to("me")
        (root / "gone").symlink_to("../outside/missing")
        assert validate_path(root / "in" / "g", [root]) == (root / "d" / "g").resolve()
        for name in ("out", "out/f", "out/missing", "gone", "out/../p/out"):
            with pytest.raises(PermissionDeniedError):
                validate_path(root / name, [root])
        with pytest.raises(ToolError, match="links"):
            validate_path(root / "me", [root])

    def test_no_path_at_all(self, root: Path) -> None:
        for path in ("", "a\0b"):
            with pytest.raises(ToolError):
                validate_path(path, [root])

    def test_nothing_is_allowed(self, root: Path) -> None:
        with pytest.raises(PermissionDeniedError):
            validate_path(root, [])


class TestErrors:
    @pytest.mark.parametrize("number", sorted(errno.errorcode))
    def test_every_failure_of_the_system_is_translated(self, number: int) -> None:
        error = tool_error(OSError(number, os.strerror(number)), "some/path")
        assert isinstance(error, ToolError | ExecutorError)
        assert "some/path" in str(error)
        assert isinstance(error, ExecutorError) == (number in (errno.EMFILE, errno.ENFILE))

    @pytest.mark.parametrize(
        ("number", "kind"),
        [
            (errno.ENOENT, PathNotFoundError),
            (errno.ENOTDIR, PathNotFoundError),
            (errno.EACCES, PermissionDeniedError),
            (errno.EPERM, PermissionDeniedError),
            (errno.EROFS, PermissionDeniedError),
        ],
    )
    def test_the_most_specific_wins(self, number: int, kind: type[ConjureError]) -> None:
        assert type(tool_error(OSError(number, "x"), "p")) is kind

    def test_an_error_without_a_number(self) -> None:
        assert str(tool_error(OSError(), "p")) == "p: cannot be used"

    def test_descriptors_that_run_out_are_our_fault(self, root: Path) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        held = []
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 200), hard))
        try:
            while True:
                try:
                    held.append(os.open(root / "f", os.O_RDONLY))
                except OSError:
                    break
            with pytest.raises(ExecutorError, match="open"):
                read_beneath(root, "f")
        finally:
            for fd in held:
                os.close(fd)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
