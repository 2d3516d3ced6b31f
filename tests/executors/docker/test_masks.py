"""Which files of the notebook's folder are hidden."""

from __future__ import annotations

import os
import sys
from pathlib import Path, PurePosixPath

import pytest

from conjure_jupyter.executors.docker.guards import Guards
from conjure_jupyter.executors.docker.masks import MaskWatch, find_masks, quick_look


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")


def test_dot_files_at_any_depth(tmp_path: Path) -> None:
    write(tmp_path, ".env", "a/.netrc", "a/b/.aws/credentials", "a/data.csv", ".git/config")
    found = find_masks(tmp_path)
    assert found.files == {".env", "a/.netrc"}
    assert found.folders == {".git", "a/b/.aws"}
    assert found.complete
    kinds = {str(mount.target): mount.kind for mount in found.mounts(PurePosixPath("/notebook"))}
    assert kinds == {
        "/notebook/.env": "null",
        "/notebook/a/.netrc": "null",
        "/notebook/.git": "tmpfs",
        "/notebook/a/b/.aws": "tmpfs",
    }


def test_links_are_left_as_they_are(tmp_path: Path) -> None:
    write(tmp_path, "real/.env")
    (tmp_path / ".link").symlink_to(tmp_path / "real")
    (tmp_path / "loop").symlink_to(tmp_path)
    assert find_masks(tmp_path).files == {"real/.env"}
    assert find_masks(tmp_path).folders == frozenset()


def test_a_folder_with_too_many_is_hidden_whole(tmp_path: Path) -> None:
    write(tmp_path, ".env", "src/.hidden", *(f"node_modules/p{n}/.eslintrc" for n in range(20)))
    found = find_masks(tmp_path, max_masks=5)
    assert found.folders == {"node_modules"}
    assert found.whole == {"node_modules"}
    assert found.files == {".env", "src/.hidden"}


@pytest.mark.parametrize("limits", [{"max_entries": 3}, {"max_masks": 3}])
def test_too_much_to_look_at(tmp_path: Path, limits: dict[str, int]) -> None:
    write(tmp_path, ".a", ".b", ".c", ".d", "e")
    assert not find_masks(tmp_path, **limits).complete


def test_a_quick_look(tmp_path: Path) -> None:
    write(tmp_path, ".env", "a/.netrc", "plain")
    (tmp_path / ".link").symlink_to(tmp_path / "plain")
    assert quick_look(tmp_path) == {".env"}
    assert quick_look(tmp_path / "nowhere") == frozenset()


@pytest.mark.skipif(sys.platform != "linux", reason="names there are always UTF-8")
def test_names_that_an_engine_cannot_be_told(tmp_path: Path) -> None:
    write(tmp_path, os.fsdecode(b"data/d\xff/.env"), "data/.netrc", "plain/.env")
    found = find_masks(tmp_path)
    assert found.folders == {"data"}
    assert found.files == {"plain/.env"}
    assert found.whole == {"data"}
    write(tmp_path, os.fsdecode(b".e\xff"))
    assert not find_masks(tmp_path).complete


@pytest.mark.parametrize("name", [".env", "sub/.env"])
def test_a_masked_file_that_is_replaced_is_noticed(tmp_path: Path, name: str) -> None:
    write(tmp_path, name, "new")
    watch = MaskWatch(tmp_path)
    (tmp_path / name).write_text("written in place")
    assert not watch.slipped()
    (tmp_path / "new").rename(tmp_path / name)
    assert watch.slipped()
    watch.close()


def test_a_masked_file_that_is_removed_and_made_again_is_noticed(tmp_path: Path) -> None:
    write(tmp_path, ".env", ".git/config")
    watch = MaskWatch(tmp_path)
    (tmp_path / ".env").unlink()
    assert not watch.slipped()  # nothing lies there
    write(tmp_path, ".env")
    assert watch.slipped()
    watch.close()


def test_what_others_obey_is_guarded(tmp_path: Path) -> None:
    write(
        tmp_path,
        ".git/hooks/a",
        ".git/config",
        ".git/HEAD",
        ".vscode/x",
        "CLAUDE.md",
        ".env",
        "a.pem",
        "b.csv",
    )
    (tmp_path / ".bashrc").symlink_to(tmp_path / "b.csv")
    guards = Guards(tmp_path, PurePosixPath("/workspace"))
    assert {str(mount.target): (mount.kind, mount.writable) for mount in guards.mounts} == {
        "/workspace/.git": ("bind", True),
        "/workspace/.git/hooks": ("bind", False),
        "/workspace/.git/config": ("bind", False),
        "/workspace/.vscode": ("bind", False),
        "/workspace/CLAUDE.md": ("bind", False),
        "/workspace/.env": ("null", False),
        "/workspace/a.pem": ("null", False),
    }
    assert not guards.slipped()
    (tmp_path / "b.csv").rename(tmp_path / "CLAUDE.md")
    assert guards.slipped()
    guards.close()
