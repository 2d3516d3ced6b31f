"""Remote storages for tests, that can be away and lose answers."""

from __future__ import annotations

import secrets
from typing import Any

from conjure_jupyter.errors import StorageUnavailableError
from conjure_jupyter.storage import Bucket, S3Storage
from tests.s3 import Server


def s3_bucket(port: int, name: str) -> Bucket:
    """A session's keys on a server."""
    return S3Storage(**Server(port).options("p"))._make_bucket(name)


def memory_bucket() -> Bucket:
    from obstore.store import MemoryStore

    return Bucket(MemoryStore(), "s1", "memory://s1")


class Remote:
    """What the mirror takes: a storage with a bucket. It can be away, and lose answers.

    Attributes:
        down: every request fails.
        lose: how many of the next writes arrive although their answer says they did not.
        puts: keys in the order in which writes arrived.
    """

    def __init__(self, bucket: Bucket) -> None:
        self.down = False
        self.lose = 0
        self.puts: list[str] = []
        self.bucket = _Shaky(self, bucket)


class _Shaky(Bucket):
    def __init__(self, remote: Remote, bucket: Bucket) -> None:
        super().__init__(bucket.store, bucket.prefix, bucket.url)
        self._remote = remote

    async def _put(self, key: str, data: Any, mode: Any, content_type: str | None) -> str:
        self._check(key)
        etag = await super()._put(key, data, mode, content_type)
        self._remote.puts.append(key)
        if self._remote.lose:
            self._remote.lose -= 1
            raise StorageUnavailableError(self.url_of(key), "the answer was lost")
        return etag

    async def get_with_etag(self, key: str) -> tuple[bytes, str]:
        self._check(key)
        return await super().get_with_etag(key)

    async def list(self, prefix: str = "") -> Any:
        self._check(prefix)
        return await super().list(prefix)

    def _check(self, key: str) -> None:
        if self._remote.down:
            raise StorageUnavailableError(self.url_of(key), "nobody answers")


def another_name() -> str:
    return secrets.token_hex(6)
