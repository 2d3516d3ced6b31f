"""From what a user says to a storage, and where its options come from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conjure_jupyter.errors import StorageError
from conjure_jupyter.storage import (
    LocalStorage,
    MemoryStorage,
    RemoteStorage,
    S3Storage,
    Storage,
    TigrisStorage,
    URLStorage,
    create_storage,
    split_url,
)
from tests.s3 import Server

KEYS = {"access_key": "a", "secret_key": "b"}


async def address(storage: Storage) -> str:
    """Where a storage would keep session ``s1``."""
    assert isinstance(storage, RemoteStorage)
    await storage.init("s1")
    try:
        return storage.url
    finally:
        await storage.close()


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        (None, LocalStorage),
        ("local", LocalStorage),
        (" memory ", MemoryStorage),
        (MemoryStorage, MemoryStorage),
    ],
)
def test_a_word_or_a_class(spec: Any, kind: type[Storage]) -> None:
    assert type(create_storage(spec)) is kind


async def test_an_object_is_taken_as_it_is() -> None:
    storage = MemoryStorage()
    assert create_storage(storage) is storage
    with pytest.raises(StorageError, match="takes no options"):
        create_storage(storage, prefix="x")


async def test_a_class_with_options(tmp_path: Path) -> None:
    storage = create_storage((LocalStorage, {"base_path": tmp_path, "prefix": "mine"}), prefix="yours")
    await storage.init("s1")
    assert storage.local_path() == tmp_path / "yours_s1"


@pytest.mark.parametrize(
    ("spec", "url"),
    [
        ("s3://my-bucket", "s3://my-bucket/sessions/s1/"),
        ("s3://my-bucket/", "s3://my-bucket/sessions/s1/"),
        ("s3://my-bucket/team/a", "s3://my-bucket/team/a/s1/"),
        ("s3a://my-bucket/team/", "s3://my-bucket/team/s1/"),
        ("tigris://my-bucket/x", "s3://my-bucket/x/s1/"),
    ],
)
async def test_an_address(spec: str, url: str, cache: Path) -> None:
    storage = create_storage(spec, cache_path=cache, **KEYS)
    assert isinstance(storage, TigrisStorage) == spec.startswith("tigris")
    assert await address(storage) == url


async def test_other_services_by_their_address(tmp_path: Path, cache: Path) -> None:
    storage = create_storage(f"file://{tmp_path}/far", cache_path=cache)
    assert isinstance(storage, URLStorage)
    assert (await address(storage)).endswith("/far/s1/")
    assert isinstance(create_storage("gs://bucket/path"), URLStorage)


@pytest.mark.parametrize(
    "spec",
    [
        "nonsense",
        "",
        "http://x/y",
        "ftp://x",
        "s3://",
        "s3://../x",
        "s3://b\0ucket",
        "s3://a b",
        7,
        (1, 2),
        dict,
    ],
)
def test_nonsense_is_refused(spec: Any) -> None:
    if spec == "":
        assert isinstance(create_storage(spec), LocalStorage)
        return
    with pytest.raises(StorageError):
        create_storage(spec)


def test_a_wrong_option_is_named() -> None:
    with pytest.raises(StorageError, match="nosuch"):
        create_storage("memory", nosuch=1)


@pytest.mark.parametrize(("spec", "variable"), [("s3", "S3_BUCKET"), ("tigris", "BUCKET_NAME")])
def test_a_missing_bucket_says_what_to_set(spec: str, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("S3_BUCKET", raising=False)
    monkeypatch.delenv("BUCKET_NAME", raising=False)
    with pytest.raises(StorageError, match=f"set {variable}"):
        create_storage(spec)


async def test_s3_by_its_environment(
    files_server: Server, prefix: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = files_server.options()
    monkeypatch.setenv("S3_BUCKET", options["bucket"])
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", options["endpoint"])
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", options["access_key"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", options["secret_key"])
    storage = S3Storage(prefix=prefix, cache_path=cache)
    await storage.init("s1")
    await storage.write("a", b"1")
    await storage.sync_to_remote()
    assert files_server.files(f"{prefix}/s1") == {"a": b"1"}
    assert storage.bucket.store.config["region"] == "eu-central-1"  # type: ignore[union-attr]
    await storage.close()


async def test_an_option_goes_before_each_variable(
    files_server: Server, prefix: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "BUCKET_NAME",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "FLY_REGION",
    ):
        monkeypatch.setenv(name, "wrong")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")
    monkeypatch.setenv("FLY_VOLUME_PATH", "/nonexistent")
    storage = TigrisStorage(**files_server.options(prefix), cache_path=cache)
    await storage.init("s1")
    await storage.write("a", b"1")
    await storage.sync_to_remote()
    assert files_server.files(f"{prefix}/s1") == {"a": b"1"}
    assert storage.local_path() == cache / "s1"
    await storage.close()


async def test_where_the_local_copies_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLY_VOLUME_PATH", str(tmp_path / "volume"))
    tigris = TigrisStorage(bucket="test", **KEYS)
    await tigris.init("s1")
    assert tigris.local_path() == tmp_path / "volume" / "conjure_sessions" / "s1"
    await tigris.close()
    s3 = S3Storage(bucket="test", **KEYS)
    await s3.init("s1")
    assert s3.local_path().is_relative_to(Path.home())
    assert s3.local_path().name == "s1"
    await s3.close()


async def test_a_session_s_own_folder_is_mirrored_in_part(
    files_server: Server, prefix: str, tmp_path: Path
) -> None:
    folder = tmp_path / "s1"
    (folder / "work").mkdir(parents=True)
    (folder / "work" / "private").write_text("stays here")
    (folder / "blob").write_text("goes there")
    storage = S3Storage(**files_server.options(prefix), cache_path=folder)
    await storage.init("s1")
    assert storage.local_path() == folder
    await storage.publish("blob", immutable=True)
    await storage.write("log", b"1")
    await storage.sync_to_remote()
    assert [ref.path for ref in await storage.list()] == ["blob", "log"]
    assert files_server.files(f"{prefix}/s1") == {"blob": b"goes there", "log": b"1"}
    assert [ref.path for ref in await storage.cleanup()] == ["blob", "log"]
    assert [path.name for path in folder.rglob("*")] == ["work", "private"]
    assert files_server.files(f"{prefix}/s1") == {}


def test_a_session_s_address_is_taken_apart() -> None:
    assert split_url("s3://bucket/team/20260101-ab") == ("s3://bucket/team", "20260101-ab")
    assert split_url("s3://bucket/team/20260101-ab/") == ("s3://bucket/team", "20260101-ab")
    for url in ("20260101-ab", "s3://bucket", "s3:///x", ""):
        with pytest.raises(StorageError, match="address"):
            split_url(url)
