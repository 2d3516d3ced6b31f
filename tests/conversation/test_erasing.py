"""Erasing a session: all of it, here and elsewhere, nothing else, and what was left is told."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conjure_jupyter.conversation import trees
from conjure_jupyter.conversation.erasing import ERASED, ERASED_LOG, erase_session, id_of, is_leftover
from conjure_jupyter.conversation.pruning import list_sessions, plan_prune, prune
from conjure_jupyter.errors import SessionNotFoundError, StorageUnavailableError
from conjure_jupyter.fileref import FileRef
from conjure_jupyter.storage.contract import Storage

from .past import Past, names, tree
from .test_trees import deep


class Cloud(Storage):
    """A storage elsewhere that has some keys, and is out of reach as often as it is told to be."""

    name = "cloud"
    remote = True

    def __init__(self, keys: list[str], failures: int = 0) -> None:
        self.keys = keys
        self.failures = failures
        self.closed = False

    async def init(self, session_id: str) -> None:
        self.session_id = session_id

    async def cleanup(self) -> list[FileRef]:
        if self.failures:
            self.failures -= 1
            raise StorageUnavailableError("cloud", "no network")
        gone, self.keys = self.keys, []
        return [FileRef(key, 1, "text/plain", "") for key in gone]

    async def write(self, path: str, content: bytes | Path, *, content_type: str | None = None) -> FileRef:
        raise NotImplementedError

    async def read(self, path: str) -> bytes:
        raise NotImplementedError

    async def exists(self, path: str) -> bool:
        return path in self.keys

    async def delete(self, path: str) -> None:
        self.keys.remove(path)

    async def list(self, prefix: str = "") -> list[FileRef]:
        raise NotImplementedError

    def local_path(self) -> Path:
        raise NotImplementedError

    async def close(self) -> None:
        self.closed = True


@pytest.fixture
def sessions(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "sessions"
    subprocess.run(["rm", "-rf", str(tmp_path)], check=True)


def make(sessions: Path, name: str = "s") -> Past:
    past = Past(sessions / name)
    with past.turn():
        past.put("outputs/a.txt", "a" * 1000)
    past.timeline.close()
    return past


def only(folder: Path) -> Path:
    """The one thing that lies in a folder."""
    [name] = names(folder)
    return folder / name


async def test_all_of_it_goes_and_is_told(sessions: Path) -> None:
    past = make(sessions)
    make(sessions, "other")
    files = tree(past.folder)
    size = sum(len(data) for data, _ in files.values())
    done = await erase_session(past.folder, Cloud(["timeline/0001", "blobs/x"]))
    assert (done.id, done.files) == ("s", len(files))
    assert done.size == size
    assert done.remote == ["timeline/0001", "blobs/x"]
    assert done.left == []
    assert done.describe().startswith(f"Erased session s: {len(files)} files, ")
    assert "2 remote copies" in done.describe()
    assert names(sessions) == ["other"]


async def test_what_is_no_session_is_not_erased(sessions: Path, tmp_path: Path) -> None:
    past = make(sessions)
    (tmp_path / "link").symlink_to(past.folder)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine.txt").write_text("mine")
    for path in (tmp_path / "link", tmp_path / "folder", tmp_path / "nothing"):
        with pytest.raises(SessionNotFoundError):
            await erase_session(path)
    assert (tmp_path / "folder" / "mine.txt").exists()
    assert (past.folder / "timeline.jsonl").exists()


async def test_hostile_files_do_not_lead_out(sessions: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine.txt").write_text("mine")
    (outside / "mine.txt").chmod(0o640)
    past = make(sessions)
    (past.work / "link").symlink_to(outside)
    os.link(outside / "mine.txt", past.work / "hard")
    os.mkfifo(past.work / "pipe")
    deep(past.work / "outputs", 3000)
    (past.work / "locked" / "x").mkdir(parents=True)
    (past.work / "locked").chmod(0)
    (past.folder / ERASED_LOG).symlink_to(outside)
    done = await erase_session(past.folder)
    assert done.left == []
    assert names(sessions) == []
    assert names(outside) == ["mine.txt"]
    assert (outside / "mine.txt").read_text() == "mine"
    assert (outside / "mine.txt").stat().st_mode & 0o777 == 0o640


async def test_what_cannot_be_erased_is_told_and_is_no_session(
    sessions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    past = make(sessions)
    whole = trees.clear

    def refuse(path: Path) -> None:
        if path.name == "work":
            raise PermissionError(1, "Operation not permitted")
        whole(path)

    monkeypatch.setattr(trees, "clear", refuse)
    done = await erase_session(past.folder)
    assert len(done.left) == 1
    assert "work (Operation not permitted)" in done.left[0]
    assert "not erased: " in done.describe()
    left = only(sessions)
    assert names(left) == ["work"]
    assert is_leftover(left)
    assert id_of(left) == "s"
    monkeypatch.undo()
    again = await prune(plan_prune(sessions, None))
    assert (again.erased[0].id, again.erased[0].files) == ("s", 1)
    assert names(sessions) == []


async def test_out_of_reach_the_copies_elsewhere_are_remembered(sessions: Path) -> None:
    past = make(sessions)
    cloud = Cloud(["timeline/0001"], failures=2)
    done = await erase_session(past.folder, cloud)
    assert done.remote == []
    assert "no network" in done.left[0]
    left = only(sessions)
    assert names(left) == ["elsewhere"]
    [use] = list_sessions(sessions)
    assert (use.id, use.leftover) == ("s", True)
    assert "no network" in (await erase_session(left)).left[0]
    left = only(sessions)
    assert "no network" in (await erase_session(left, cloud)).left[0]
    left = only(sessions)
    done = await erase_session(left, cloud)
    assert (done.remote, done.left) == (["timeline/0001"], [])
    assert names(sessions) == []


async def test_a_storage_that_removes_the_folder_itself_is_no_failure(sessions: Path) -> None:
    past = make(sessions)

    class Local(Cloud):
        async def cleanup(self) -> list[FileRef]:
            trees.clear(past.folder)
            return await super().cleanup()

    done = await erase_session(past.folder, Local([]))
    assert (done.left, done.files > 3) == ([], True)
    assert names(sessions) == []


async def test_a_crash_between_the_two_names_leaves_no_session(
    sessions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    past = make(sessions)

    async def crash(*_: Any) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("conjure_jupyter.conversation.erasing._erase_elsewhere", crash)
    with pytest.raises(KeyboardInterrupt):
        await erase_session(past.folder, Cloud([]))
    monkeypatch.undo()
    assert is_leftover(past.folder)
    assert not (past.folder / "timeline.jsonl").exists()
    [use] = list_sessions(sessions)
    assert (use.id, use.leftover, use.live) == ("s", True, False)
    await prune(plan_prune(sessions, None))
    assert names(sessions) == []


def test_the_name_of_what_is_left_tells_the_session() -> None:
    assert id_of(Path(f"/x/{ERASED}my-session.1-0a1b2c3d")) == "my-session.1"
    assert id_of(Path("/x/my-session")) == "my-session"
