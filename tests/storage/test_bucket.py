"""The bucket against real servers: conditions, parts, listings, and every error in our own words."""

from __future__ import annotations

import inspect
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import obstore
import pytest
from obstore.store import MemoryStore

from conjure_jupyter.errors import (
    StorageConflictError,
    StorageError,
    StorageNotFoundError,
    StorageUnavailableError,
)
from conjure_jupyter.storage import Bucket, S3Storage
from conjure_jupyter.storage.translation import BUILTIN, BY_NAME, translate, translated
from tests.s3 import Server, free_port


@pytest.fixture(params=["moto", "memory"])
async def bucket(request: pytest.FixtureRequest, prefix: str, cache: Path) -> AsyncIterator[Bucket]:
    """A bucket whose service enforces conditions."""
    if request.param == "memory":
        yield Bucket(MemoryStore(), prefix, f"memory://{prefix}")
        return
    server: Server = request.getfixturevalue("strict_server")
    storage = S3Storage(**server.options(prefix), cache_path=cache)
    await storage.init("s1")
    yield storage.bucket
    await storage.close()


def names(folder: Path) -> list[str]:
    """What lies in a folder."""
    return sorted(path.name for path in folder.iterdir())


async def test_a_key_is_made_once(bucket: Bucket) -> None:
    etag = await bucket.put_new("a", b"1")
    with pytest.raises(StorageConflictError):
        await bucket.put_new("a", b"1")
    with pytest.raises(StorageConflictError):
        await bucket.put_new("a", b"2", repeat=True)
    assert await bucket.put_new("a", b"1", repeat=True) == etag
    assert await bucket.get("a") == b"1"


async def test_only_the_version_that_was_seen_is_replaced(bucket: Bucket) -> None:
    first = await bucket.put("a", b"1")
    second = await bucket.put_if("a", b"2", first)
    with pytest.raises(StorageConflictError):
        await bucket.put_if("a", b"3", first)
    data, etag = await bucket.get_with_etag("a")
    assert (data, etag) == (b"2", second)
    assert [item.etag for item in await bucket.list()] == [(await bucket.head("a")).etag] == [second]
    await bucket.delete("a")
    with pytest.raises(StorageConflictError):
        await bucket.put_if("a", b"4", second)


async def test_a_service_says_whether_it_enforces_conditions(
    bucket: Bucket, files_server: Server, prefix: str, tmp_path: Path
) -> None:
    assert await bucket.enforces_conditions()
    lax = S3Storage(**files_server.options(prefix), cache_path=tmp_path / "lax")
    await lax.init("s1")
    assert not await lax.bucket.enforces_conditions()
    assert await lax.bucket.list() == []
    await lax.close()


