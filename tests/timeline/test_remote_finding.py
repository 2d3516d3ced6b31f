"""Sessions by their address, and those that a storage has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from conjure_jupyter.errors import StorageError
from conjure_jupyter.storage import S3Storage
from conjure_jupyter.timeline.remote import list_remote, parse_session_url
from tests.s3 import Server, rclone

from .remote_machine import Machine
from .remote_stores import Remote, another_name


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with rclone(tmp_path_factory.mktemp("rclone")) as server:
        yield server


@pytest.mark.parametrize(
    ("url", "spec", "name"),
    [
        ("s3://bucket/20260101-ab", "s3://bucket", "20260101-ab"),
        ("s3://bucket/team/a/20260101-ab/", "s3://bucket/team/a", "20260101-ab"),
        ("gs://bucket/x", "gs://bucket", "x"),
        ("tigris://bucket/sessions/x", "tigris://bucket/sessions", "x"),
    ],
)
def test_an_address_names_a_storage_and_a_session(url: str, spec: str, name: str) -> None:
    assert parse_session_url(url) == (spec, name)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "s3://",
        "s3://bucket",
        "s3://bucket/",
        "20260101-ab",
        "s3:/bucket/x",
        "s3://bucket/..",
        "s3://bucket/.hidden",
        "s3://bucket/x.",
        "s3://bucket/a b",
        "s3://bucket/x?y=1",
        "s3://bucket/" + "x" * 65,
        "s3://bucket/x\n",
    ],
)
def test_an_address_that_names_none(url: str) -> None:
    with pytest.raises(StorageError):
        parse_session_url(url)


async def test_the_sessions_of_a_storage(tmp_path: Path, server: Server) -> None:
    prefix = another_name()
    options = server.options(prefix)
    for name in ("b", "a", "c"):
        remote = Remote(S3Storage(**options)._make_bucket(name))
        machine = Machine(tmp_path / name, remote)
        mirror = machine.mirror()
        await mirror.start()
        machine.say(f"in {name}")
        await mirror.synced()
        await machine.close()
    above = S3Storage(**options)._make_bucket("")
    await above.below("c").put("log/00000004.jsonl", b"evil\n")
    await above.below("files-only").put("outputs/x.txt", b"no session")
    await above.below(".hidden").put("log/00000001.jsonl", b"no session\n")
    await above.put("stray.txt", b"no session")

    found = await list_remote((S3Storage, options))
    assert [session.id for session in found] == ["a", "b", "c"]
    a = found[0]
    assert a.url == f"s3://test/{prefix}/a"
    assert parse_session_url(a.url) == (f"s3://test/{prefix}", "a")
    assert a.size == (tmp_path / "a" / "timeline.jsonl").stat().st_size
    assert a.damaged is None
    assert "gap" in (found[2].damaged or "")


@pytest.mark.parametrize("spec", [None, "local", "memory"])
async def test_a_storage_that_is_not_remote_has_none(spec: str | None) -> None:
    assert await list_remote(spec) == []
