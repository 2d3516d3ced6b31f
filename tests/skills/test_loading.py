from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from conjure_jupyter.errors import (
    InvalidFrontmatterError,
    InvalidSkillStructureError,
    PathNotFoundError,
    PermissionDeniedError,
)
from conjure_jupyter.skills import (
    Skill,
    default_roots,
    load,
    load_all,
    load_body,
    load_resources,
    parse_skill_md,
    read_resource,
    scan_directory,
)
from conjure_jupyter.skills.models import SkillList
from tests.benchmarks.odd_skills import cases
from tests.builders import write_skill

CASES = {name: (build, expected) for name, build, expected in cases()}


def codes(skills: SkillList) -> list[str]:
    return [problem.code for problem in skills.diagnostics]


@pytest.mark.parametrize(("build", "expected"), CASES.values(), ids=CASES.keys())
def test_odd_skills_are_read_right(
    tmp_path: Path, build: Callable[[Path], object], expected: list[tuple[str, str]]
) -> None:
    build(tmp_path / "skills")
    for _ in range(2):  # the second answer comes from the cache
        assert [(skill.name, skill.description) for skill in load(tmp_path / "skills")] == expected


def test_a_skill_knows_its_place(tmp_path: Path) -> None:
    write_skill(
        tmp_path,
        "csv",
        files={"scripts/run.py": "#!x", "references/a.md": "", "assets/b.png": b"", "theme/c.css": ""},
    )
    (skill,) = load(tmp_path)
    assert (skill.path, skill.skill_md, skill.trusted) == (tmp_path / "csv", tmp_path / "csv/SKILL.md", True)
    assert skill.resources.scripts == (Path("scripts/run.py"),)
    assert skill.resources.references == (Path("references/a.md"),)
    assert skill.resources.assets == (Path("assets/b.png"),)
    assert skill.resources.other == (Path("theme/c.css"),)
    assert not skill.diagnostics
    assert skill.body is None
    assert load_body(skill).body == "# Instructions\n\nDo what the user asks."


@pytest.mark.parametrize("path", ["csv", "csv/SKILL.md", "."])
def test_a_skill_is_loaded_by_any_of_its_paths(
    tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_skill(tmp_path, "csv")
    monkeypatch.chdir(tmp_path)
    assert [skill.name for skill in load(path)] == ["csv"]
    assert load(path)[0].path.is_absolute()


@pytest.mark.parametrize(
    ("frontmatter", "code", "line"),
    [
        ("name: Other\ndescription: d", "bad-name", 2),
        ("name: other\ndescription: d", "name-mismatch", 2),
        ("description: d", "missing-name", 2),
        (f"name: csv\ndescription: {'d' * 1025}", "description-too-long", 3),
        (f"name: csv\ndescription: d\ncompatibility: {'d' * 501}", "compatibility-too-long", 4),
        ("name: csv\ndescription: d\nmodel: x", "unknown-key", 4),
        ("name: csv\ndescription: d\nlicense: [a]", "bad-license", 4),
        ("name: csv\ndescription: d\nmetadata: a", "bad-metadata", 4),
        ("name: csv\ndescription: d\nallowed-tools: {a: b}", "bad-allowed-tools", 4),
        ("name: csv\ndescription: d\ndescription: e", "duplicate-key", 4),
        ("name: csv\ndescription: d: e", "unquoted-text", 3),
        ("name: csv\ndescription: d\ncompatibility: [a, b]", "bad-compatibility", 4),
    ],
)
def test_warned_of_and_loaded(tmp_path: Path, frontmatter: str, code: str, line: int) -> None:
    write_skill(tmp_path, "csv", frontmatter=frontmatter)
    skills = load(tmp_path)
    assert len(skills) == 1
    told = {problem.code: problem for problem in skills.diagnostics}
    assert (told[code].severity, told[code].line) == ("warning", line)
    assert skills[0].diagnostics == tuple(skills.diagnostics)
    assert str(told[code]).startswith(f"{tmp_path}/csv/SKILL.md:{line}: warning: ")


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ("no frontmatter", "no-frontmatter"),
        ("", "no-frontmatter"),
        ("---\nname: csv\n", "unclosed-frontmatter"),
        ("---\nname: csv\n---\n", "missing-description"),
        ("---\nname: csv\nx: [csv\n---\n", "invalid-yaml"),
        ("---\nname: csv\ndescription: &a d\n---\n", "unsafe-yaml"),
        ("---\nname: csv\ndescription: d\nx: '" + "y" * 80_000 + "'\n---\n", "too-large"),
        ("---\nname: csv\n---\n".encode("utf-16"), "bad-encoding"),
    ],
)
def test_told_and_passed_over(tmp_path: Path, raw: str | bytes, code: str) -> None:
    write_skill(tmp_path, "csv", raw=raw)
    write_skill(tmp_path, "good")
    skills = load(tmp_path)
    assert [skill.name for skill in skills] == ["good"]
    assert [(problem.code, problem.severity) for problem in skills.diagnostics] == [(code, "error")]


