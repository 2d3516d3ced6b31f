"""Undo among links, FIFOs, odd names and full disks; and any turns at all: what was there comes back."""

from __future__ import annotations

import errno
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conjure_jupyter.artifacts import copying
from conjure_jupyter.conversation.undo import ledger
from conjure_jupyter.errors import SessionError

from .past import Past, Tree, names, tree
from .test_trees import deep


@pytest.fixture
def past(tmp_path: Path) -> Iterator[Past]:
    made = Past(tmp_path / "session")
    yield made
    made.timeline.close()
    subprocess.run(["rm", "-rf", str(tmp_path)], check=True)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "a.txt").write_text("theirs")
    return folder


def kept(past: Past) -> set[str]:
    return {entry.path for entry in past.plan().conflicts}


def test_a_link_in_a_file_s_place_stays(past: Past, outside: Path) -> None:
    past.put("a.txt", "0")
    with past.turn():
        (past.work / "a.txt").unlink()
        (past.work / "a.txt").symlink_to(outside / "a.txt")
    assert kept(past) == {"a.txt"}
    done = past.undo()
    assert [entry.reason for entry in done.conflicts] == ["a.txt is a link now"]
    assert (past.work / "a.txt").is_symlink()
    assert (outside / "a.txt").read_text() == "theirs"


def test_a_link_in_a_folder_s_place_is_not_followed(past: Past, outside: Path) -> None:
    past.put("sub/a.txt", "0")
    with past.turn():
        (past.work / "sub").rename(past.work / "away")
        (past.work / "sub").symlink_to(outside)
    past.undo()
    assert (outside / "a.txt").read_text() == "theirs"
    assert past.text("away/a.txt") is None


def test_a_link_put_there_after_the_preview_is_not_followed(past: Past, outside: Path) -> None:
    past.put("sub/a.txt", "0")
    past.put("sub/b.txt", "0")
    with past.turn():
        past.put("sub/a.txt", "1")
        (past.work / "sub" / "b.txt").unlink()
    plan = past.plan()
    (past.work / "sub").rename(past.work / "moved")
    (past.work / "sub").symlink_to(outside)
    done = past.undo(plan=plan)
    assert {entry.path for entry in done.conflicts} == {"sub/a.txt", "sub/b.txt"}
    assert names(outside) == ["a.txt"]
    assert (outside / "a.txt").read_text() == "theirs"
    assert past.text("moved/a.txt") == "1"


def test_a_pipe_in_a_file_s_place_stays_and_nobody_waits(past: Past) -> None:
    past.put("a.txt", "0")
    with past.turn():
        (past.work / "a.txt").unlink()
        os.mkfifo(past.work / "a.txt")
    done = past.undo()
    assert [entry.reason for entry in done.conflicts] == ["a.txt is something else now"]


def test_a_hard_link_is_not_written_through(past: Past, outside: Path) -> None:
    past.put("a.txt", "0")
    with past.turn():
        (past.work / "a.txt").unlink()
        os.link(outside / "a.txt", past.work / "a.txt")
        os.link(outside / "a.txt", past.work / "b.txt")
    past.undo()
    assert past.text("a.txt") == "0"
    assert past.text("b.txt") is None
    assert (outside / "a.txt").read_text() == "theirs"


def test_a_file_became_a_folder_and_a_folder_a_file(past: Past) -> None:
    past.put("a", "0")
    past.put("d/x/y.txt", "0")
    past.put("e", "0")
    before = tree(past.work)
    with past.turn():
        for name in ("a", "e"):
            (past.work / name).unlink()
        past.put("a/b/c.txt", "1")
        (past.work / "e" / "empty" / "deeper").mkdir(parents=True)
        subprocess.run(["rm", "-r", str(past.work / "d")], check=True)
        past.put("d", "1")
    past.undo()
    assert tree(past.work) == before


def test_a_folder_with_the_user_s_file_in_it_stays(past: Past) -> None:
    past.put("a", "0")
    with past.turn():
        (past.work / "a").unlink()
        past.put("a/made.txt", "1")
    past.put("a/mine.txt", "mine")
    done = past.undo()
    assert done.removed == ["a/made.txt"]
    assert [entry.path for entry in done.conflicts] == ["a"]
    assert past.text("a/mine.txt") == "mine"


def test_a_tree_too_deep_to_look_into_is_left(past: Past) -> None:
    past.put("outputs/a.txt", "0")
    with past.turn():
        past.put("outputs/a.txt", "1")
        deep(past.work / "outputs", 3000)
    past.undo()
    assert past.text("outputs/a.txt") == "0"
    assert (past.work / "outputs" / "deep" / "deep").is_dir()


def test_names_that_are_no_text_come_back(past: Past) -> None:
    odd = os.fsdecode(b"outputs/caf\xe9\n.txt")
    past.put(odd, "0")
    with past.turn():
        (past.work / odd).unlink()
        past.put(os.fsdecode(b"outputs/\xff"), "1")
    plan = past.plan()
    plan.describe().encode()
    past.undo(plan=plan)
    assert [os.fsencode(name) for name in names(past.work / "outputs")] == [b"caf\xe9\n.txt"]
    again = past.again()
    assert again.timeline.problems == []
    again.timeline.close()


