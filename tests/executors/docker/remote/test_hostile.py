"""Archives of an engine or container that means harm: nothing leaves the folder, and nothing is unbounded."""

from __future__ import annotations

import contextlib
import errno
import os
import tarfile
import tempfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conjure_jupyter.errors import ContainerError, ExecutorError
from conjure_jupyter.executors.docker.remote import fetching as fetching_module
from conjure_jupyter.executors.docker.remote import taking as taking_module
from conjure_jupyter.executors.docker.remote.agreement import Agreement
from conjure_jupyter.executors.docker.remote.entries import Entry, StoppedError, is_plain, leads_inside
from conjure_jupyter.executors.docker.remote.fetching import Fetching
from conjure_jupyter.executors.docker.remote.taking import Taking
from conjure_jupyter.executors.docker.remote.tree import Tree

from .names import names
from .tars import archive, pieces


class World:
    """A folder to take into, and a secret beside it."""

    def __init__(self, base: Path) -> None:
        self.root = base / "work"
        self.root.mkdir()
        self.secret = base / "secret"
        self.secret.write_text("secret")
        self.before = names(base)
        self.base = base
        self.taking = Taking(Tree(self.root), Agreement(["skills"]))

    def take(self, data: bytes, *, room: int = 10**9, wanted: dict[str, Entry] | None = None) -> Fetching:
        fetching = Fetching(self.taking, wanted, room)
        fetching.archive(lambda: pieces(data), top="", inner="0", expected=room)
        return fetching

    def untouched(self) -> None:
        assert self.secret.read_text() == "secret"
        assert names(self.base) == self.before
        for folder, folders, files in os.walk(self.root):
            for name in (*folders, *files):
                assert not name.startswith(".conjure-")
                real = os.path.realpath(Path(folder, name))
                assert real == str(self.root) or real.startswith(f"{self.root}/")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


LINK = {"type": tarfile.SYMTYPE}
DIR = {"type": tarfile.DIRTYPE}


@pytest.mark.parametrize(
    "name",
    [
        "0/../secret",
        "../secret",
        "/etc/x",
        "0//../../secret",
        "0/./x",
        "0/a/../../../secret",
        "1/x",
        "x",
        "0/a//b",
        "..",
    ],
)
def test_names_that_lead_elsewhere_are_left_out(world: World, name: str) -> None:
    world.take(archive((name, b"evil"), ("0/fine", b"fine")))
    assert names(world.root) == ["fine"]
    assert world.taking.left_out.total() == 1
    world.untouched()


@pytest.mark.parametrize(
    "target",
    [
        "/etc/passwd",
        "../secret",
        "..",
        "a/../../secret",
        "a/..",
        "",
        "./../secret",
        "x" * 5000,
        "a/b/../../..",
    ],
)
def test_links_that_lead_outside_are_left_out(world: World, target: str) -> None:
    world.take(archive(("0/link", None, {**LINK, "linkname": target}), ("0/fine", b"fine")))
    assert names(world.root) == ["fine"]
    assert world.taking.left_out["links that lead outside"] == 1


def test_links_that_are_safe_alone_are_safe_together(world: World) -> None:
    world.take(
        archive(
            ("0/a", None, DIR),
            ("0/a/b", None, DIR),
            ("0/a/b/up", None, {**LINK, "linkname": "../.."}),
            ("0/out", None, {**LINK, "linkname": "a/b/up/../secret"}),
            ("0/up", None, {**LINK, "linkname": "a/b/up/secret"}),
        )
    )
    assert not (world.root / "out").is_symlink()
    assert not (world.root / "up").exists()
    world.untouched()


def test_nothing_is_written_through_a_link(world: World) -> None:
    (world.base / "outside").mkdir()
    world.before = names(world.base)
    (world.root / "planted").symlink_to(world.base / "outside")
    (world.root / "file").symlink_to(world.secret)
    world.take(
        archive(
            ("0/planted/x", b"evil"),
            ("0/file", b"evil"),
            ("0/mine", None, {**LINK, "linkname": "d"}),
            ("0/d", None, DIR),
            ("0/mine/x", b"through my own link"),
        )
    )
    assert names(world.base / "outside") == []
    assert world.secret.read_text() == "secret"
    assert names(world.root / "d") == []
    assert (world.root / "file.container").read_bytes() == b"evil"


