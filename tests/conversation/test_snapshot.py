"""Snapshots of ``work/``: what is kept, what is read, and what a hostile tree can do to them."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conjure_jupyter.artifacts.blobs import BlobStore
from conjure_jupyter.conversation.undo import ledger, worktree
from conjure_jupyter.conversation.undo.manifest import UNSEEN, decode, diff
from conjure_jupyter.conversation.undo.restoring import checkout_all, latest_snapshot
from conjure_jupyter.conversation.undo.snapshot import Snapshots
from conjure_jupyter.errors import SessionError

from .past import Past, tree
from .test_trees import deep


@pytest.fixture
def past(tmp_path: Path) -> Iterator[Past]:
    made = Past(tmp_path / "session")
    yield made
    made.timeline.close()
    subprocess.run(["rm", "-rf", str(tmp_path)], check=True)


def settle() -> None:
    """Wait until the times of the files written so far are old enough to be trusted."""
    time.sleep(0.06)


def test_what_is_kept(past: Past) -> None:
    past.put("outputs/a.txt", "a")
    past.put("run.sh", "#!/bin/sh\n", 0o755)
    past.put("skills/x/SKILL.md", "not work")
    past.put("turn_0003/files/a.txt", "not work either")
    past.put("data/skills/x.txt", "work")
    snapshot = past.snapshots.take()
    assert sorted(snapshot.files) == ["data/skills/x.txt", "outputs/a.txt", "run.sh"]
    assert snapshot.files["run.sh"].mode == 0o755
    assert (snapshot.kept, snapshot.size, snapshot.skipped) == (3, 15, ())
    assert past.blobs.read(snapshot.files["outputs/a.txt"].sha256) == b"a"
    content = json.loads(past.blobs.read(snapshot.manifest))
    assert content["outputs/a.txt"] == [snapshot.files["outputs/a.txt"].sha256, 0o644, 1]
    assert past.snapshots.load(snapshot.manifest).files == snapshot.files


def test_an_unchanged_tree_is_not_read_again_and_needs_no_block(past: Past) -> None:
    for number in range(50):
        past.put(f"outputs/{number}.txt", str(number))
    settle()
    first = past.snapshots.take()
    assert past.snapshots.reads == 50
    assert ledger.note(past.timeline, first, "start") is not None
    again = past.snapshots.take()
    assert past.snapshots.reads == 50
    assert again.manifest == first.manifest
    assert ledger.note(past.timeline, again, "end") is None
    past.put("outputs/7.txt", "x")
    assert past.snapshots.take().manifest != first.manifest
    assert past.snapshots.reads == 51


def test_the_same_tree_elsewhere_has_the_same_manifest(past: Past, tmp_path: Path) -> None:
    other = Past(tmp_path / "other")
    for name in ("b.txt", "a.txt"):
        past.put(name, name)
    for name in ("a.txt", "b.txt"):
        other.put(name, name)
    assert (
        past.snapshots.take().manifest == other.snapshots.take().manifest == other.snapshots.look().manifest
    )
    other.timeline.close()


def test_a_change_within_one_tick_of_the_clock_is_seen(past: Past) -> None:
    place = past.put("a.txt", "one")
    first = past.snapshots.take()
    status = place.stat()
    place.write_text("two")
    os.utime(place, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert past.snapshots.take().files["a.txt"].sha256 != first.files["a.txt"].sha256


def test_looking_keeps_nothing(past: Past) -> None:
    past.put("a.txt", "a")
    found = past.snapshots.look()
    assert not past.blobs.has(found.files["a.txt"].sha256)
    assert not past.blobs.has(found.manifest)
    assert past.snapshots.take().manifest == found.manifest
    assert past.blobs.has(found.files["a.txt"].sha256)


def test_names_that_are_no_text_survive(past: Past, tmp_path: Path) -> None:
    names = [b"caf\xe9.txt", b"new\nline", "snow\N{SNOWMAN}".encode(), b"\xff\xfe"]
    for name in names:
        past.put(os.fsdecode(b"outputs/" + name), name)
    snapshot = past.snapshots.take()
    assert past.blobs.read(snapshot.manifest).isascii()
    ledger.note(past.timeline, snapshot, "end")
    again = past.again()
    loaded = latest_snapshot(again.timeline, again.snapshots)
    assert loaded is not None
    assert {os.fsencode(path) for path in loaded.files} == {b"outputs/" + name for name in names}
    root = tmp_path / "elsewhere"
    root.mkdir()
    done = checkout_all(loaded, Snapshots(root, past.blobs, 1000))
    assert len(done.made) == 4
    assert tree(root) == tree(past.work)
    again.timeline.close()


def test_what_does_not_fit_is_told_and_the_user_s_files_come_first(past: Past) -> None:
    past.snapshots.limit = 100
    past.put("cache.bin", "c" * 60)
    past.put("small.txt", "s" * 10)
    past.put("uploads/given.csv", "u" * 30)
    past.put("outputs/report.md", "o" * 50)
    past.put("outputs/large.bin", "l" * 500)
    snapshot = past.snapshots.take()
    kept = {path for path, entry in snapshot.files.items() if entry.sha256}
    assert kept == {"outputs/report.md", "uploads/given.csv", "small.txt"}
    assert {skipped.path: skipped.size for skipped in snapshot.skipped} == {
        "cache.bin": 60,
        "outputs/large.bin": 500,
    }
    block = snapshot.data("start")
    assert block["files"] == 3
    assert block["size"] == 90
    assert "undo_limit" in block["skipped"][0]["reason"]
    assert past.snapshots.take().manifest == snapshot.manifest
    os.utime(past.work / "cache.bin", ns=(1, 1))
    assert past.snapshots.take().manifest != snapshot.manifest


def test_what_is_no_file_is_passed_over(past: Past, tmp_path: Path) -> None:
    outside = tmp_path / "secret.txt"
    outside.write_text("secret")
    past.put("outputs/a.txt", "a")
    (past.work / "link").symlink_to(outside)
    (past.work / "folder").symlink_to(tmp_path)
    os.mkfifo(past.work / "pipe")
    os.link(outside, past.work / "hard")
    snapshot = past.snapshots.take()
    assert sorted(snapshot.files) == ["hard", "outputs/a.txt"]
    assert stat.S_ISFIFO((past.work / "pipe").lstat().st_mode)


def test_a_folder_too_deep_to_enter_is_unknown_not_empty(past: Past) -> None:
    past.put("outputs/a.txt", "a")
    before = past.snapshots.take()
    deep(past.work / "outputs", 3000)
    after = past.snapshots.take()
    [unseen] = after.unseen
    assert unseen.startswith("outputs/deep/deep/")
    assert after.at(unseen + "end") == UNSEEN
    assert after.at("outputs/b.txt") is None
    assert past.snapshots.load(after.manifest).unseen == after.unseen
    assert diff(before, after) == {}


def test_more_entries_than_are_looked_at(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worktree, "MOST_ENTRIES", 12)
    for number in range(10):
        past.put(f"many/{number}", "x")
        past.put(f"outputs/{number}", "x")
    snapshot = past.snapshots.take()
    assert "outputs/9" in snapshot.files or snapshot.at("outputs/9") == UNSEEN
    assert snapshot.at("many/5") == UNSEEN or "many/5" in snapshot.files
    assert snapshot.unseen
    assert len(snapshot.files) <= 12


def test_work_replaced_by_a_link_is_not_followed(past: Past, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x").write_text("x")
    subprocess.run(["rm", "-rf", str(past.work)], check=True)
    past.work.symlink_to(outside)
    snapshot = past.snapshots.take()
    assert snapshot.files == {}
    assert snapshot.at("x") == UNSEEN


def test_a_file_that_cannot_be_kept_is_told(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    past.put("outputs/a.txt", "a")
    whole = BlobStore.put

    def full(self: BlobStore, data: bytes) -> str:
        if data == b"a":
            raise OSError(28, "No space left on device")
        return whole(self, data)

    monkeypatch.setattr(BlobStore, "put", full)
    snapshot = past.snapshots.take()
    assert [skipped.reason for skipped in snapshot.skipped] == ["could not be kept (No space left on device)"]
    assert snapshot.kept == 0
    monkeypatch.undo()
    later = past.snapshots.take()
    assert later.skipped == ()
    assert past.blobs.has(later.files["outputs/a.txt"].sha256)


def test_without_room_for_the_manifest_the_error_says_so(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: BlobStore, data: bytes) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(BlobStore, "put", full)
    with pytest.raises(SessionError, match="cannot be undone later"):
        past.snapshots.take()


@pytest.mark.parametrize(
    "content",
    [
        [],
        {"../out": ["", 0, 0, 0]},
        {"a/../../out": ["", 0, 0, 0]},
        {"/etc/passwd": ["", 0, 0, 0]},
        {"a//b": ["", 0, 0, 0]},
        {"skills/x/SKILL.md": ["", 0, 0, 0]},
        {"turn_0001": ["", 0, 0, 0]},
        {"a\0b": ["", 0, 0, 0]},
        {"a": ["../../timeline.jsonl", 0, 0]},
        {"a": ["", -1, 0]},
        {"a": ["", True, 0]},
        {"a": ["", 0]},
        {"a": None},
    ],
)
def test_a_manifest_from_elsewhere_cannot_lead_out(past: Past, content: Any) -> None:
    manifest = past.blobs.put(json.dumps(content).encode())
    with pytest.raises(SessionError, match="cannot be read"):
        past.snapshots.load(manifest)


def test_no_manifest_carries_special_modes() -> None:
    data = json.dumps({"a": ["0" * 64, 0o4755, 3]}).encode()
    assert decode("x", data).files["a"].mode == 0o755


def test_filling_changes_nothing_that_is_there(past: Past, tmp_path: Path) -> None:
    past.put("outputs/a.txt", "a")
    past.put("outputs/b.txt", "b")
    past.put("sub/c.txt", "c", 0o600)
    snapshot = past.snapshots.take()
    root, outside = tmp_path / "elsewhere", tmp_path / "outside"
    (root / "outputs").mkdir(parents=True)
    outside.mkdir()
    (root / "outputs" / "a.txt").write_text("mine")
    (root / "sub").symlink_to(outside)
    past.blobs.path(snapshot.files["outputs/b.txt"].sha256).unlink()
    done = checkout_all(snapshot, Snapshots(root, past.blobs, 1000))
    assert done.made == []
    assert done.missing == ["outputs/b.txt"]
    assert [kept.path for kept in done.left] == ["outputs/a.txt", "sub/c.txt"]
    assert (root / "outputs" / "a.txt").read_text() == "mine"
    assert list(outside.iterdir()) == []
