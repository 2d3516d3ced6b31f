"""The queue's folder: torn ends, damage, a log that grows too long, and rights."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conjure_jupyter.errors import StorageError
from conjure_jupyter.storage import journal as journal_module
from conjure_jupyter.storage.entry import Entry, dumps
from conjure_jupyter.storage.files import Folder
from conjure_jupyter.storage.journal import Journal, hold
from conjure_jupyter.storage.records import Damaged, append, pack, scan


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    made = opened(tmp_path)
    yield made
    made.release()


def opened(folder: Path) -> Journal:
    made = Journal(Folder(folder), "s3://b/s1/")
    assert made.acquire()
    made.entries()
    return made


def put(seq: int, content: bytes, key: str = "") -> Entry:
    entry = Entry(seq, "put", key or f"k{seq}")
    hold(entry, content)
    return entry


def contents(folder: Path) -> dict[int, bytes]:
    """What a fresh process finds."""
    again = Journal(Folder(folder), "s3://b/s1/")
    assert again.acquire()
    found = {}
    for entry in again.entries():
        with again.content(entry) as content:
            assert isinstance(content, bytes)
            found[entry.seq] = content
    again.release()
    return found


def test_what_was_kept_and_not_done_is_found(journal: Journal, tmp_path: Path) -> None:
    entries = [put(number, os.urandom(number * 100)) for number in range(1, 6)]
    journal.write(entries[:3], [])
    journal.write(entries[3:], entries[1:2])
    journal.release()
    assert contents(tmp_path) == {each.seq: each.content for each in entries if each.seq != 2}


def test_the_log_begins_anew_when_nothing_waits(journal: Journal) -> None:
    entries = [put(number, b"x" * 1000) for number in range(1, 20)]
    journal.write(entries, [])
    journal.write([], entries)
    assert (journal.folder / "log").stat().st_size == 0


def test_a_long_log_is_shortened(journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "LONG", 20_000)
    first = put(1, b"stays")
    journal.write([first], [])
    for number in range(2, 200):
        entry = put(number, b"x" * 1000)
        journal.write([entry], [])
        journal.write([], [entry])
        assert (journal.folder / "log").stat().st_size < 25_000
    first.content = None
    with journal.content(first) as content:
        assert content == b"stays"
    journal.write([put(500, b"last")], [])
    journal.release()
    assert contents(tmp_path) == {1: b"stays", 500: b"last"}


@pytest.mark.parametrize("cut", range(1, 120, 7))
def test_a_torn_end_is_cut_off(journal: Journal, tmp_path: Path, cut: int) -> None:
    journal.write([put(1, b"one")], [])
    journal.write([put(2, b"two")], [])
    journal.release()
    log = journal.folder / "log"
    log.write_bytes(log.read_bytes()[:-cut])
    assert contents(tmp_path) == {1: b"one"}
    again = opened(tmp_path)
    again.write([put(3, b"three")], [])
    again.release()
    assert contents(tmp_path) == {1: b"one", 3: b"three"}


def test_damage_in_the_middle_is_told(journal: Journal, tmp_path: Path) -> None:
    journal.write([put(1, b"one")], [])
    middle = (journal.folder / "log").stat().st_size
    journal.write([put(2, b"two")], [])
    journal.write([put(3, b"three")], [])
    journal.release()
    log = journal.folder / "log"
    data = bytearray(log.read_bytes())
    data[middle + 60] ^= 1
    log.write_bytes(data)
    again = Journal(Folder(tmp_path), "s3://b/s1/")
    assert again.acquire()
    with pytest.raises(StorageError, match="cannot be read"):
        again.entries()
    assert log.read_bytes() == bytes(data), "nothing of it is thrown away"
    again.release()


def test_another_version_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / ".conjure-queue"
    folder.mkdir()
    (folder / "log").write_bytes(pack(dumps({"format": 99, "done": 1})))
    again = Journal(Folder(tmp_path), "s3://b/s1/")
    assert again.acquire()
    with pytest.raises(StorageError, match="another version"):
        again.entries()
    again.release()


def test_files_that_belong_to_nothing_are_removed(journal: Journal, tmp_path: Path) -> None:
    source = tmp_path / "large"
    source.write_bytes(b"x" * 200_000)
    entry = Entry(7, "put", "large", held="spool")
    with source.open("rb") as file:
        journal.spool(entry, file.fileno())
        journal.write([entry], [])
        journal.spool(Entry(8, "put", "large", held="spool"), file.fileno())
    journal.release()
    again = opened(tmp_path)
    assert [path.name for path in again.folder.glob("*.data")] == ["000000000007.data"]
    again.write([], [entry])
    assert [*again.folder.glob("*.data")] == []
    again.release()


def test_one_has_the_folder(journal: Journal, tmp_path: Path) -> None:
    other = Journal(Folder(tmp_path), "s3://b/s1/")
    assert not other.acquire()
    journal.release()
    assert other.acquire()
    other.release()


@settings(max_examples=60, deadline=None)
@given(contents=st.lists(st.binary(max_size=300), max_size=8), tail=st.binary(max_size=60))
def test_records_come_back_whatever_follows(
    tmp_path_factory: pytest.TempPathFactory, contents: list[bytes], tail: bytes
) -> None:
    path = tmp_path_factory.mktemp("records") / "log"
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    for number, content in enumerate(contents):
        append(fd, pack(dumps({"n": number}), content), sync=False)
    end = os.lseek(fd, 0, os.SEEK_END)
    os.write(fd, tail)
    os.close(fd)
    data = path.read_bytes()
    records, good = scan(path)
    assert good == end
    assert [record.values for record in records] == [{"n": number} for number in range(len(contents))]
    assert [data[record.offset : record.offset + record.size] for record in records] == contents


def test_a_good_record_behind_a_bad_one(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(pack(b'{"n": 1}', b"a") + b"rubbish" + pack(b'{"n": 2}', b"b"))
    with pytest.raises(Damaged):
        scan(path)
    assert scan(tmp_path / "none") == ([], 0)