async def test_large_files_travel_in_parts(bucket: Bucket, tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    source, target = folder / "source", folder / "target"
    source.write_bytes(os.urandom(20_000_001))
    await bucket.put("large", source)
    item = await bucket.get_to_file("large", target)
    assert target.read_bytes() == source.read_bytes()
    assert (item.size, target.stat().st_mode & 0o777) == (20_000_001, 0o600)
    assert names(folder) == ["source", "target"]


async def test_listing_takes_any_prefix(bucket: Bucket) -> None:
    for key in ("ab", "a/1", "a/2", "abc/d", "b"):
        await bucket.put(key, key.encode())
    assert [item.key for item in await bucket.list("ab")] == ["ab", "abc/d"]
    assert [item.key for item in await bucket.list("a/")] == ["a/1", "a/2"]
    below = bucket.below("a/")
    assert [item.key for item in await below.list()] == ["1", "2"]
    assert below.url_of("1") == bucket.url_of("a/1")
    await bucket.delete_many(["ab", "none", "b"])
    assert [item.key for item in await bucket.list()] == ["a/1", "a/2", "abc/d"]


async def test_what_is_not_there(bucket: Bucket, tmp_path: Path) -> None:
    for work in (
        bucket.get("x"),
        bucket.head("x"),
        bucket.get_to_file("x", tmp_path / "x"),
        bucket.digest("x"),
    ):
        with pytest.raises(StorageNotFoundError):
            await work
    await bucket.delete("x")
    assert not (tmp_path / "x").exists()


async def test_a_disk_error_is_no_service_error(bucket: Bucket, tmp_path: Path) -> None:
    await bucket.put("a", b"1")
    for work in (bucket.get_to_file("a", tmp_path / "no" / "folder"), bucket.put("b", tmp_path / "none")):
        with pytest.raises(StorageError) as raised:
            await work
        assert type(raised.value) is StorageError


async def test_a_missing_bucket_is_said(files_server: Server, cache: Path) -> None:
    storage = S3Storage(**{**files_server.options(), "bucket": "nosuch"}, cache_path=cache)
    await storage.init("s1")
    with pytest.raises(StorageError, match="the bucket does not exist") as raised:
        await storage.bucket.put("a", b"1")
    assert type(raised.value) is StorageError
    await storage.close()


async def test_nobody_listens(cache: Path) -> None:
    options = {"bucket": "test", "access_key": "a", "secret_key": "b"}
    storage = S3Storage(**options, endpoint=f"http://127.0.0.1:{free_port()}", cache_path=cache)
    await storage.init("s1")
    with pytest.raises(StorageUnavailableError) as raised:
        await storage.bucket.get("a")
    assert "Debug source" not in str(raised.value)
    await storage.close()


def errors_of_obstore() -> list[type[Exception]]:
    return [
        kind
        for _, kind in inspect.getmembers(obstore.exceptions, inspect.isclass)
        if issubclass(kind, Exception)
    ]


def test_every_error_of_obstore_is_mapped() -> None:
    kinds = errors_of_obstore()
    assert {kind.__name__ for kind in kinds} == set(BY_NAME)
    for kind in kinds:
        with pytest.raises(StorageError) as raised, translated("s3://b/k"):
            raise kind("said")
        assert raised.value.where == "s3://b/k"


def test_the_most_specific_comes_first() -> None:
    for number, (kind, _) in enumerate(BUILTIN):
        assert not any(issubclass(kind, earlier) for earlier, _ in BUILTIN[:number])
    assert translate(KeyError("a bug of ours"), "k") is None
    with pytest.raises(KeyError), translated("k"):
        raise KeyError


@pytest.mark.parametrize(
    ("said", "kind", "text"),
    [
        (
            "- Server returned non-2xx status code: 500 Internal Server Error: ",
            StorageUnavailableError,
            "500",
        ),
        (
            "- Server returned non-2xx status code: 503 x: <Error><Code>SlowDown</Code></Error>",
            StorageUnavailableError,
            "SlowDown",
        ),
        ("- Server returned non-2xx status code: 429 Too Many Requests: ", StorageUnavailableError, "429"),
        (
            "- Server returned non-2xx status code: 400 Bad Request: <Error><Code>InvalidX</Code></Error>",
            StorageError,
            "InvalidX",
        ),
        ("- HTTP error: error sending request", StorageUnavailableError, "sending"),
        ("Received redirect without LOCATION, this normally", StorageError, "region"),
        ("Error performing PUT http://169.254.169.254/latest/api/token", StorageError, "AWS_ACCESS_KEY_ID"),
        (
            "GET https://x.invalid/k?sig=s3cr3t&se=1 failed\n\nDebug source:\ns3cr3t",
            StorageUnavailableError,
            "x.invalid/k",
        ),
    ],
)
def test_what_is_worth_another_try(said: str, kind: type[StorageError], text: str) -> None:
    error = translate(obstore.exceptions.GenericError(said), "k")
    assert type(error) is kind
    assert text in str(error)
    assert "s3cr3t" not in str(error)


def test_without_obstore_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    import sys

    from conjure_jupyter.storage.translation import library

    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(StorageError, match="pip install"):
        library()


async def test_a_write_under_way_elsewhere_is_tried_again(bucket: Any) -> None:
    said = "409 Conflict: <Error><Code>ConditionalRequestConflict</Code></Error>"
    assert type(translate(obstore.exceptions.AlreadyExistsError(said), "k")) is StorageUnavailableError