def test_devices_and_other_kinds_are_left_out_and_no_bit_survives(world: World) -> None:
    kinds = [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.GNUTYPE_SPARSE, b"Z"]
    members = [(f"0/odd{at}", None, {"type": kind}) for at, kind in enumerate(kinds)]
    world.take(archive(*members, ("0/suid", b"x", {"mode": 0o6755}), ("0/d", None, {**DIR, "mode": 0o1000})))
    assert names(world.root) == ["d", "suid"]
    assert (world.root / "suid").stat().st_mode & 0o7777 == 0o755
    assert (world.root / "d").stat().st_mode & 0o7777 == 0o700


def test_hard_links_reach_only_what_came_before(world: World) -> None:
    hard = {"type": tarfile.LNKTYPE}
    found = world.take(
        archive(
            ("0/a", b"bytes"),
            ("0/b", None, {**hard, "linkname": "0/a"}),
            ("0/c", None, {**hard, "linkname": "/etc/passwd"}),
            ("0/d", None, {**hard, "linkname": "0/../secret"}),
            ("0/e", None, {**hard, "linkname": "0/later"}),
            ("0/f", None, {**hard, "linkname": "0/f"}),
        )
    )
    assert names(world.root) == ["a", "b"]
    assert found.again == ["c", "d", "e", "f"]
    assert (world.root / "a").stat().st_nlink == 1


def test_what_belongs_to_another_mount_is_not_touched(world: World) -> None:
    world.take(archive(("0/skills", None, DIR), ("0/skills/evil", b"evil"), ("0/skills2", b"fine")))
    assert names(world.root) == ["skills2"]


def test_only_what_was_asked_for_is_taken(world: World) -> None:
    wanted = {"a": Entry("file", 1), "b": Entry("file", 1), "c": Entry("file", 1)}
    data = archive(
        ("0/a", b"a"),
        ("0/x", b"x"),
        ("0/b", None, DIR),
        ("0/c", None, {**LINK, "linkname": "a"}),
        ("0/a", b"z"),
    )
    world.take(data, wanted=wanted)
    assert names(world.root) == ["a"]
    assert (world.root / "a").read_bytes() == b"a"


def test_one_path_as_everything_in_turn(world: World) -> None:
    world.take(
        archive(
            ("0/p", b"file"),
            ("0/p", None, DIR),
            ("0/p/x", b"inside"),
            ("0/p", None, {**LINK, "linkname": "q"}),
            ("0/p/x", b"below a link"),
            ("0/p", b"file again"),
        )
    )
    world.untouched()
    assert (world.root / "p").read_bytes() == b"file"  # each path once


def test_names_that_differ_in_case_only_do_not_cover_each_other(world: World) -> None:
    world.take(archive(("0/a.txt", b"one"), ("0/A.txt", b"two")))
    assert {path.read_bytes() for path in world.root.iterdir()} == {b"one", b"two"}


def test_names_that_are_no_text(world: World) -> None:
    world.take(archive(("0/\udcff\n", b"x")))
    assert names(world.root) == [os.fsdecode(b"\xff\n")]


def test_depth_is_bounded(world: World) -> None:
    deep = "0/" + "/".join("d" * 60) + "/x"
    deeper = "0/" + "d/" * 5000 + "x"
    world.take(archive((deep, b"x"), (deeper, b"x"), ("0/" + "n" * 300, b"x"), ("0/fine", b"x")))
    assert names(world.root) == ["d", "fine"]
    assert world.taking.left_out.total() == 2


def test_there_is_room_for_so_many_bytes_only(world: World) -> None:
    found = world.take(archive(("0/a", b"a" * 600), ("0/b", b"b" * 600), ("0/c", b"c" * 300)), room=1000)
    assert names(world.root) == ["a", "c"]
    assert found.too_large == ["b"]


def test_an_archive_without_end_is_ended(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching_module, "_SLACK", 1 << 16)
    member = archive(("0/x", b"x" * 1000))[:-1024].rstrip(b"\0")
    member += bytes(-len(member) % 512)

    def forever() -> Iterator[bytes]:
        while True:
            yield member

    fetching = Fetching(world.taking, {}, 1000)
    with pytest.raises(ContainerError, match="larger than announced"):
        fetching.archive(forever, top="", inner="0", expected=10)