def test_a_full_disk_loses_nothing_and_the_rest_is_done_later(
    past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        past.put(f"{number}.txt", f"before {number}")
    before = tree(past.work)
    with past.turn():
        for number in range(6):
            past.put(f"{number}.txt", f"after {number}")
    after = tree(past.work)
    written = []

    def full(source: int, target: int, size: int) -> int:
        written.append(target)
        if len(written) > 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        return whole(source, target, size)

    whole = copying.copy
    monkeypatch.setattr(copying, "copy", full)
    monkeypatch.setattr(copying, "clone", lambda source, target: False)
    with pytest.raises(SessionError, match=r"No space left on device\. Nothing is lost"):
        past.undo()
    monkeypatch.undo()
    now = tree(past.work)
    assert sorted(path for path in now if now[path] == before[path]) == ["0.txt", "1.txt", "2.txt"]
    assert all(now[path] == after[path] for path in ("3.txt", "4.txt", "5.txt"))
    assert not any(block.kind == "undo" for block in past.timeline.blocks)
    past.undo()
    assert tree(past.work) == before
    assert [block.data["before_turn"] for block in past.timeline.blocks if block.kind == "undo"] == [1]


def test_an_undo_cut_short_is_not_taken_for_the_user_s_work(
    past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    past.put("a.txt", "0")
    past.put("b.txt", "0")
    with past.turn():
        past.put("a.txt", "1")
        past.put("b.txt", "1")
    with past.turn():
        past.put("a.txt", "2")
        past.put("b.txt", "2")

    def cut(*_: object) -> None:
        raise KeyboardInterrupt

    whole = ledger.note
    monkeypatch.setattr(ledger, "note", lambda t, s, w, **more: whole(t, s, w, **more) if more else cut())
    with pytest.raises(KeyboardInterrupt):
        past.undo(2)
    monkeypatch.undo()
    assert past.text("a.txt") == "1"
    with past.turn():
        past.put("b.txt", "3")
    plan = past.plan(1)
    assert plan.conflicts == ()
    past.undo(plan=plan)
    assert (past.text("a.txt"), past.text("b.txt")) == ("0", "0")


# Any turns at all ---------------------------------------------------------------------------------

SHARED = ["a", "b", "outputs/r", "c\N{SNOWMAN}"]
OF_TURNS = [*SHARED, "d", "d/x", "d/y/z", "e/f/g", "e/f"]
MODES = [0o644, 0o600, 0o755]

Change = tuple[str, str, int, int]


def changes(paths: list[str]) -> st.SearchStrategy[list[Change]]:
    kind = st.sampled_from(["write", "write", "delete", "chmod", "rename"])
    return st.lists(
        st.tuples(kind, st.sampled_from(paths), st.integers(0, 3), st.sampled_from(MODES)), max_size=5
    )


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("turn"), changes(OF_TURNS)),
        st.tuples(st.just("turn"), changes(OF_TURNS)),
        st.tuples(st.just("user"), changes(SHARED)),
        st.tuples(st.just("undo"), st.integers(0, 3)),
        st.tuples(st.just("restart"), st.none()),
    ),
    min_size=1,
    max_size=8,
)


def apply(root: Path, todo: list[Change], paths: list[str]) -> None:
    for kind, path, number, mode in todo:
        place = root / path
        if kind == "delete" or (kind == "write" and place.is_dir()):
            subprocess.run(["rm", "-rf", str(place)], check=True)
        if kind == "write":
            for folder in reversed(place.relative_to(root).parents):
                if (root / folder).is_file():
                    (root / folder).unlink()
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(f"{path} {number}")
            place.chmod(mode)
        elif kind == "chmod" and place.is_file():
            place.chmod(mode)
        elif kind == "rename" and place.is_file():
            other = root / paths[number]
            if other.is_file():
                place.rename(other)


def changed(history: list[tuple[str, Tree, Tree]], wanted: str) -> set[str]:
    """Paths that steps of one kind changed."""
    steps = [(old, new) for kind, old, new in history if kind == wanted]
    return {p for old, new in steps for p in old.keys() | new.keys() if old.get(p) != new.get(p)}


def expected(history: list[tuple[str, Tree, Tree]], start: Tree, now: Tree) -> Tree:
    """What should be there after an undo to ``start``: each path as it was, but the user's as they are."""
    result: Tree = {}
    goes_back = changed(history, "turn") - changed(history, "user")
    for path in start.keys() | now.keys():
        chosen = start.get(path) if path in goes_back else now.get(path)
        if chosen is not None:
            result[path] = chosen
    return result


@settings(max_examples=60, deadline=None)
@given(steps=STEPS)
def test_whatever_turns_do_undo_restores_what_was_there(steps: list[tuple[str, object]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        past = Past(Path(folder, "s"))
        history: list[tuple[str, Tree, Tree]] = []
        starts: dict[int, tuple[int, Tree]] = {}
        last: Tree = {}
        for kind, argument in steps:
            now = tree(past.work)
            if kind == "turn":
                history.append(("user", last, now))
                with past.turn() as number:
                    starts[number] = (len(history), now)
                    apply(past.work, argument, OF_TURNS)  # type: ignore[arg-type]
                last = tree(past.work)
                history.append(("turn", now, last))
            elif kind == "user":
                apply(past.work, argument, SHARED)  # type: ignore[arg-type]
            elif kind == "restart":
                past = past.again()
            elif starts:
                number = sorted(starts)[int(argument) % len(starts)]  # type: ignore[call-overload]
                position, start = starts[number]
                history.append(("user", last, now))
                wanted = expected(history[position:], start, now)
                done = past.undo(number)
                assert tree(past.work) == wanted
                by_turns = changed(history[position:], "turn")
                left = {path for path in by_turns if wanted.get(path) != start.get(path)}
                assert {entry.path for entry in done.conflicts} == left
                last = tree(past.work)
                history.append(("undo", now, last))
                starts = {n: found for n, found in starts.items() if n < number}
        past.timeline.close()
