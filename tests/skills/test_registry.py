from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from conjure_jupyter.errors import SkillNotFoundError
from conjure_jupyter.skills import (
    SkillRegistry,
    default_roots,
    find,
    index,
    load,
    load_skill_file,
    pack_skill,
    parse_skill_md,
)
from tests.builders import write_skill


def test_list_get_and_find(tmp_path: Path) -> None:
    write_skill(tmp_path, "b")
    write_skill(tmp_path, "a")
    registry = SkillRegistry([tmp_path])
    assert [skill.name for skill in registry.list()] == ["a", "b"]
    assert ("a" in registry, "c" in registry, len(registry)) == (True, False, 2)
    with pytest.raises(SkillNotFoundError) as caught:
        registry.get("c")
    assert caught.value.known == ("a", "b")
    names = index(registry.list())
    assert find(names, "a") == registry.get("a")
    assert find(names, "c") is None


def test_reload_sees_what_was_added_changed_and_removed(tmp_path: Path) -> None:
    write_skill(tmp_path, "body")
    write_skill(tmp_path, "gone")
    write_skill(tmp_path, "same")
    write_skill(tmp_path, "script", files={"scripts/a.py": "1"})
    registry = SkillRegistry([tmp_path])
    assert not registry.reload()
    write_skill(tmp_path, "body", body="other")
    shutil.rmtree(tmp_path / "gone")
    (tmp_path / "script/scripts/a.py").write_text("22")
    write_skill(tmp_path, "new")
    report = registry.reload()
    assert (report.added, report.changed, report.removed) == (("new",), ("body", "script"), ("gone",))
    assert not registry.reload()


def test_a_broken_skill_is_told_by_reload(tmp_path: Path) -> None:
    write_skill(tmp_path, "csv")
    registry = SkillRegistry([tmp_path])
    write_skill(tmp_path, "csv", raw="oops")
    report = registry.reload()
    assert report.removed == ("csv",)
    assert [problem.code for problem in report.diagnostics] == ["no-frontmatter"]
    assert registry.diagnostics == list(report.diagnostics)


def test_projects_come_before_users_and_are_not_trusted(tmp_path: Path) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    write_skill(project / ".claude/skills", "csv", description="of the project", allowed_tools="Bash")
    write_skill(home / ".claude/skills", "csv", description="of the user")
    write_skill(home / ".agents/skills", "mine")
    registry = SkillRegistry(roots=default_roots(project, home))
    assert (registry.get("csv").description, registry.get("csv").trusted) == ("of the project", False)
    assert registry.get("mine").trusted
    assert [problem.code for problem in registry.diagnostics] == ["shadowed"]


def test_what_the_user_loads_is_trusted(tmp_path: Path) -> None:
    write_skill(tmp_path / ".claude/skills", "csv")
    registry = SkillRegistry(roots=default_roots(tmp_path, tmp_path / "home"))
    assert not registry.get("csv").trusted
    report = registry.register(load(tmp_path / ".claude/skills"))
    assert registry.get("csv").trusted
    assert report.changed == ("csv",)
    assert registry.diagnostics == []
    registry.reload()
    assert registry.get("csv").trusted


def test_what_is_registered_last_counts_and_that_is_told(tmp_path: Path) -> None:
    write_skill(tmp_path / "a", "csv", description="first")
    write_skill(tmp_path / "b", "csv", description="second")
    registry = SkillRegistry([tmp_path / "a"])
    registry.register(load(tmp_path / "b"))
    assert registry.get("csv").description == "second"
    assert [problem.code for problem in registry.diagnostics] == ["shadowed"]
    registry.register([parse_skill_md(tmp_path / "a/csv")])
    assert registry.get("csv").description == "first"


def test_registered_paths_are_searched_again(tmp_path: Path) -> None:
    write_skill(tmp_path, "one")
    registry = SkillRegistry()
    assert registry.register(load(tmp_path)).added == ("one",)
    write_skill(tmp_path, "two")
    assert registry.reload().added == ("two",)


def test_a_skill_registered_alone(tmp_path: Path) -> None:
    path = write_skill(tmp_path, "csv")
    registry = SkillRegistry()
    registry.register([parse_skill_md(path)])
    write_skill(tmp_path, "csv", description="Other text.")
    assert registry.reload().changed == ("csv",)
    assert registry.get("csv").description == "Other text."
    shutil.rmtree(path)
    assert registry.reload().removed == ("csv",)


def test_an_archive_that_is_replaced(tmp_path: Path) -> None:
    folder = write_skill(tmp_path, "csv", description="old")
    archive = pack_skill(folder, tmp_path)
    registry = SkillRegistry()
    registry.register([load_skill_file(archive)])
    write_skill(tmp_path, "csv", description="new")
    pack_skill(folder, tmp_path)
    assert registry.reload().changed == ("csv",)
    assert registry.get("csv").description == "new"
    archive.unlink()
    assert registry.reload().removed == ("csv",)
