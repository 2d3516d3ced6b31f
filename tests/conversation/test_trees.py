"""Folders filled by a hostile hand: nothing outside is touched, and nothing makes them unusable."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from conjure_jupyter.conversation import trees
from conjure_jupyter.conversation.workspace import Workspace
from conjure_jupyter.errors import PathNotFoundError, SessionError
from conjure_jupyter.skills import load
from tests.builders import write_skill


@pytest.fixture(autouse=True)
def no_deep_trees_left(tmp_path: Path) -> Iterator[None]:
    """pytest's own clean-up, which comes later, fails on folders that are too deep for Python's stack."""
    yield
    subprocess.run(["rm", "-rf", str(tmp_path)], check=True)


def deep(folder: Path, depth: int) -> None:
    """Folders within folders, deeper than Python's stack and the system's longest path."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("deep", dir_fd=here)
        below = os.open("deep", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("end", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir(mode=0o755)
    (folder / "mine.txt").write_text("mine")
    (folder / "mine.txt").chmod(0o640)
    return folder


def untouched(outside: Path) -> bool:
    entries = [entry.name for entry in outside.iterdir()]
    modes = (outside.stat().st_mode & 0o777, (outside / "mine.txt").stat().st_mode & 0o777)
    return entries == ["mine.txt"] and modes == (0o755, 0o640)


@pytest.fixture
def files(tmp_path: Path) -> Workspace:
    workspace = Workspace(tmp_path / "session" / "work")
    workspace.make()
    return workspace


def test_clearing_follows_nothing_and_bears_any_depth(tmp_path: Path, outside: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "sub" / "locked").mkdir(parents=True)
    deep(tree / "sub", 3000)
    (tree / "link").symlink_to(outside)
    (tree / "sub" / "link").symlink_to(outside)
    os.mkfifo(tree / "sub" / "pipe")
    (tree / "sub" / "locked").chmod(0)
    trees.clear(tree)
    assert not tree.exists()
    assert untouched(outside)
    (tmp_path / "to").symlink_to(outside)
    trees.clear(tmp_path / "to")
    assert untouched(outside)


def test_outputs_of_any_kind_are_gathered(files: Workspace, outside: Path) -> None:
    before = files.snapshot()
    (files.outputs / "link").symlink_to(outside)
    os.mkfifo(files.outputs / "pipe")
    deep(files.outputs, 3000)
    Path(os.fsdecode(os.fsencode(files.outputs) + b"/caf\xe9\n.txt")).write_text("x")
    made = files.changed_since(before)
    assert [file.path for file in made] == ["outputs/caf\N{REPLACEMENT CHARACTER}\n.txt"]
    assert made[0].local_path is not None
    assert made[0].local_path.read_text() == "x"


def test_outputs_that_became_a_link_show_nothing_and_are_put_right(files: Workspace, outside: Path) -> None:
    before = files.snapshot()
    files.outputs.rmdir()
    files.outputs.symlink_to(outside)
    assert files.changed_since(before) == []
    assert files.make() == ["outputs/ had been replaced and was made anew"]
    assert files.outputs.is_dir()
    assert not files.outputs.is_symlink()
    assert untouched(outside)


@pytest.mark.parametrize("name", ["skills", "uploads", "outputs"])
def test_a_folder_that_a_command_replaced_is_made_anew(files: Workspace, outside: Path, name: str) -> None:
    (files.root / name).rmdir()
    (files.root / name).symlink_to(outside)
    assert len(files.make()) == 1
    (files.root / name).rmdir()
    (files.root / name).write_text("a file")
    assert len(files.make()) == 1
    assert untouched(outside)


def test_an_upload_does_not_go_through_a_link(files: Workspace, outside: Path, tmp_path: Path) -> None:
    given = tmp_path / "x.txt"
    given.write_text("given")
    (files.uploads / "x.txt").symlink_to(outside / "new.txt")
    (files.uploads / "x-2.txt").symlink_to(outside / "mine.txt")
    os.mkfifo(files.uploads / "x-3.txt")
    [ref] = files.add_uploads([given])
    assert ref.path == "uploads/x-4.txt"
    assert untouched(outside)


def test_names_of_uploads_can_be_spoken_of(files: Workspace, tmp_path: Path) -> None:
    given = Path(os.fsdecode(os.fsencode(tmp_path) + b"/a\nb\xff.txt"))
    given.write_text("x")
    assert files.add_uploads([given])[0].path == "uploads/a_b_.txt"


def test_what_cannot_be_uploaded_is_one_clear_error(files: Workspace, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(PathNotFoundError, match="not a file"):
        files.add_uploads([tmp_path / "pipe"])
    with pytest.raises(SessionError, match="too long"):
        files.add_uploads([tmp_path / ("x" * 5000)])


def test_a_copy_of_a_skill_that_became_something_else_is_restored(
    files: Workspace, tmp_path: Path, outside: Path
) -> None:
    path = write_skill(tmp_path / "s", name="one", files={"scripts/run.py": "print(1)\n"})
    skills = load(path.parent)
    assert files.copy_skills(skills) == []
    copy = files.skills / "one"

    def replace_by_link() -> None:
        trees.clear(copy)
        copy.symlink_to(outside)

    def replace_by_dangling_link() -> None:
        trees.clear(copy)
        copy.symlink_to(outside / "nothing")

    def replace_by_file() -> None:
        trees.clear(copy)
        copy.write_text("x")

    def replace_a_folder_by_a_link() -> None:
        trees.clear(copy / "scripts")
        (copy / "scripts").symlink_to(outside)

    def add_a_link() -> None:
        (copy / "scripts" / "json.py").symlink_to(files.outputs / "json.py")

    def add_a_pipe() -> None:
        os.mkfifo(copy / "pipe")

    def make_writable() -> None:
        (copy / "scripts" / "run.py").chmod(0o644)

    def dig() -> None:
        deep(copy, 1500)
        (copy / "SKILL.md").chmod(0o600)
        (copy / "SKILL.md").write_text("evil")

    for change in (
        replace_by_link,
        replace_by_dangling_link,
        replace_by_file,
        replace_a_folder_by_a_link,
        add_a_link,
        add_a_pipe,
        make_writable,
        dig,
    ):
        change()
        assert files.copy_skills(skills) == ["skills/one had been changed and was restored"], change.__name__
        assert sorted(relative for relative, _ in trees.walk(copy)) == ["SKILL.md", "scripts/run.py"]
        assert (copy / "scripts" / "run.py").stat().st_mode & 0o777 == 0o444
    assert untouched(outside)


def test_compiled_files_go_without_a_word(files: Workspace, tmp_path: Path) -> None:
    skills = load(write_skill(tmp_path / "s", name="one").parent)
    files.copy_skills(skills)
    (files.skills / "one" / "__pycache__").mkdir()
    (files.skills / "one" / "__pycache__" / "x.pyc").write_bytes(b"evil")
    assert files.copy_skills(skills) == []
    assert not (files.skills / "one" / "__pycache__").exists()


def test_only_files_of_the_skill_are_copied(files: Workspace, tmp_path: Path, outside: Path) -> None:
    path = write_skill(tmp_path / "s", name="one", files={"a.txt": "a"})
    (path / "leak").symlink_to(outside / "mine.txt")
    (path / "leaks").symlink_to(outside)
    (path / "loop").symlink_to(path)
    (path / "inner").symlink_to("a.txt")
    os.mkfifo(path / "pipe")
    Path(os.fsdecode(os.fsencode(path) + b"/odd\xff\n")).write_text("odd")
    deep(path, 1500)
    files.copy_skills(load(path.parent))
    found = sorted(relative for relative, _ in trees.walk(files.skills / "one"))
    assert found == ["SKILL.md", "a.txt", "inner", os.fsdecode(b"odd\xff\n")]


def test_a_skill_that_holds_the_session_is_not_copied_into_itself(tmp_path: Path) -> None:
    path = write_skill(tmp_path, name="project")
    files = Workspace(path / "mine" / "session" / "work")
    files.make()
    skills = load(path)
    files.copy_skills(skills)
    files._copies.clear()  # as after a restart
    files.copy_skills(skills)
    assert [relative for relative, _ in trees.walk(files.skills / "project")] == ["SKILL.md"]


def test_one_skill_that_cannot_be_copied_leaves_the_others(files: Workspace, tmp_path: Path) -> None:
    gone = write_skill(tmp_path / "s", name="gone")
    write_skill(tmp_path / "s", name="stays")
    skills = load(tmp_path / "s")
    trees.clear(gone)
    [told] = files.copy_skills(skills)
    assert told.startswith("skills/gone: it could not be copied")
    assert (files.skills / "stays" / "SKILL.md").is_file()


def test_huge_skills_are_copied_in_part(
    files: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trees, "MOST_FILES", 5)
    path = write_skill(tmp_path / "s", name="huge", files={f"f{n}": "x" for n in range(9)})
    assert files.copy_skills(load(path)) == ["skills/huge: only its first 5 files were copied"]


@pytest.mark.parametrize("name", ["../../x", "..", "/", "a\nb", "\U00020000" * 64, "con", ""])
def test_a_skill_s_name_is_no_path(files: Workspace, tmp_path: Path, name: str) -> None:
    from dataclasses import replace

    [skill] = load(write_skill(tmp_path / "s", name="one"))
    assert files.copy_skills([replace(skill, name=name), replace(skill, name=name.upper() + "/")]) == []
    assert len(list(files.skills.iterdir())) == 2
