"""Bytes by digest: whole or not there, whatever happens, and put nowhere but where they were asked to be."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import resource
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conjure_jupyter.artifacts import copying
from conjure_jupyter.artifacts.blobs import BlobStore
from conjure_jupyter.errors import (
    ArtifactError,
    ArtifactNotFoundError,
    ArtifactTooLargeError,
    InvalidArtifactError,
    PathNotFoundError,
    PermissionDeniedError,
    ToolError,
)

MB = 1 << 20
CHILD = Path(__file__).parent / "blob_writer.py"


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "session" / "blobs")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def within(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def names(store: BlobStore) -> list[str]:
    return within(store._folder)


# Keeping --------------------------------------------------------------------------------------------------


def test_bytes_are_kept_by_digest_for_their_owner_alone(store: BlobStore) -> None:
    old = os.umask(0)
    try:
        digest = store.put(b"hello")
    finally:
        os.umask(old)
    assert digest == digest_of(b"hello")
    assert store.read(digest) == b"hello"
    assert stat.S_IMODE(store.path(digest).stat().st_mode) == 0o600
    assert stat.S_IMODE(store.path(digest).parent.stat().st_mode) == 0o700
    assert (store.list(), store.size(), store.has(digest)) == ([digest], 5, True)


def test_nothing_is_made_by_looking(store: BlobStore) -> None:
    assert (store.list(), store.size(), store.has(digest_of(b""))) == ([], 0, False)
    assert not store.path(digest_of(b"")).parent.exists()


def test_the_same_bytes_are_one_file(store: BlobStore) -> None:
    first = store.put(b"x")
    inode = store.path(first).stat().st_ino
    assert store.put(b"x") == first
    assert store.path(first).stat().st_ino == inode
    assert names(store) == [first]


@pytest.mark.parametrize("size", [0, 1, MB - 1, MB + 1, 9 * MB + 17])
@pytest.mark.parametrize("by", ["path", "descriptor"])
def test_files_are_kept_whole(store: BlobStore, tmp_path: Path, size: int, by: str) -> None:
    data = os.urandom(min(size, MB)) * (size // MB + 1)
    data = data[:size]
    source = tmp_path / "source"
    source.write_bytes(data)
    if by == "path":
        assert store.put_file(source) == (digest_of(data), size)
    else:
        fd = os.open(source, os.O_RDONLY)
        os.lseek(fd, 3, os.SEEK_SET)
        assert store.put_file(fd, limit=size) == (digest_of(data), size)
        assert os.lseek(fd, 0, os.SEEK_CUR) == 3, "the descriptor is the caller's"
        os.close(fd)
    assert store.read(digest_of(data)) == data


def test_a_kept_file_is_no_link_to_what_a_tool_can_write(store: BlobStore, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"before")
    digest, _ = store.put_file(source)
    with source.open("r+b") as stream:
        stream.write(b"AFTER!")
    assert store.read(digest) == b"before"
    assert store.path(digest).stat().st_nlink == 1


def test_holes_stay_holes_and_take_no_room(store: BlobStore, tmp_path: Path, work: Path) -> None:
    source = tmp_path / "sparse"
    with source.open("wb") as stream:
        stream.write(b"head")
        stream.seek(60 * MB)
        stream.write(b"middle")
        stream.truncate(200 * MB)
    digest, size = store.put_file(source, limit=200 * MB)
    assert size == 200 * MB
    assert store.path(digest).stat().st_blocks * 512 < 8 * MB
    store.checkout(digest, work, "sparse")
    assert (work / "sparse").stat().st_blocks * 512 < 8 * MB
    with (work / "sparse").open("rb") as stream:
        assert stream.read(4) == b"head"
        stream.seek(60 * MB)
        assert stream.read(7) == b"middle\0"


def test_a_file_over_the_limit_is_refused_before_it_is_copied(store: BlobStore, tmp_path: Path) -> None:
    (tmp_path / "big.bin").write_bytes(b"x" * 11)
    with pytest.raises(ArtifactTooLargeError, match=r"big\.bin") as caught:
        store.put_file(tmp_path / "big.bin", limit=10)
    assert (caught.value.size, caught.value.limit, store.list()) == (11, 10, [])
    assert store.put_file(tmp_path / "big.bin", limit=11)[1] == 11


@pytest.mark.parametrize("kind", ["fifo", "socket", "device", "folder", "link to a fifo"])
def test_what_is_no_regular_file_is_refused_without_waiting(
    store: BlobStore, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "odd"
    if "fifo" in kind:
        os.mkfifo(path)
    if kind == "link to a fifo":
        (tmp_path / "link").symlink_to(path)
        path = tmp_path / "link"
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
    elif kind == "device":
        path = Path("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    with pytest.raises(ToolError):
        store.put_file(path, limit=10)
    assert store.list() == []


def test_a_descriptor_of_a_fifo_is_refused(store: BlobStore, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    fd = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(ArtifactError, match="not a regular file"):
        store.put_file(fd)
    os.close(fd)


def test_a_file_that_is_not_there(store: BlobStore, tmp_path: Path) -> None:
    with pytest.raises(PathNotFoundError, match=r"gone\.csv"):
        store.put_file(tmp_path / "gone.csv")


def test_the_digest_is_of_what_was_stored_when_the_file_changes_meanwhile(
    store: BlobStore, tmp_path: Path
) -> None:
    source = tmp_path / "busy"
    source.write_bytes(bytes(20 * MB))
    over = threading.Event()

    def scribble() -> None:
        with source.open("r+b", buffering=0) as stream:
            turn = 0
            while not over.is_set():
                turn += 1
                stream.seek((turn * 7919 * 4096) % (19 * MB))
                stream.write(turn.to_bytes(8, "little") * 512)
                if turn % 50 == 0:
                    stream.truncate(10 * MB)
                    stream.truncate(20 * MB)

    writer = threading.Thread(target=scribble)
    writer.start()
    try:
        for _ in range(8):
            digest, size = store.put_file(source)
            assert len(store.read(digest)) == size, "read compares the digest with the bytes"
    finally:
        over.set()
        writer.join()
    assert all(not name.startswith(".") for name in names(store))


def test_a_file_that_shrinks_is_kept_as_far_as_it_goes(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    with (tmp_path / "a").open("rb") as source, (tmp_path / "b").open("w+b") as target:
        assert copying.stored(source.fileno(), target.fileno(), 9 * MB) == (digest_of(b"12345"), 5)
    assert (tmp_path / "b").read_bytes() == b"12345"


def test_where_the_kernel_does_not_copy_we_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no(*_: object) -> int:
        raise OSError(errno.EXDEV, "another file system")

    monkeypatch.setattr(os, "copy_file_range", no)
    data = os.urandom(3 * MB + 5)
    (tmp_path / "a").write_bytes(data)
    with (tmp_path / "a").open("rb") as source, (tmp_path / "b").open("w+b") as target:
        assert copying.stored(source.fileno(), target.fileno(), len(data)) == (digest_of(data), len(data))
    assert (tmp_path / "b").read_bytes() == data


# Failures -------------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (MB, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("size", [2 * MB, 10 * MB])
def test_a_disk_without_room_leaves_nothing_behind(
    store: BlobStore, tmp_path: Path, size: int, request: pytest.FixtureRequest
) -> None:
    data = os.urandom(MB) * (size // MB)
    (tmp_path / "source").write_bytes(data)
    kept = store.put(b"from before")
    request.getfixturevalue("small_disk")
    with pytest.raises(ToolError, match="larger than the system allows"):
        store.put(data)
    with pytest.raises(ToolError, match="larger than the system allows"):
        store.put_file(tmp_path / "source")
    assert names(store) == [kept]


def test_a_full_disk_is_told(store: BlobStore) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full here")
    fd = os.open(full, os.O_WRONLY)
    source = os.open(__file__, os.O_RDONLY)
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        copying.copy(source, fd, 100)
    os.close(fd)
    os.close(source)


def test_kill_at_any_moment_leaves_whole_contents_and_is_cleaned_up(tmp_path: Path) -> None:
    folder = tmp_path / "blobs"
    store = BlobStore(folder)
    torn = 0
    for attempt in range(20):
        writer = subprocess.Popen(
            [sys.executable, str(CHILD), str(folder)], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        assert writer.stdout.readline() == "writing\n"
        threading.Event().wait(0.01 + 0.017 * attempt)
        writer.kill()
        told = writer.stdout.read().split()
        writer.stdout.close()
        writer.wait()
        whole = [line for line in told if len(line) == 64]  # the last line may be cut
        for digest in {*whole, *store.list()}:
            assert digest_of(store.read(digest)) == digest
        torn += sum(path.name.startswith(".tmp-") for path in folder.glob(".*"))
        if torn >= 3:
            break
    assert torn, "no writer was killed while it wrote"
    BlobStore(folder).put(b"the next start")
    assert [name for name in within(folder) if name.startswith(".")] == []


def test_only_what_dead_writers_left_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "blobs"
    alive, later = BlobStore(folder), BlobStore(folder)
    alive.put(b"first")
    (folder / ".tmp-dead").write_bytes(b"half a cont")
    with alive._writing("x") as (fd, temporary):
        os.write(fd, b"under way")
        later.put(b"second")
        assert not (folder / ".tmp-dead").exists()
        assert temporary.read_bytes() == b"under way"
    assert sorted(later.list()) == sorted(map(digest_of, (b"first", b"second")))


def test_many_writers_of_the_same_and_of_other_bytes(tmp_path: Path) -> None:
    stores = [BlobStore(tmp_path / "blobs") for _ in range(4)]
    contents = [f"{number}".encode() * 1000 for number in range(20)]
    with ThreadPoolExecutor(4) as pool:
        digests = {*pool.map(lambda job: stores[job % 4].put(contents[job % 20]), range(200))}
    assert sorted(digests) == stores[0].list() == sorted(map(digest_of, contents))


def test_damage_is_found_and_healed_by_keeping_again(store: BlobStore, work: Path) -> None:
    digest = store.put(b"precious")
    store.path(digest).write_bytes(b"pr3cious")
    with pytest.raises(ArtifactError, match="damaged"):
        store.read(digest)
    with pytest.raises(ArtifactError, match="damaged"):
        store.checkout(digest, work, "x")
    assert within(work) == []
    assert store.put(b"precious") == digest
    assert store.read(digest) == b"precious"
    store.path(digest).write_bytes(b"pr3cious")
    (work / "source").write_bytes(b"precious")
    store.put_file(work / "source")
    assert store.read(digest) == b"precious"


@pytest.mark.parametrize(
    "digest", ["", "abc", "../../etc/passwd", "A" * 64, "a" * 63, "a" * 65, "a" * 64 + "\n", "a/" * 32]
)
def test_what_is_no_digest_names_no_file(store: BlobStore, digest: str, work: Path) -> None:
    for use in (store.path, store.read, store.has, lambda d: store.checkout(d, work, "x")):
        with pytest.raises(InvalidArtifactError):
            use(digest)


def test_what_is_not_kept_here(store: BlobStore, work: Path) -> None:
    for use in (store.read, lambda d: store.checkout(d, work, "a/b")):
        with pytest.raises(ArtifactNotFoundError, match="not on this machine"):
            use("0" * 64)
    assert within(work) == []


def test_a_link_in_the_store_is_not_followed(store: BlobStore, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    digest = digest_of(b"secret")
    store.put(b"other")
    store.path(digest).symlink_to(tmp_path / "secret")
    with pytest.raises(ArtifactError):
        store.read(digest)
    assert not store.has(digest)


def test_whether_a_file_has_a_content(store: BlobStore, tmp_path: Path) -> None:
    digest = store.put(b"one")
    for data, same in ((b"one", True), (b"two", False), (b"three", False)):
        (tmp_path / "file").write_bytes(data)
        with (tmp_path / "file").open("rb") as stream:
            assert store.matches(digest, stream.fileno()) is same
    assert len(store.list()) == 1


# Putting in a working directory ---------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o444, 0o600, 0o555])
def test_a_checkout_has_the_bytes_and_the_mode(store: BlobStore, work: Path, mode: int) -> None:
    digest = store.put(b"report")
    old = os.umask(0o077)
    try:
        path = store.checkout(digest, work, "turn_0003/files/a/report.pdf", mode)
    finally:
        os.umask(old)
    assert path == work / "turn_0003/files/a/report.pdf"
    assert path.read_bytes() == b"report"
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert (path.stat().st_nlink, path.stat().st_ino) != (2, store.path(digest).stat().st_ino)
    assert names(store) == [digest]


def test_writing_to_a_checkout_does_not_change_the_content(store: BlobStore, work: Path) -> None:
    digest = store.put(b"kept")
    path = store.checkout(digest, work, "x", 0o600)
    with path.open("r+b") as stream:
        stream.write(b"LOST")
    assert store.read(digest) == b"kept"


def test_other_bytes_are_overwritten_only_when_told(store: BlobStore, work: Path) -> None:
    digest = store.put(b"new")
    (work / "a").write_bytes(b"the user's")
    with pytest.raises(ArtifactError, match="nothing was overwritten"):
        store.checkout(digest, work, "a")
    assert (work / "a").read_bytes() == b"the user's"
    (work / "a").chmod(0o444)
    store.checkout(digest, work, "a", 0o600, replace=True)
    assert (work / "a").read_bytes() == b"new"


def test_the_same_bytes_are_left_where_they_are(store: BlobStore, work: Path) -> None:
    digest = store.put(b"same")
    (work / "a").write_bytes(b"same")
    inode = (work / "a").stat().st_ino
    store.checkout(digest, work, "a", 0o444)
    assert ((work / "a").stat().st_ino, stat.S_IMODE((work / "a").stat().st_mode)) == (inode, 0o444)


def test_a_name_taken_at_the_last_moment_is_not_overwritten(
    store: BlobStore, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = store.put(b"ours")
    fill = BlobStore._fill

    def slow(self: BlobStore, blob: int, fd: int, of: str) -> None:
        fill(self, blob, fd, of)
        (work / "a").write_bytes(b"theirs")

    monkeypatch.setattr(BlobStore, "_fill", slow)
    with pytest.raises(ArtifactError, match="nothing was overwritten"):
        store.checkout(digest, work, "a")
    assert (work / "a").read_bytes() == b"theirs"
    assert names(store) == [digest]


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("target", ["outside", "nowhere", "same bytes"])
def test_a_link_in_the_place_is_never_written_through(
    store: BlobStore, work: Path, tmp_path: Path, replace: bool, target: str
) -> None:
    digest = store.put(b"new")
    aim = tmp_path / "aim"
    if target != "nowhere":
        aim.write_bytes(b"new" if target == "same bytes" else b"untouched")
    before = aim.read_bytes() if aim.exists() else None
    (work / "a").symlink_to(aim)
    if replace:
        store.checkout(digest, work, "a", replace=True)
        assert not (work / "a").is_symlink()
        assert (work / "a").read_bytes() == b"new"
    else:
        with pytest.raises(ArtifactError):
            store.checkout(digest, work, "a")
        assert (work / "a").is_symlink()
    assert (aim.read_bytes() if aim.exists() else None) == before
    assert not aim.exists() or stat.S_IMODE(aim.stat().st_mode) == 0o644


@pytest.mark.parametrize("aim", ["..", "/tmp", "inside", "nowhere"])
@pytest.mark.parametrize("replace", [False, True])
def test_a_link_on_the_way_is_not_followed(store: BlobStore, work: Path, aim: str, replace: bool) -> None:
    digest = store.put(b"new")
    (work / "inside").mkdir()
    (work / "turn_0001").symlink_to(aim)
    with pytest.raises(PermissionDeniedError, match="turn_0001"):
        store.checkout(digest, work, "turn_0001/files/a", replace=replace)
    assert within(work / "inside") == []


def test_a_folder_or_fifo_in_the_place(store: BlobStore, work: Path) -> None:
    digest = store.put(b"new")
    (work / "folder").mkdir()
    os.mkfifo(work / "fifo")
    for replace in (False, True):
        with pytest.raises(ToolError):
            store.checkout(digest, work, "folder", replace=replace)
    with pytest.raises(ArtifactError):
        store.checkout(digest, work, "fifo")
    store.checkout(digest, work, "fifo", replace=True)
    assert (work / "fifo").read_bytes() == b"new"
    assert names(store) == [digest]


@given(relative=st.text(alphabet="ab./\0\\~ ", max_size=12))
def test_no_name_leads_out_of_the_folder(tmp_path_factory: pytest.TempPathFactory, relative: str) -> None:
    top = tmp_path_factory.mktemp("top")
    root = top / "x" / "work"
    root.mkdir(parents=True)
    store = BlobStore(top / "blobs")
    digest = store.put(b"here")
    parts = relative.split("/")
    fine = all(part not in ("", ".", "..") and "\0" not in part for part in parts)
    if fine:
        assert store.checkout(digest, root, relative).read_bytes() == b"here"
    else:
        with pytest.raises(InvalidArtifactError):
            store.checkout(digest, root, relative)
    found = [path for path in top.rglob("*") if path.is_file() and path.parent != top / "blobs"]
    assert all(path.is_relative_to(root) for path in found)
    assert len(found) == int(fine)


def test_a_checkout_on_another_file_system(store: BlobStore) -> None:
    other = Path("/dev/shm")
    if not other.is_dir() or other.stat().st_dev == Path(store._folder.parents[1]).stat().st_dev:
        pytest.skip("there is no second file system here")
    digest = store.put(b"across")
    root = Path(
        subprocess.run(
            ["mktemp", "-d", "-p", other], capture_output=True, text=True, check=True
        ).stdout.strip()
    )
    try:
        store.checkout(digest, root, "a/b")
        assert (root / "a/b").read_bytes() == b"across"
        assert within(root / "a") == ["b"]
    finally:
        subprocess.run(["rm", "-rf", root], check=True)


def test_a_clone_shares_blocks_where_the_file_system_can(tmp_path: Path) -> None:
    data = os.urandom(MB)
    (tmp_path / "a").write_bytes(data)
    with (tmp_path / "a").open("rb") as source, (tmp_path / "b").open("w+b") as target:
        if not copying.clone(source.fileno(), target.fileno()):
            assert (tmp_path / "b").stat().st_size == 0, "a file system that cannot leaves the file as it was"
            pytest.skip("this file system cannot clone")
    assert (tmp_path / "b").read_bytes() == data


def test_a_clone_is_taken_at_its_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a clone works, what it made is hashed and nothing is copied."""

    def cloned(source: int, target: int) -> bool:
        os.pwrite(target, os.pread(source, 100, 0), 0)
        return True

    monkeypatch.setattr(copying, "clone", cloned)
    monkeypatch.setattr(copying, "copy", lambda *_: pytest.fail("a clone needs no copy"))
    store = BlobStore(tmp_path / "blobs")
    (tmp_path / "a").write_bytes(b"cloned bytes")
    digest, size = store.put_file(tmp_path / "a")
    assert (digest, size) == (digest_of(b"cloned bytes"), 12)
    store.checkout(digest, tmp_path, "b")
    assert (tmp_path / "b").read_bytes() == b"cloned bytes"


def test_the_list_is_json_friendly(store: BlobStore) -> None:
    store.put(b"a")
    (store._folder / "notes.txt").write_text("somebody's")
    assert json.loads(json.dumps(store.list())) == [digest_of(b"a")]