@pytest.mark.parametrize("name", ["../up", "a/b", "..", "a\\b", "a\u202eb", "'a\\x1bb'", "a<b", "x" * 300])
def test_a_name_that_could_do_harm_is_not_used(tmp_path: Path, name: str) -> None:
    write_skill(tmp_path, "csv", frontmatter=f"name: {name}\ndescription: d")
    (skill,) = load(tmp_path)
    assert skill.name == "csv"
    assert "unsafe-name" in [problem.code for problem in skill.diagnostics]


def test_a_diagnostic_is_one_plain_line(tmp_path: Path) -> None:
    write_skill(tmp_path, "a\nb\x1b[31m", frontmatter="name: x\ndescription: d")
    (skill,) = load(tmp_path)
    assert all(str(problem).isprintable() for problem in skill.diagnostics)


def test_unusable_bytes_in_the_frontmatter_are_replaced(tmp_path: Path) -> None:
    write_skill(tmp_path, "csv", raw=b"---\nname: csv\ndescription: caf\xe9\n---\n")
    skills = load(tmp_path)
    assert skills[0].description == "caf\ufffd"
    assert [(problem.code, problem.line) for problem in skills.diagnostics] == [("bad-encoding", 3)]


def test_frontmatter_longer_than_the_first_read(tmp_path: Path) -> None:
    for size in (4070, 4080, 4090, 4096, 5000, 60_000):
        path = write_skill(
            tmp_path, f"s{size}", frontmatter=f"name: s{size}\ndescription: d\nlicense: {'x' * size}"
        )
        assert len(parse_skill_md(path).license or "") == size


def test_a_cut_between_the_parts_of_a_fence_is_seen(tmp_path: Path) -> None:
    for pad in range(4030, 4097):
        raw = f"---\nname: csv\ndescription: d\nlicense: {'x' * (pad - 60)}\n----\n---\nbody"
        path = write_skill(tmp_path, "csv", raw=raw)
        with pytest.raises(InvalidFrontmatterError, match="could not find"):
            parse_skill_md(path)


