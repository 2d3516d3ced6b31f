"""The public contract suite over every storage of this package."""

from __future__ import annotations

from pathlib import Path

import pytest

from conjure_jupyter.storage import LocalStorage, MemoryStorage, S3Storage, Storage, TigrisStorage, URLStorage
from conjure_jupyter.testing.storage_contract import StorageContract
from tests.s3 import Server


class TestLocal(StorageContract):
    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self.base = tmp_path

    def make_storage(self) -> Storage:
        return LocalStorage(base_path=self.base)


class TestMemory(StorageContract):
    lasting = False
    local = False

    def make_storage(self) -> Storage:
        return MemoryStorage()


class TestS3(StorageContract):
    """Against rclone, with the local copy at hand."""

    @pytest.fixture(autouse=True)
    def _place(self, files_server: Server, prefix: str, cache: Path) -> None:
        self.options = {**files_server.options(prefix), "cache_path": cache}

    def make_storage(self) -> Storage:
        return S3Storage(**self.options)


class TestS3Strict(StorageContract):
    """Against moto, which enforces what is asked for."""

    @pytest.fixture(autouse=True)
    def _place(self, strict_server: Server, prefix: str, cache: Path) -> None:
        self.options = {**strict_server.options(prefix), "cache_path": cache}

    def make_storage(self) -> Storage:
        return S3Storage(**self.options)


class TestTigris(StorageContract):
    """Configured by the environment alone, as on a Fly machine."""

    @pytest.fixture(autouse=True)
    def _place(
        self, files_server: Server, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.prefix = prefix
        options = files_server.options()
        monkeypatch.setenv("BUCKET_NAME", options["bucket"])
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", options["endpoint"])
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", options["access_key"])
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", options["secret_key"])
        monkeypatch.setenv("FLY_REGION", "fra")
        monkeypatch.setenv("FLY_VOLUME_PATH", str(tmp_path / "volume"))

    def make_storage(self) -> Storage:
        return TigrisStorage(prefix=self.prefix)


class TestURL(StorageContract):
    """Another of obstore's services: a folder by its address."""

    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path, cache: Path) -> None:
        (tmp_path / "far").mkdir()
        self.url, self.cache = f"file://{tmp_path / 'far'}", cache

    def make_storage(self) -> Storage:
        return URLStorage(self.url, cache_path=self.cache)
