"""Two folders are kept alike whatever happens to either, and no bytes are lost on the way."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conjure_jupyter.executors.docker.remote.cover import REQUEST, cover
from conjure_jupyter.executors.docker.remote.entries import Entry
from conjure_jupyter.executors.docker.remote.listing import parse
from conjure_jupyter.executors.docker.remote.pulling import pull
from conjure_jupyter.executors.docker.remote.pushing import push

from .names import names
from .pretend import pretend

ROOM = 10**9
OWNER = (os.getuid(), os.getgid())

_path = st.sampled_from(["a", "b", "d", "d/x", "d/y", "d/e", "d/e/z", "a/w"])
_act = st.sampled_from(["write", "write", "write", "remove", "folder", "link", "touch", "mode", "hard"])
_step = st.one_of(
    st.tuples(st.sampled_from(["here", "there"]), _act, _path),
    st.sampled_from([("push", "", ""), ("pull", "", ""), ("blind pull", "", "")]),
)


def act(root: Path, what: str, path: str, content: str) -> None:
    """Do something in a folder, if it can be done."""
    target = root / path
    if any(up.is_symlink() or (up.exists() and not up.is_dir()) for up in target.parents if up != root):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    is_file = target.is_file() and not target.is_symlink()
    if what == "touch" and is_file:
        os.utime(target)
    elif what == "mode" and is_file:
        target.chmod(0o755 if target.stat().st_mode & 0o777 == 0o644 else 0o644)
    elif what == "hard" and (root / "b").is_file() and not os.path.lexists(target):
        os.link(root / "b", target, follow_symlinks=False)
    elif what in _MAKE:
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)
        _MAKE[what](target, content)


_MAKE: dict[str, Callable[[Path, str], object]] = {
    "write": lambda target, content: target.write_text(content),
    "remove": lambda target, content: None,
    "folder": lambda target, content: target.mkdir(),
    "link": lambda target, content: target.symlink_to("b"),
}


def shown(root: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(folder, name)
            relative = str(path.relative_to(root))
            if path.is_symlink():
                found[relative] = ("link", str(path.readlink()))
            elif path.is_dir():
                found[relative] = "dir"
            else:
                found[relative] = ("file", path.read_text(), path.stat().st_mode & 0o777)
    return found


@settings(deadline=None, max_examples=60)
@given(st.lists(_step, max_size=14))
def test_both_sides_get_alike(steps: list[tuple[str, str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_alike(Path(folder), steps))


async def _alike(base: Path, steps: list[tuple[str, str, str]]) -> None:
    share, store, inside = pretend(base)
    here, there = base / "here", base / "there" / "0"
    await push(store, share, None, OWNER)
    for number, (who, what, path) in enumerate(steps):
        if who == "push":
            if share.unfinished:
                await pull(store, share, inside, limit=ROOM)
            await push(store, share, inside, OWNER)
        elif who == "pull":
            await pull(store, share, inside, limit=ROOM)
        elif who == "blind pull":
            await pull(store, share, None, limit=ROOM)
        else:
            kept = _contents(here if who == "there" else there)
            act(base / "here" if who == "here" else there, what, path, f"{who} {number}")
            assert _contents(here if who == "there" else there) == kept
    stuck = False
    for _ in range(3):
        before = _contents(here) | _contents(there)
        moved = await pull(store, share, inside, limit=ROOM)
        stuck = stuck or any("something else" in note for note in (*share.told, *moved.notes))
        await push(store, share, inside, OWNER)
        # A change wins over a removal, and two changes are both kept: what is gone was replaced on one side.
        assert before >= _contents(here) | _contents(there)
    if not stuck:
        assert shown(here) == shown(there)


def _contents(root: Path) -> set[str]:
    return {entry[1] for entry in shown(root).values() if isinstance(entry, tuple) and entry[0] == "file"}


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.sampled_from(["here", "there"]), _path), min_size=1, max_size=8))
def test_every_file_written_on_either_side_since_the_last_time_is_there_in_the_end(
    writes: list[tuple[str, str]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_kept(Path(folder), writes))


async def _kept(base: Path, writes: list[tuple[str, str]]) -> None:
    share, store, inside = pretend(base)
    here, there = base / "here", base / "there" / "0"
    for name in ("a", "b"):
        (here / name).write_text("old")
    await push(store, share, None, OWNER)
    await push(store, share, inside, OWNER)
    for number, (who, path) in enumerate(writes):
        act(here if who == "here" else there, "write", path, f"{number}")
    wanted = (_contents(here) | _contents(there)) - {"old"}
    for _ in range(3):
        await push(store, share, inside, OWNER)
        await pull(store, share, inside, limit=ROOM)
        assert wanted <= _contents(here) | _contents(there)


async def test_one_change_among_many_is_one_request(tmp_path: Path) -> None:
    share, store, inside = pretend(tmp_path)
    for at in range(1000):
        (tmp_path / "here" / f"{at}").write_text("x")
    await push(store, share, None, OWNER)
    await push(store, share, inside, OWNER)
    store.requests = 0
    assert not (await push(store, share, inside, OWNER)).paths
    assert not (await pull(store, share, inside, limit=ROOM)).paths
    assert store.requests == 0
    (tmp_path / "there/0/500").write_text("new")
    moved = await pull(store, share, inside, limit=ROOM)
    assert moved.paths == (str(tmp_path / "there/0/500"),)
    assert store.requests == 1


async def test_a_push_that_failed_is_made_again_and_not_taken_for_a_change(tmp_path: Path) -> None:
    share, store, inside = pretend(tmp_path)
    (tmp_path / "here/a").write_text("whole")
    put = store.put

    async def torn(sending: object, stop: object) -> None:
        (tmp_path / "there/0/a").write_text("wh")
        raise ConnectionError

    store.put = torn  # type: ignore[assignment, method-assign]  # the engine breaks off
    with pytest.raises(ConnectionError):
        await push(store, share, None, OWNER)
    await pull(store, share, inside, limit=ROOM)
    assert names(tmp_path / "here") == ["a"]
    store.put = put  # type: ignore[method-assign]
    await push(store, share, inside, OWNER)
    assert (tmp_path / "there/0/a").read_text() == "whole"
    assert (tmp_path / "here/a").read_text() == "whole"


async def test_a_folder_that_is_gone_here_is_not_emptied_there(tmp_path: Path) -> None:
    share, store, inside = pretend(tmp_path)
    (tmp_path / "here/a").write_text("a")
    await push(store, share, None, OWNER)
    shutil.rmtree(tmp_path / "here")
    await push(store, share, inside, OWNER)
    assert (tmp_path / "there/0/a").read_text() == "a"


def test_cover_takes_a_folder_when_much_of_it_changed() -> None:
    entries = {"d": Entry("dir"), **{f"d/{at}": Entry("file", 1000) for at in range(100)}}
    entries |= {"big": Entry("file", 1 << 30), "other": Entry("file", 1 << 30)}
    assert cover(entries, []) == []
    assert cover(entries, ["d/5"]) == ["d/5"]
    assert cover(entries, [f"d/{at}" for at in range(50)]) == ["d"]
    assert cover(entries, ["d/1", "big"]) == ["big", "d/1"]


@given(
    st.dictionaries(
        st.sampled_from(["a", "b", "d/a", "d/b", "d/e/a", "d/e/b", "f/a"]), st.integers(0, 3 * REQUEST)
    )
)
def test_cover_covers(sizes: dict[str, int]) -> None:
    entries = {path: Entry("file", size) for path, size in sizes.items()}
    wanted = [path for path in entries if "a" in path]
    tops = cover(entries, wanted)
    for path in wanted:
        assert sum(not top or path == top or path.startswith(top + "/") for top in tops) == 1


def test_what_is_no_listing_is_none() -> None:
    for output in (b"", b"1.5", b"1.5\0", b"bash: find: command not found\n", b"1.5\0end\x001\0"):
        assert parse(output, 10) is None


def test_a_listing_that_was_cut_says_so() -> None:
    whole = b"9.0\0d 755 0 1 1.0 1.0 \0\0f 644 3 2 1.5 1.25 a\0\0f 644 3 2 1.5 8.999 b\0\0end\x000\0"
    found = parse(whole, 10)
    assert found is not None
    assert not found.unknown
    assert found.fresh == {"b"}
    assert found.entries["a"] == Entry("file", 3, 1_500_000_000, 0o644, mark=(2, 1_250_000_000))
    cut = parse(whole[: whole.index(b"end")], 10)
    assert cut is not None
    assert cut.unknown == {""}