def test_missing_paths_are_told(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    write_skill(tmp_path, "csv")
    skills = load_all([tmp_path / "nowhere", tmp_path / "notes.txt", tmp_path / "csv"])
    assert [skill.name for skill in skills] == ["csv"]
    assert codes(skills) == ["not-found", "not-a-skill"]


def test_an_empty_folder_is_told_with_advice(tmp_path: Path) -> None:
    write_skill(tmp_path / ".claude/skills", "csv")
    (problem,) = load(tmp_path).diagnostics
    assert (problem.code, str(tmp_path / ".claude/skills") in problem.advice) == ("no-skills", True)


def test_the_first_of_two_with_one_name_counts(tmp_path: Path) -> None:
    write_skill(tmp_path / "a", "csv", description="first")
    write_skill(tmp_path / "b", "csv", description="second")
    skills = load_all([tmp_path / "a", tmp_path / "b"])
    assert [skill.description for skill in skills] == ["first"]
    assert codes(skills) == ["shadowed"]
    assert str(tmp_path / "a/csv") in skills.diagnostics[0].message


def test_links(tmp_path: Path) -> None:
    write_skill(tmp_path / "skills", "csv")
    (tmp_path / "skills/again").symlink_to(tmp_path / "skills/csv")
    (tmp_path / "skills/csv/cycle").symlink_to(tmp_path / "skills")
    (tmp_path / "skills/self").symlink_to("self")
    (tmp_path / "skills/gone").symlink_to("nowhere")
    skills = load(tmp_path / "skills")
    assert [(skill.name, skill.path) for skill in skills] == [("csv", tmp_path / "skills/csv")]
    assert sorted(problem.path.name for problem in skills.diagnostics) == ["gone", "self"]


def test_text_files_in_place_of_links(tmp_path: Path) -> None:
    write_skill(tmp_path / "shared", "csv")
    (tmp_path / "skills/pdf").mkdir(parents=True)
    (tmp_path / "skills/csv").write_text("../shared/csv")
    (tmp_path / "skills/pdf/SKILL.md").write_text("../../shared/csv/SKILL.md")
    skills = load(tmp_path / "skills")
    assert [(skill.name, skill.path) for skill in skills] == [("csv", tmp_path / "shared/csv")]


def test_text_files_that_lead_to_each_other(tmp_path: Path) -> None:
    for one, other in (("a", "b"), ("b", "a")):
        write_skill(tmp_path, one, raw=f"../{other}/SKILL.md")
    assert codes(load(tmp_path)) == ["no-frontmatter", "no-frontmatter"]


def test_what_is_no_skill_is_left_out(tmp_path: Path) -> None:
    write_skill(tmp_path, "outer")
    for folder in ("node_modules/a", ".git/b", ".hidden/c", "outer/templates/d", "outer/assets/e"):
        write_skill(tmp_path, "x", folder=folder)
    write_skill(tmp_path, "inner", folder="outer/inner")
    assert scan_directory(tmp_path) == [tmp_path / "outer/SKILL.md", tmp_path / "outer/inner/SKILL.md"]


def test_a_misspelt_file_is_told(tmp_path: Path) -> None:
    write_skill(tmp_path, "csv", entry="Skill.MD")
    assert codes(load(tmp_path)) == ["misspelt-entry"]


def test_a_pipe_or_folder_called_skill_md_does_not_hang(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    os.mkfifo(tmp_path / "a/SKILL.md")
    (tmp_path / "b/SKILL.md").mkdir(parents=True)
    assert codes(load(tmp_path)) == ["unreadable", "unreadable"]


def test_unreadable_folders_are_told(tmp_path: Path) -> None:
    write_skill(tmp_path / "skills", "closed")
    write_skill(tmp_path / "skills", "open")
    (tmp_path / "skills/closed").chmod(0)
    script = "import os, sys\nfrom conjure_jupyter.skills import load\n"
    script += "os.geteuid() or os.setuid(65534)\nfound = load('skills')\n"
    script += "print([s.name for s in found], [d.code for d in found.diagnostics])"
    shared = Path(tempfile.gettempdir())
    for folder in (tmp_path, *tmp_path.parents):
        if folder == shared:
            break
        folder.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(Path(__file__).parents[2]), "HOME": "/"},
    )
    (tmp_path / "skills/closed").chmod(0o755)
    assert done.stdout.strip() == "['open'] ['unreadable']", done.stderr


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = write_skill(tmp_path, "csv", description="aaaa")
    assert load(tmp_path)[0].description == "aaaa"
    for text in ("bbbb", "cccc", "dddd"):
        write_skill(tmp_path, "csv", description=text)
        os.utime(path / "SKILL.md", (1, 1))
        assert load(tmp_path)[0].description == text


