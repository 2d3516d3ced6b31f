"""What the rules give for which path, without any sandbox; and the profile for macOS made of them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from conjure_jupyter.executors import ExecutionContext
from conjure_jupyter.executors.sandbox import landlock, seatbelt
from conjure_jupyter.executors.sandbox.plan import Access, Plan, make_plan, signature
from conjure_jupyter.executors.sandbox.scratch import Scratch
from conjure_jupyter.executors.sandbox.sensitive import key_like

from .jail import furnish


@pytest.fixture
def home() -> Path:
    return Path(os.environ["HOME"])


@pytest.fixture
def context(home: Path) -> ExecutionContext:
    project, work = furnish(home)
    return ExecutionContext(working_directory=work, allowed_paths=(project,))


def given(plan: Plan, path: Path | str) -> Access:
    return plan.access(Path(os.path.realpath(path)))


class TestRules:
    def test_home(self, context: ExecutionContext, home: Path) -> None:
        plan = make_plan(context)
        for name in (".ssh/id_rsa", ".anything", "snap/x", "server.pem", "made-later"):
            assert given(plan, home / name) is Access.PRIVATE, name
        for name in ("notes.txt", "projects/study/data.csv"):
            assert given(plan, home / name) is Access.READ, name

    def test_session(self, context: ExecutionContext, home: Path) -> None:
        plan = make_plan(context)
        sessions = home / "projects/study/.conjure/sessions"
        assert given(plan, sessions / "one/work/outputs/f") is Access.WRITE
        for name in ("one/timeline.jsonl", "one/blobs/aa", "two/work/f", "three"):
            assert given(plan, sessions / name) is Access.HIDDEN, name

    def test_sessions_kept_elsewhere(self, tmp_path: Path) -> None:
        for name in ("one", "two"):
            (tmp_path / "kept" / name / "work").mkdir(parents=True)
            (tmp_path / "kept" / name / "timeline.jsonl").write_text("")
        plan = make_plan(ExecutionContext(working_directory=tmp_path / "kept" / "one" / "work"))
        assert given(plan, tmp_path / "kept" / "one" / "timeline.jsonl") is Access.HIDDEN
        assert given(plan, tmp_path / "kept" / "two" / "work") is Access.HIDDEN
        assert given(plan, tmp_path / "kept" / "one" / "work") is Access.WRITE

    def test_the_kernel_s_python(self, context: ExecutionContext) -> None:
        plan = make_plan(context)
        for path in (sys.executable, sys.prefix, sys.base_prefix, os.__file__, pytest.__file__):
            assert given(plan, path) is Access.READ, path

    def test_an_environment_in_the_working_directory(
        self, context: ExecutionContext, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        environment = context.working_directory / ".venv"
        environment.mkdir()
        monkeypatch.setattr(sys, "prefix", str(environment))
        plan = make_plan(context)
        assert given(plan, environment / "lib" / "x.pth") is Access.READ
        assert given(plan, context.working_directory) is Access.WRITE

    def test_python_behind_links_in_a_hidden_folder(
        self, context: ExecutionContext, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real = home / ".local" / "python" / "cpython-3.11.7"
        (real / "bin").mkdir(parents=True)
        (real / "bin" / "python").write_text("")
        (home / ".local" / "python" / "cpython-3.11").symlink_to(real)
        monkeypatch.setattr(sys, "base_prefix", str(home / ".local" / "python" / "cpython-3.11"))
        plan = make_plan(context)
        assert given(plan, real / "bin" / "python") is Access.READ
        assert plan.links == {home / ".local" / "python" / "cpython-3.11": str(real)}
        assert given(plan, home / ".local" / "share") is Access.PRIVATE

    def test_explicit_folders_win(self, context: ExecutionContext, home: Path) -> None:
        (home / ".config" / "tool").mkdir()
        plan = make_plan(context.with_(allowed_paths=(home, home / ".config" / "tool")))
        assert given(plan, home / ".config" / "tool" / "x") is Access.READ
        assert given(plan, home / ".netrc") in (Access.HIDDEN, Access.PRIVATE)

    def test_read_only_beats_writable(self, context: ExecutionContext) -> None:
        skills = context.working_directory / "skills"
        skills.mkdir()
        plan = make_plan(context.with_(read_only_paths=(skills,), writable_paths=(skills / "x",)))
        assert given(plan, skills / "x") is Access.READ

    def test_a_working_directory_that_holds_the_home_folder(self, home: Path) -> None:
        plan = make_plan(ExecutionContext(working_directory=home))
        assert "holds the home folder" in plan.gaps[0]

    def test_other_places(self, context: ExecutionContext) -> None:
        plan = make_plan(context)
        for path in ("/run/docker.sock", "/etc/shadow", "/tmp/x"):
            if Path(path).parent.exists():
                assert given(plan, path) in (Access.HIDDEN, Access.PRIVATE), path
        assert given(plan, "/usr/bin/env") is Access.READ

    def test_it_is_outdated_by_what_is_made_later(self, context: ExecutionContext, home: Path) -> None:
        plan = make_plan(context)
        before = signature(plan, context)
        (home / ".hidden").write_text("")
        (context.working_directory / "f.key").write_text("")
        assert signature(plan, context) == before
        for path in (home / "new.txt", home / "projects/study/new.pem", context.working_directory / ".git"):
            before = signature(plan, context)
            path.write_text("")
            assert signature(plan, context) != before, path


@pytest.mark.parametrize(
    ("name", "hidden"),
    [
        (".env", True),
        (".env.local", True),
        (".env.example", False),
        ("id_ed25519", True),
        ("id_ed25519.pub", False),
        ("cert.PEM", True),
        ("keys.py", False),
        ("monkey", False),
        ("credentials.json", True),
        ("environment.yml", False),
    ],
)
def test_key_like(tmp_path: Path, name: str, hidden: bool) -> None:
    (tmp_path / name).write_text("")
    assert [path.name for path in key_like(tmp_path)] == [name] * hidden


class TestLandlock:
    def test_neighbours_are_allowed_one_by_one(self, context: ExecutionContext, home: Path) -> None:
        scratch = Scratch()
        allowed = landlock.rules(make_plan(context), scratch)
        scratch.close()
        read = {Path(path) for path in allowed["read"]}
        project = home / "projects" / "study"
        assert project / "data.csv" in read
        assert str(project) in allowed["list"]
        for path in (Path("/"), home, project, project / ".env", home / ".ssh", Path("/dev"), Path("/run")):
            assert path not in read
        assert not any(path.is_relative_to(home / ".ssh") for path in read)
        assert str(context.working_directory) in allowed["write"]

    def test_what_cannot_be_left_out_is_said(self, home: Path) -> None:
        project, _ = furnish(home)
        plan = make_plan(ExecutionContext(working_directory=project))
        said = " ".join(landlock.gaps(plan))
        assert ".env" in said
        assert ".conjure" in said


class TestSeatbelt:
    def test_profile(self, context: ExecutionContext, home: Path) -> None:
        scratch = Scratch()
        text = seatbelt.profile(make_plan(context.with_(network_access="none")), scratch)
        scratch.close()
        lines = text.splitlines()
        assert lines[:3] == ["(version 1)", "(allow default)", "(deny file-write*)"]
        work = context.working_directory
        order = [
            f'(deny file-read* file-write* (subpath "{home}"))',
            f'(allow file-read* (subpath "{home}/projects"))(deny file-write* (subpath "{home}/projects"))',
            f'(deny file-read* file-write* (subpath "{home}/projects/study/.conjure"))',
            f'(allow file-read* file-write* (subpath "{work}"))',
            f'(deny file-write* (subpath "{work}/.git"))',
            "(deny network*)",
        ]
        places = [lines.index(line) for line in order]
        assert places == sorted(places)
        assert text.count("(") == text.count(")")
        assert "(deny network*)" not in seatbelt.profile(make_plan(context), scratch)

    def test_names_cannot_end_a_string(self, tmp_path: Path) -> None:
        folder = tmp_path / 'a") (allow default) (literal "\\'
        folder.mkdir()
        scratch = Scratch()
        text = seatbelt.profile(make_plan(ExecutionContext(working_directory=folder)), scratch)
        scratch.close()
        assert 'a\\") (allow default) (literal \\"\\\\"' in text
        assert '0/a")' not in text

    def test_shell(self) -> None:
        script = seatbelt.shell(Path("/tmp/it's.sb"), "/bin/bash")
        assert script.splitlines() == [
            "#!/bin/sh",
            "exec /usr/bin/sandbox-exec -f '/tmp/it'\"'\"'s.sb' /bin/bash \"$@\"",
        ]
