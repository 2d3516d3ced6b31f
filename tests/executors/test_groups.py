"""Which processes belong to a command, from a list of processes alone."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from conjure_jupyter.executors import groups

MARK = b"PATH=/bin\0CONJURE_CALL=abc\0X=1"
ME, SHELL = 50, 100


def rows(*more: groups.Row) -> list[groups.Row]:
    base = [(1, 0, 1, b""), (40, 1, 40, b""), (ME, 40, 40, b""), (SHELL, ME, SHELL, MARK)]
    return [*base, *more]


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ((101, SHELL, SHELL, b""), True),  # a child
        ((101, 1, SHELL, b""), True),  # an orphan in the session
        ((101, 1, 101, MARK), True),  # setsid and a double fork, with the marker
        ((101, 1, 101, b"CONJURE_CALL=other"), False),
        ((101, 1, 101, b""), False),  # what the docstring says is not found
        ((101, 40, 40, b""), False),
    ],
)
def test_one_process(row: groups.Row, found: bool) -> None:
    expected = [SHELL, 101] if found else [SHELL]
    assert groups.belonging(rows(row), SHELL, "abc", ME) == expected


def test_descendants_of_what_was_found() -> None:
    more = rows((101, 1, 101, MARK), (102, 101, 102, b""), (103, 102, 103, b""))
    assert groups.belonging(more, SHELL, "abc", ME) == [SHELL, 101, 102, 103]


def test_the_one_who_asks_and_those_above_are_spared() -> None:
    marked = [(pid, parent, SHELL, MARK) for pid, parent, _, _ in rows()]
    assert groups.belonging(marked, SHELL, "abc", ME) == [SHELL]


def test_without_a_shell_only_the_marker_counts() -> None:
    more = rows((101, 1, 0, b""), (102, 1, 5, MARK))
    assert groups.belonging(more, 0, "abc", ME) == [SHELL, 102]


def test_a_listing_of_ps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups.os, "getsid", lambda pid: {7: 7, 8: 7}[pid])
    listing = b"    7     1 Ss   bash -c x PATH=/bin CONJURE_CALL=abc\n    8     7 Z    <defunct>\n\n"
    found = groups.parse_ps(listing)
    assert [row[:3] for row in found] == [(7, 1, 7)]
    assert groups.belonging(found, 0, "abc", ME) == [7]


def test_this_machine() -> None:
    marker = f"test-{os.getpid()}"
    child = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", "print(1, flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={groups.MARKER: marker},
    )
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdout.readline()
    assert groups.members(0, marker, set()) == [child.pid]
    assert groups.members(0, marker, {child.pid}) == []
    child.communicate(b"\n")
    assert groups.members(0, marker, set()) == []
