"""What of this machine a container sees, and what each side calls it."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

from conjure_jupyter.errors import SettingsError
from conjure_jupyter.executors import ExecutionContext
from conjure_jupyter.executors.docker.mounts import Mount, Places, places
from conjure_jupyter.executors.docker.options import Volume


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project" / ".conjure" / "sessions" / "one" / "work" / "skills").mkdir(parents=True)
    return tmp_path / "project"


@pytest.fixture
def work(project: Path) -> Path:
    return project / ".conjure" / "sessions" / "one" / "work"


def session(project: Path, work: Path, cwd: Path | None = None, **more: tuple[Path, ...]) -> ExecutionContext:
    """The context that a session makes."""
    cwd = cwd or work
    return ExecutionContext(
        working_directory=cwd,
        skills_root=work / "skills",
        allowed_paths=(work, project, *more.get("allowed", ())),
        writable_paths=(work, *more.get("writable", ())),
        read_only_paths=(work / "skills",) if cwd == work else (project / ".conjure",),
    )


def table(found: Places) -> dict[str, tuple[str, str, bool]]:
    return {str(m.target): (str(m.source), m.kind, m.writable) for m in found.mounts}


def test_a_session(project: Path, work: Path, tmp_path: Path) -> None:
    found = places(
        session(project, work), notebook=project, artifacts=tmp_path / "shelf", hidden=(project / ".conjure",)
    )
    assert table(found) == {
        "/workspace": (str(work), "bind", True),
        "/workspace/skills": (str(work / "skills"), "bind", False),
        "/mnt/skills": (str(work / "skills"), "bind", False),
        "/artifacts": (str(tmp_path / "shelf"), "bind", False),
        "/notebook": (str(project), "bind", False),
        "/notebook/.conjure": ("None", "tmpfs", False),
    }
    context = found.context
    assert context.working_directory == Path("/workspace")
    assert context.skills_root == Path("/workspace/skills")
    assert context.artifacts_root == Path("/artifacts")
    assert set(context.allowed_paths) >= {Path("/notebook"), Path("/artifacts"), Path("/mnt/skills")}
    assert context.writable_paths == (Path("/workspace"),)
    assert context.read_only_paths == (Path("/workspace/skills"),)


def test_the_notebooks_folder_as_the_working_directory(project: Path, work: Path) -> None:
    found = places(session(project, work, project), notebook=project, hidden=(project / ".conjure",))
    inside = "/workspace/.conjure/sessions/one/work"
    assert table(found) == {
        "/workspace": (str(project), "bind", True),
        "/workspace/.conjure": ("None", "tmpfs", False),
        inside: (str(work), "bind", True),
        f"{inside}/skills": (str(work / "skills"), "bind", False),
        "/mnt/skills": (str(work / "skills"), "bind", False),
    }
    assert found.context.skills_root == Path(inside) / "skills"
    assert found.notebook is None


@pytest.mark.parametrize("above", ["home", "parent", "root"])
def test_the_home_folder_is_never_shown(
    above: str, project: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = project / "home" if above == "parent" else project
    monkeypatch.setattr(Path, "home", classmethod(lambda cls: cls(home)))
    notebook = Path("/") if above == "root" else project
    context = session(project, work).with_(allowed_paths=(work,))
    found = places(context, notebook=notebook)
    assert "/notebook" not in table(found)


def test_other_folders_are_where_they_are(project: Path, work: Path, tmp_path: Path) -> None:
    data, out = tmp_path / "data", tmp_path / "out"
    found = places(session(project, work, allowed=(data,), writable=(out,)), notebook=project)
    assert table(found)[str(data)] == (str(data), "bind", False)
    assert table(found)[str(out)] == (str(out), "bind", True)
    assert data in found.context.allowed_paths
    assert out in found.context.writable_paths


def test_a_readable_folder_inside_the_workspace_stays_writable(project: Path, work: Path) -> None:
    found = places(session(project, work, allowed=(work / "outputs",)), notebook=project)
    assert "/workspace/outputs" not in table(found)


def test_what_is_read_only_inside_the_workspace(project: Path, work: Path) -> None:
    context = session(project, work).with_(read_only_paths=(work / "locked",))
    assert table(places(context))["/workspace/locked"] == (str(work / "locked"), "bind", False)


@pytest.mark.parametrize("folder", ["/etc", "/usr/share", "/proc/self", "/dev", "/run/secrets"])
def test_system_folders_are_refused(folder: str, project: Path, work: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be mounted"):
        places(session(project, work, allowed=(Path(folder),)))


def test_volumes(project: Path, work: Path) -> None:
    data = Volume(source="/srv/data", target=PurePosixPath("/data"))
    cache = Volume(source="a-volume", target=PurePosixPath("/cache"), writable=True)
    found = places(session(project, work), volumes=(data, cache))
    assert table(found)["/data"] == ("/srv/data", "bind", False)
    assert table(found)["/cache"] == ("a-volume", "volume", True)
    assert Path("/cache") in found.context.writable_paths
    assert Path("/data") not in found.context.writable_paths


@pytest.mark.parametrize("target", ["/workspace", "/mnt/skills", "/etc/passwd", "/proc", "/notebook"])
def test_volumes_that_would_cover_something(target: str, project: Path, work: Path) -> None:
    volume = Volume(source="/srv/data", target=PurePosixPath(target))
    with pytest.raises(SettingsError, match="docker_volumes"):
        places(session(project, work), notebook=project, volumes=(volume,))


def test_paths_of_one_side_on_the_other(project: Path, work: Path) -> None:
    found = places(session(project, work), notebook=project, hidden=(project / ".conjure",))
    assert found.on_host("/workspace/outputs/a.txt") == work / "outputs" / "a.txt"
    assert found.on_host("outputs/a.txt") == work / "outputs" / "a.txt"
    assert found.on_host("/workspace/skills/x") == work / "skills" / "x"
    assert found.on_host("/mnt/skills/x") == work / "skills" / "x"
    assert found.on_host("/notebook/data.csv") == project / "data.csv"
    assert found.on_host("/workspace/../notebook/data.csv") == project / "data.csv"
    assert found.on_host("/notebook/.conjure/sessions") is None
    assert found.on_host("/etc/passwd") is None
    assert found.on_host("/workspace-old") is None
    assert found.in_container(project) == Path("/notebook")
    assert found.in_container(work / "a") == Path("/workspace/a")
    assert found.in_container(Path("/etc/passwd")) is None


def test_what_lies_below_comes_after_what_lies_above(project: Path, work: Path) -> None:
    found = places(session(project, work, project), hidden=(project / ".conjure",))
    depths = [len(mount.target.parts) for mount in found.mounts]
    assert depths == sorted(depths)
    assert isinstance(found.mounts[0], Mount)