def test_what_is_remembered_is_not_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_skill(tmp_path, "csv", frontmatter="name: csv\ndescription: d\nmetadata:\n  a: [b]")
    monkeypatch.setattr("conjure_jupyter.skills.parsing.is_settled", lambda mark: True)
    for _ in range(3):
        (skill,) = load(tmp_path)
        assert skill.metadata == {"a": ["b"]}
        skill.metadata["a"].append("c")
        skill.extra["x"] = "y"
        assert not load(tmp_path)[0].extra


def test_single_files_raise(tmp_path: Path) -> None:
    with pytest.raises(InvalidSkillStructureError):
        parse_skill_md(tmp_path)
    with pytest.raises(InvalidSkillStructureError):
        parse_skill_md(tmp_path / "SKILL.md")
    with pytest.raises(InvalidFrontmatterError) as caught:
        parse_skill_md(write_skill(tmp_path, "csv", raw="---\nname: csv\n---\n"))
    assert (caught.value.path, caught.value.line) == (tmp_path / "csv/SKILL.md", 2)


def test_load_body_of_a_skill_that_is_gone(tmp_path: Path) -> None:
    skill = parse_skill_md(write_skill(tmp_path, "csv"))
    (tmp_path / "csv/SKILL.md").unlink()
    with pytest.raises(InvalidSkillStructureError):
        load_body(skill)


def test_resources_stay_in_the_skill(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    path = write_skill(tmp_path, "csv", files={"references/a.md": "caf\xe9", "b.bin": b"\xff"})
    (path / "references/link.md").symlink_to("a.md")
    (path / "out").symlink_to(tmp_path / "secret")
    skill = parse_skill_md(path)
    assert read_resource(skill, "references/a.md") == read_resource(skill, "references/link.md") == "caf\xe9"
    assert read_resource(skill, "b.bin") == "\ufffd"
    for outside in ("../secret", "out", str(tmp_path / "secret"), "references/../../secret"):
        with pytest.raises(PermissionDeniedError):
            read_resource(skill, outside)
    with pytest.raises(PathNotFoundError):
        read_resource(skill, "nothing.md")


def test_resources_leave_out_what_tools_leave(tmp_path: Path) -> None:
    path = write_skill(
        tmp_path,
        "csv",
        files={"scripts/__pycache__/a.pyc": b"", "node_modules/b/c.js": "", ".DS_Store": b"", "d.txt": ""},
    )
    assert list(load_resources(path)) == [Path("d.txt")]


def test_strict_loads_only_what_the_public_validator_takes(tmp_path: Path) -> None:
    write_skill(tmp_path, "good")
    write_skill(tmp_path, "other", folder="bad")
    skills = load(tmp_path, strict=True)
    assert [skill.name for skill in skills] == ["good"]
    assert [(problem.code, problem.severity) for problem in skills.diagnostics] == [
        ("name-mismatch", "error")
    ]


def test_default_roots(tmp_path: Path) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    roots = default_roots(project, home)
    assert [(root.path, root.trusted, root.label) for root in roots] == [
        *((project / name / "skills", False, "project") for name in (".conjure", ".agents", ".claude")),
        *((home / name / "skills", True, "user") for name in (".conjure", ".agents", ".claude")),
    ]
    assert all(root.trusted for root in default_roots(home, home))


def test_a_loaded_skill_has_every_attribute(tmp_path: Path) -> None:
    skill = parse_skill_md(write_skill(tmp_path, "csv"))
    assert list(vars(skill)) == [field.name for field in dataclasses.fields(Skill)]
    assert dataclasses.replace(skill) == skill
    assert hash(skill) == hash(dataclasses.replace(skill, trusted=False))
