"""Sessions that are kept in S3 as well: sent, brought to another machine, and erased, with real servers."""

from __future__ import annotations

import os
import secrets
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from conjure_jupyter.conversation import Session
from conjure_jupyter.engine import engine
from conjure_jupyter.errors import SessionNotFoundError, StorageConflictError, StorageError
from conjure_jupyter.fileref import FileRef
from conjure_jupyter.settings import Settings
from conjure_jupyter.storage import LocalStorage, S3Storage
from conjure_jupyter.testing import FakeClaude
from tests.builders import bash
from tests.s3 import KEY_ID, SECRET, Server, moto

from .conftest import MakeSession

Serve = Callable[..., FakeClaude]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with moto() as running:
        yield running


@pytest.fixture
def address(server: Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """An address of the test's own; the environment says how to reach it."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", server.endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY_ID)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    return f"s3://test/{secrets.token_hex(6)}"


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """The notebook's folder on another machine."""
    folder = tmp_path / "other machine"
    folder.mkdir()
    return folder


def resume(url: str, project: Path, **options: Any) -> Session:
    return Session.resume(url, Settings.from_env(approve="auto"), project=project, **options)


def test_a_session_goes_on_on_another_machine(
    serve: Serve, make_session: MakeSession, address: str, elsewhere: Path, project: Path
) -> None:
    serve(
        [
            bash("cp uploads/sales.csv outputs/copy.csv; echo note > notes.txt"),
            "first",
            bash("cat outputs/copy.csv notes.txt; cat file://frame; echo two > outputs/two.txt"),
            "second",
        ]
    )
    session = make_session(storage=address)
    session.artifacts.register("frame", pd.DataFrame({"a": [7]}))
    reply = session.chat("one", files=[project / "sales.csv"])
    assert session.sync()
    assert session.url == f"{address}/{session.id}"
    sha256 = reply.files[0].sha256
    assert session.artifacts.get("copy.csv").storage_url == f"{address}/{session.id}/blobs/{sha256}"
    session.close()

    other = resume(f"{address}/{session.id}", elsewhere)
    try:
        assert other.folder.is_relative_to(elsewhere)
        assert other.turns == 1
        assert other.messages == session.messages
        assert (other.workspace / "outputs/copy.csv").read_bytes() == (project / "sales.csv").read_bytes()
        reply = other.chat("two")
        assert reply.text == "second"
        shown = reply.tool_calls[0].result.text
        assert "north,1" in shown
        assert "note" in shown, "what no artifact is came along by the snapshot"
        assert "7" in shown
        assert other.sync()
    finally:
        other.close()

    back = resume(f"{address}/{session.id}", project)
    try:
        assert back.turns == 2, "the copy here takes up what was said there"
        assert back.artifacts.get("two.txt").text() == "two\n"
    finally:
        back.close()


def test_two_writers_never_overwrite_each_other(
    serve: Serve, make_session: MakeSession, address: str, elsewhere: Path
) -> None:
    serve(["first", "second", "third"])
    session = make_session(storage=address)
    session.chat("one")
    assert session.sync()
    other = resume(f"{address}/{session.id}", elsewhere)
    try:
        with pytest.raises(StorageConflictError, match=r"(?i)in use|writes|held"):
            other.chat("two")
        assert other.turns == 1, "nothing of the turn was written"
    finally:
        other.close()
    assert session.chat("two").text == "second"
    assert session.sync()


def test_logs_that_went_apart_are_a_conflict(
    serve: Serve, make_session: MakeSession, address: str, elsewhere: Path, project: Path
) -> None:
    serve(["first", "here", "there"])
    session = make_session(storage=address)
    session.chat("one")
    session.close()
    apart = project / ".conjure/sessions" / session.id
    kept = apart.with_name("kept")
    shutil.copytree(apart, kept)
    other = resume(f"{address}/{session.id}", elsewhere)
    other.chat("two")
    other.close()
    # The same session went on here without the storage.
    alone = Session.resume(session.id, Settings.from_env(approve="auto"), project=project)
    alone.chat("two, but here")
    alone.close()
    with pytest.raises(StorageConflictError):
        resume(f"{address}/{session.id}", project)


def test_without_a_network_the_session_goes_on_and_is_sent_later(
    serve: Serve, make_session: MakeSession, address: str, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve([bash("echo a > outputs/a.txt"), "first"])
    endpoint = os.environ["AWS_ENDPOINT_URL_S3"]
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")
    session = make_session(storage=address)
    reply = session.chat("one")
    assert reply.text == "first"
    with pytest.raises(StorageError):
        session.sync()
    session.close()

    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint)
    serve(["second"])
    again = resume(session.id, session.project, storage=address)
    try:
        again.chat("two")
        assert again.sync()
    finally:
        again.close()
    other = resume(f"{address}/{session.id}", elsewhere)
    try:
        assert other.turns == 2
        assert other.artifacts.get("a.txt").text() == "a\n"
    finally:
        other.close()


def test_callbacks_hear_when_files_are_there(serve: Serve, make_session: MakeSession, address: str) -> None:
    serve([bash("echo a > outputs/a.txt"), "ok"])
    heard: list[tuple[FileRef, str]] = []
    synced = threading.Event()

    def on_synced(ref: FileRef, session_id: str) -> None:
        heard.append((ref, session_id))
        synced.set()

    session = make_session(storage=address, on_file_synced=on_synced)
    session.chat("one")
    assert session.sync()
    assert synced.wait(30)
    [(ref, session_id)] = heard
    assert (ref.path, session_id) == ("outputs/a.txt", session.id)
    assert ref.storage_url is not None
    assert ref.storage_url.startswith(address)


def test_erasing_takes_the_remote_copies_along(
    serve: Serve, make_session: MakeSession, address: str, project: Path, elsewhere: Path
) -> None:
    serve([bash("echo a > outputs/a.txt"), "ok"])
    session = make_session(storage=address)
    session.chat("one")
    assert session.sync()
    session.close()
    erased = Session.erase(session.id, project=project)
    assert not session.folder.exists()
    assert any(key.startswith("log/") for key in erased.remote)
    assert any(key.startswith("blobs/") for key in erased.remote)
    assert not erased.left
    with pytest.raises((SessionNotFoundError, StorageError)):
        resume(f"{address}/{session.id}", elsewhere)
    prefix = address.removeprefix("s3://test/")
    storage = S3Storage(bucket="test", prefix=prefix, cache_path=elsewhere / "cache")
    engine().run(storage.init(session.id))
    assert engine().run(storage.bucket.list("")) == []
    engine().run(storage.close())


def test_settings_and_objects_name_a_storage(
    serve: Serve, make_session: MakeSession, address: str, tmp_path: Path, server: Server
) -> None:
    serve(["a", "b", "c"])
    by_setting = make_session(settings={"storage": address, "storage_cache": str(tmp_path / "cache")})
    by_setting.chat("one")
    assert by_setting.folder.parent == tmp_path / "cache"
    assert by_setting.sync()

    prefix = secrets.token_hex(4)
    options = {**server.options(prefix), "cache_path": tmp_path / "copies"}
    by_object = make_session(storage=S3Storage(**options))
    by_object.chat("one")
    assert by_object.folder == tmp_path / "copies" / by_object.id
    assert by_object.sync()
    assert by_object.url == f"s3://test/{prefix}/{by_object.id}"

    local = make_session(storage=(LocalStorage, {"base_path": tmp_path / "base", "prefix": "mine"}), id="abc")
    local.chat("one")
    assert local.folder == tmp_path / "base" / "mine_abc" / "abc"
    assert local.url is None


@pytest.mark.parametrize("spec", ["ftp://x/y", "nothing", "s3://", "memory", 7])
def test_what_can_be_no_storage_is_told(make_session: MakeSession, spec: Any) -> None:
    with pytest.raises(StorageError):
        make_session(storage=spec)