def test_entries_are_counted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching_module, "MOST_ENTRIES", 50)
    with pytest.raises(ContainerError, match="too many entries"):
        world.take(archive(*[(f"0/{at}", b"x") for at in range(60)]))
    assert len(names(world.root)) == 50


def test_headers_of_any_size_take_no_memory(world: World) -> None:
    info = tarfile.TarInfo("0/x")
    info.type = tarfile.XHDTYPE
    info.size = 1 << 33
    tracemalloc.start()
    with pytest.raises(ContainerError, match="excessive"):
        world.take(info.tobuf(tarfile.GNU_FORMAT) + bytes(1 << 20))
    assert tracemalloc.get_traced_memory()[1] < 16 << 20
    tracemalloc.stop()


@pytest.mark.parametrize("kept", [0, 1, 511, 512, 700, 1100, 1536, 2048])
def test_an_archive_that_is_cut_off_keeps_what_came_whole(world: World, kept: int) -> None:
    data = archive(("0/a", b"a" * 500), ("0/b", b"b" * 500))
    with pytest.raises(ContainerError, match="cut off"):
        world.take(data[:kept])
    assert {path.read_bytes() for path in world.root.iterdir()} <= {b"a" * 500, b"b" * 500}
    world.untouched()


def test_the_engines_own_failure_is_not_taken_for_this_machines(world: World) -> None:
    def broken() -> Iterator[bytes]:
        yield archive(("0/a", b"a" * 5000))[:1024]
        raise ConnectionResetError(errno.ECONNRESET, "gone")

    fetching = Fetching(world.taking, None, 10**6)
    with pytest.raises(ConnectionResetError):
        fetching.archive(broken, top="", inner="0", expected=10)
    world.untouched()
    assert names(world.root) == []


def test_a_full_disk_ends_it_and_says_where_the_rest_is(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(taking_module, "write_new", full)
    with pytest.raises(ExecutorError, match=r"the disk is full.*still in the container"):
        world.take(archive(("0/a", b"a")))


def test_it_ends_soon_when_nobody_waits(world: World) -> None:
    fetching = Fetching(world.taking, None, 10**6)
    fetching.stop.set()
    with pytest.raises(StoppedError):
        fetching.archive(lambda: pieces(archive(("0/a", b"a"))), top="", inner="0", expected=10)
    assert names(world.root) == []


@settings(deadline=None, max_examples=50)
@given(st.binary(max_size=3000), st.integers(0, 2000), st.binary(max_size=40))
def test_damaged_archives_write_nothing_outside(data: bytes, at: int, patch: bytes) -> None:
    base = archive(("0/a", b"a" * 600), ("0/l", None, {**LINK, "linkname": "a"}), ("0/é" * 60, b"x"))
    for damaged in (data, base[:at] + patch + base[at + len(patch) :], base + data):
        with tempfile.TemporaryDirectory() as folder:
            world = World(Path(folder))
            with contextlib.suppress(ContainerError):
                world.take(damaged)
            world.untouched()


_name = st.sampled_from(
    ["0/a", "0/b", "0/a/b", "0/a/b/c", "0/b/l", "0/../secret", "0/l", "0/l/x", "0/skills/x", "/x", "0"]
)
_target = st.sampled_from(
    ["a", "..", "../..", "../secret", "b/../../secret", "l", "/etc", "a/b/l/../..", "../b", "0/a", "."]
)
_kind = st.sampled_from(
    [tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE]
)


@settings(deadline=None)
@given(st.lists(st.tuples(_name, _kind, _target), max_size=12))
def test_no_order_of_entries_leads_outside(members: list[tuple[str, bytes, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        made = [
            (name, b"evil" if kind == tarfile.REGTYPE else None, {"type": kind, "linkname": target})
            for name, kind, target in members
        ]
        world.take(archive(*made))
        world.take(archive(*made[::-1]))
        world.untouched()


@given(st.text("ab./\0", max_size=12), st.text("ab./", max_size=12))
def test_a_plain_path_with_a_link_leads_inside_by_its_text(path: str, target: str) -> None:
    if is_plain(path) and leads_inside(path, target):
        led = os.path.normpath(Path("/root", path).parent / target)
        assert led == "/root" or led.startswith("/root/")
