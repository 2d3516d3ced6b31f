"""Who is told that a limit of the container was the cause."""

from __future__ import annotations

from pathlib import Path

import pytest

from conjure_jupyter.executors.docker.resident import limits as limits_module
from conjure_jupyter.executors.docker.resident.limits import Limits, out_of_disk
from conjure_jupyter.executors.docker.resident.surroundings import Surroundings, which

MEMORY = "A process was ended because the container ran out of memory (2.0 GB, memory_limit)"
PROCESSES = "No more processes could be started (256, docker_pids)"


class Cgroup:
    """The files of a container's cgroup."""

    def __init__(self, root: Path, version: int) -> None:
        self.limits = Limits(str(root))
        self._root = root
        self._version = version
        for folder in ("memory", "pids"):
            (root / folder).mkdir()
        if version == 1:
            (root / "memory/memory.limit_in_bytes").write_text(f"{2 << 30}\n")
            (root / "pids/pids.max").write_text("256\n")
        else:
            (root / "memory.max").write_text(f"{2 << 30}\n")
            (root / "pids.max").write_text("256\n")
        self.count()

    def count(self, memory: int = 0, processes: int = 0) -> None:
        """The kernel counts."""
        if self._version == 1:
            text = f"oom_kill_disable 0\nunder_oom 0\noom_kill {memory}\n"
            (self._root / "memory/memory.oom_control").write_text(text)
            (self._root / "pids/pids.events").write_text(f"max {processes}\n")
        else:
            (self._root / "memory.events").write_text(f"low 0\nmax 9\noom 1\noom_kill {memory}\n")
            (self._root / "pids.events").write_text(f"max {processes}\n")


@pytest.fixture(params=[1, 2])
def cgroup(request: pytest.FixtureRequest, tmp_path: Path) -> Cgroup:
    return Cgroup(tmp_path, request.param)


def test_nothing_happened(cgroup: Cgroup) -> None:
    cgroup.count(memory=3, processes=5)
    watch = cgroup.limits.begin()
    assert cgroup.limits.end(watch, 1) == []


def test_one_command_alone_is_told_however_it_ended(cgroup: Cgroup) -> None:
    for number, code in enumerate((0, 1, 137, None), 1):
        watch = cgroup.limits.begin()
        cgroup.count(memory=number, processes=number)
        assert cgroup.limits.end(watch, code) == [MEMORY, PROCESSES]


def test_of_two_the_one_that_was_killed_is_told(cgroup: Cgroup) -> None:
    killed, other = cgroup.limits.begin(), cgroup.limits.begin()
    cgroup.count(memory=1)
    assert cgroup.limits.end(killed, 137) == [MEMORY]
    assert cgroup.limits.end(other, 1) == []


def test_of_two_the_one_that_did_well_is_not_told(cgroup: Cgroup) -> None:
    well, failed = cgroup.limits.begin(), cgroup.limits.begin()
    cgroup.count(memory=1, processes=1)
    assert cgroup.limits.end(well, 0) == []
    assert cgroup.limits.end(failed, 2) == [MEMORY, PROCESSES]


def test_when_all_did_well_the_last_is_told(cgroup: Cgroup) -> None:
    first, last = cgroup.limits.begin(), cgroup.limits.begin()
    cgroup.count(processes=1)
    assert cgroup.limits.end(first, 0) == []
    assert cgroup.limits.end(last, 0) == [PROCESSES]


def test_a_machine_without_such_counts(tmp_path: Path) -> None:
    limits = Limits(str(tmp_path))
    assert limits.end(limits.begin(), 137) == []
    (tmp_path / "memory.max").write_text("max\n")
    assert limits.out_of_memory().endswith("(memory_limit)")


def test_a_full_disk_is_named_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = b"cp: error writing 'x': No space left on device\n"
    folders = [str(tmp_path), str(tmp_path), "/nowhere"]
    assert out_of_disk(said, folders) == []
    monkeypatch.setattr(limits_module, "_NOTHING", 1 << 62)
    found = out_of_disk(said, folders)
    assert len(found) == 1
    assert found[0].startswith(f"The disk that holds {tmp_path} is full (")
    assert out_of_disk(b"fine\n", folders) == []


class TestSurroundings:
    def test_what_the_image_says_stays(self, tmp_path: Path) -> None:
        given = {
            "HOME": str(tmp_path),
            "LC_ALL": "de_DE.UTF-8",
            "TERM": "xterm",
            "PATH": str(tmp_path),
            "A": "b",
        }
        assert Surroundings(given, str(tmp_path)).of({}) == given
        assert Surroundings(given, str(tmp_path)).of({"A": "c"})["A"] == "c"

    def test_what_is_missing(self, tmp_path: Path) -> None:
        found = Surroundings({"PATH": str(tmp_path)}, str(tmp_path)).of({})
        assert (found["LANG"], found["TERM"]) == ("C.UTF-8", "dumb")

    def test_python_where_there_is_only_python3(self, tmp_path: Path) -> None:
        programs, folder = tmp_path / "it's", tmp_path / "own"
        for made in (programs, folder):
            made.mkdir()
        (programs / "python3").write_text("#!/bin/sh\necho ran $1\n")
        (programs / "python3").chmod(0o755)
        found = Surroundings({"PATH": str(programs)}, str(folder)).of({})
        python = which("python", found["PATH"])
        assert python == str(folder / "bin/python")
        assert "exec '" in Path(python).read_text()

    def test_python_is_left_alone(self, tmp_path: Path) -> None:
        for name in ("python", "python3"):
            (tmp_path / name).write_text("")
            (tmp_path / name).chmod(0o755)
        assert Surroundings({"PATH": str(tmp_path)}, str(tmp_path)).of({})["PATH"] == str(tmp_path)
