"""What a folder full of traps does to a storage: nothing outside is read or written, and errors are said."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conjure_jupyter.errors import StorageError, StorageNotFoundError
from conjure_jupyter.storage import LocalStorage, S3Storage, Storage, check_key
from conjure_jupyter.storage.files import Folder
from conjure_jupyter.storage.keys import MAX_KEY, MAX_PART, content_type_of, is_hidden
from tests.s3 import Server

ROOT = Path(__file__).parents[2]


@pytest.fixture(params=["local", "s3"])
async def storage(
    request: pytest.FixtureRequest, files_server: Server, prefix: str, tmp_path: Path
) -> Iterator[Storage]:
    made: Storage
    if request.param == "local":
        made = LocalStorage(base_path=tmp_path)
    else:
        made = S3Storage(**files_server.options(prefix), cache_path=tmp_path)
    await made.init("s1")
    yield made  # type: ignore[misc]
    await made.close()


def names(folder: Path) -> list[str]:
    """What lies in a folder."""
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret").write_text("secret")
    return folder


async def test_a_link_is_never_followed(storage: Storage, outside: Path) -> None:
    root = storage.local_path()
    (root / "file").symlink_to(outside / "secret")
    (root / "folder").symlink_to(outside)
    (root / "inside").mkdir()
    (root / "inside" / "self").symlink_to(root)
    for key in ("file", "folder/secret", "inside/self/file"):
        with pytest.raises(StorageError):
            await storage.read(key)
        with pytest.raises(StorageError):
            await storage.write(key, b"overwritten")
    with pytest.raises(StorageError):
        await storage.write("folder/new", b"1")
    assert await storage.list() == []
    await storage.sync_to_remote()
    assert (outside / "secret").read_text() == "secret"
    assert names(outside) == ["secret"]
    await storage.cleanup()
    assert (outside / "secret").read_text() == "secret"


async def test_what_is_no_file_is_not_waited_for(storage: Storage) -> None:
    root = storage.local_path()
    os.mkfifo(root / "pipe")
    (root / "folder").mkdir()
    for key in ("pipe", "folder"):
        with pytest.raises(StorageError):
            await storage.read(key)
        with pytest.raises(StorageError):
            await storage.write(key, b"1")
        with pytest.raises(StorageError):
            await storage.write("source", root / key)
    assert await storage.list() == []


async def test_a_key_below_a_file_is_refused(storage: Storage) -> None:
    await storage.write("a", b"1")
    with pytest.raises(StorageError):
        await storage.write("a/b", b"2")
    assert await storage.read("a") == b"1"


async def test_the_queue_is_no_key(storage: Storage) -> None:
    for key in (".conjure-queue/000000000001.entry", ".CONJURE-QUEUE/x", "a/.conjure-0123abcd.tmp"):
        with pytest.raises(StorageError, match="kept for the storage itself"):
            await storage.write(key, b"1")
    await storage.write("a", b"1")
    assert [ref.path for ref in await storage.list()] == ["a"]


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
@pytest.mark.parametrize("kind", ["local", "s3"])
def test_rights_do_not_depend_on_the_umask(tmp_path: Path, umask: int, kind: str) -> None:
    code = f"""
import asyncio, os
from pathlib import Path
from conjure_jupyter.storage import LocalStorage, S3Storage
base = Path({str(tmp_path)!r})
os.umask({umask})
async def main():
    storage = LocalStorage(base_path=base) if {kind == "local"} else S3Storage(
        bucket="test", endpoint="http://127.0.0.1:9", access_key="a", secret_key="b", cache_path=base)
    await storage.init("s1")
    await storage.write("a/b/c", b"1")
    await storage.write("a/large", b"x" * 1_000_000)
    print(storage.local_path())
    await storage.close()
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    root = Path(done.stdout.strip())
    found = {path: path.stat().st_mode for path in [root, *root.rglob("*")]}
    assert len(found) >= 5
    for path, mode in found.items():
        assert stat.S_IMODE(mode) == (0o700 if stat.S_ISDIR(mode) else 0o600), path


def full_disk(folder: Path, limit: str, kind: str) -> dict[str, object]:
    command = [sys.executable, "-m", "tests.storage.full_disk", str(folder), limit, kind]
    return check_full_disk(command)


def check_full_disk(command: list[str]) -> dict[str, object]:
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    said: dict[str, object] = json.loads(done.stdout)
    assert said["old"] == "old" * 5000
    assert said["error"], "the disk was not full"
    assert said["after"] == "new" * 5000
    assert said["left"] == []
    return said


@pytest.mark.parametrize("kind", ["local", "s3"])
def test_a_limit_on_the_size_of_files_leaves_the_old_one(tmp_path: Path, kind: str) -> None:
    full_disk(tmp_path / "base", "30000", kind)


@pytest.mark.parametrize("kind", ["local", "s3"])
def test_a_full_file_system_leaves_the_old_file(tmp_path: Path, kind: str) -> None:
    unshare = ["unshare", "--map-root-user", "--user", "--mount", "sh", "-c"]
    mount = f"mount -t tmpfs -o size=200k tmpfs '{tmp_path}'"
    if (
        not shutil.which("unshare")
        or subprocess.run([*unshare, mount], capture_output=True, check=False).returncode
    ):
        pytest.skip("no right to mount a small file system here")
    run = f"exec '{sys.executable}' -m tests.storage.full_disk '{tmp_path}/base' '' {kind}"
    check_full_disk([*unshare, f"{mount} && {run}"])


async def test_a_local_storage_of_a_given_folder(tmp_path: Path) -> None:
    storage = LocalStorage(folder=tmp_path / "own")
    await storage.init("s1")
    assert storage.local_path() == tmp_path / "own"
    named = LocalStorage(base_path=tmp_path, prefix="mine")
    await named.init("s2")
    assert named.local_path() == tmp_path / "mine_s2"
    with pytest.raises(StorageError, match="not both"):
        LocalStorage(base_path=tmp_path, folder=tmp_path)
    for bad in ("", "../x", "a/b", "x\0"):
        with pytest.raises(StorageError):
            await LocalStorage(base_path=tmp_path, prefix="" if not bad else None).init(bad or "/")


async def test_a_folder_that_is_somebody_elses_link_is_refused(tmp_path: Path, outside: Path) -> None:
    (tmp_path / "conjure_s1").symlink_to(outside)
    with pytest.raises(StorageError, match="link"):
        await LocalStorage(base_path=tmp_path).init("s1")


#: Texts that are good at leaving folders, and any other.
PARTS = st.sampled_from(["..", ".", "", "a", "b.txt", "...", "..a", "~", "link", "\\", "\0", "ü", " "])
KEYS = st.one_of(st.text(max_size=40), st.lists(PARTS, min_size=1, max_size=6).map("/".join))


@settings(max_examples=300, deadline=None)
@given(key=KEYS, content=st.binary(max_size=20))
def test_a_key_is_refused_or_stays_inside(
    tmp_path_factory: pytest.TempPathFactory, key: str, content: bytes
) -> None:
    base = tmp_path_factory.getbasetemp() / "keys"
    shutil.rmtree(base, ignore_errors=True)
    (base / "outside").mkdir(parents=True)
    (base / "root").mkdir()
    (base / "root" / "link").symlink_to(base / "outside")
    folder = Folder(base / "root")
    try:
        written = folder.write(key, content)
    except StorageError:
        assert folder.keys() == []
    else:
        assert check_key(key) == key
        assert folder.read(key) == content
        assert written.size == len(content)
        assert folder.keys() == [key]
        assert folder.delete(key)
        with pytest.raises(StorageNotFoundError):
            folder.read(key)
        assert names(base / "root") == ["link"], "no empty folder is left"
    assert names(base / "outside") == []
    assert names(base) == ["outside", "root"]


@given(key=KEYS)
def test_what_is_a_key(key: str) -> None:
    try:
        assert check_key(key) == key
    except StorageError:
        return
    parts = key.split("/")
    assert len(key.encode()) <= MAX_KEY
    assert all(0 < len(part.encode()) <= MAX_PART and part not in (".", "..") for part in parts)
    assert not is_hidden(key)
    assert "/" in content_type_of(key)
    assert os.path.normpath(key) == key
