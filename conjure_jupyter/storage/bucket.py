"""A bucket, as far as this package needs one: keys under a prefix, and this package's errors.

It wraps an obstore store (S3, Google, Azure, a folder, memory). Retries here are short: a stumble is passed
over, an outage is told within seconds. Whoever must not lose a write puts it in an ``UploadQueue``.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import hashlib
import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import StorageConflictError, StorageError, StorageNotFoundError
from ..errors import StorageUnavailableError as Unavailable
from .download import PIECE, FileWriter, Listener, disk_errors
from .translation import UnsupportedError, library, translated

if TYPE_CHECKING:
    from obstore.store import ObjectStore

#: Bytes of a part of a large upload, and how many parts travel at once.
PART, PARTS_AT_ONCE = 8 * 1024 * 1024, 8

#: S3 takes at most 10,000 parts.
_MOST_PARTS = 9_000


class Item(NamedTuple):
    """One key of a listing; ``etag`` is opaque and differs when the bytes do."""

    key: str
    size: int
    etag: str
    modified: dt.datetime


class Bucket:
    """Keys and bytes under one prefix of an object store."""

    def __init__(self, store: ObjectStore, prefix: str, url: str) -> None:
        """Wrap a store.

        Args:
            store: any store of obstore.
            prefix: what every key begins with there; ``sessions/abc`` and ``sessions/abc/`` are the same.
            url: the address of the prefix, such as ``s3://bucket/sessions/abc/``.
        """
        self.store = store
        self.prefix = prefix.strip("/") + "/" if prefix.strip("/") else ""
        self.url = url.rstrip("/") + "/"
        self._typed = type(store).__name__ != "LocalStore"  # a folder cannot keep content types

    def below(self, prefix: str) -> Bucket:
        """The part of this bucket below a further prefix."""
        return Bucket(self.store, self.prefix + prefix, self.url + prefix)

    def url_of(self, key: str) -> str:
        """The address of a key; not percent-encoded, as the tools of S3 take it."""
        return self.url + key

    async def head(self, key: str) -> Item:
        """What there is under a key, without its bytes.

        Raises:
            StorageNotFoundError: there is nothing.
            StorageUnavailableError: the service did not answer.
            StorageError: any other failure.
        """
        obstore = library()
        with translated(self.url_of(key)):
            meta = await obstore.head_async(self.store, self.prefix + key)
        return _item(key, meta)

    async def get(self, key: str) -> bytes:
        """The bytes under a key; never a part of them.

        Raises:
            StorageNotFoundError: there is nothing.
            StorageUnavailableError: the service did not answer, or not in full.
            StorageError: any other failure.
        """
        return (await self.get_with_etag(key))[0]

    async def get_with_etag(self, key: str) -> tuple[bytes, str]:
        """``get`` with what ``put_if`` needs to replace just these bytes.

        Raises:
            StorageNotFoundError: there is nothing.
            StorageUnavailableError: the service did not answer, or not in full.
            StorageError: any other failure.
        """
        obstore = library()
        with translated(self.url_of(key)):
            result = await obstore.get_async(self.store, self.prefix + key)
            item = _item(key, result.meta)
            data = bytes(await result.buffer_async())
        if len(data) != item.size:
            raise Unavailable(self.url_of(key), f"{len(data)} of {item.size} bytes came")
        return data, item.etag

    async def digest(self, key: str) -> tuple[str, str]:
        """Etag and SHA-256 of the bytes under a key, which are not kept.

        Raises:
            StorageNotFoundError: there is nothing.
            StorageUnavailableError: the service did not answer, or not in full.
            StorageError: any other failure.
        """
        obstore = library()
        found, size = hashlib.sha256(), 0
        with translated(self.url_of(key)):
            result = await obstore.get_async(self.store, self.prefix + key)
            item = _item(key, result.meta)
            async for chunk in result.stream(min_chunk_size=PART):
                await asyncio.to_thread(found.update, chunk)
                size += len(chunk)
        if size != item.size:
            raise Unavailable(self.url_of(key), f"{size} of {item.size} bytes came")
        return item.etag, found.hexdigest()

    async def get_to_file(self, key: str, path: Path) -> Item:
        """Bring the bytes under a key into a file, whole or not at all, in parts when they are many.

        The file gets mode 0600; the folder must exist and is trusted.

        Raises:
            StorageNotFoundError: there is nothing.
            StorageUnavailableError: the service did not answer, or not in full.
            StorageError: any other failure, such as a full disk.
        """
        temporary = path.with_name(f".conjure-{secrets.token_hex(8)}.tmp")
        with disk_errors(self.url_of(key)):
            fd = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                try:
                    item = await self.get_to_fd(key, fd)
                    await asyncio.to_thread(os.fsync, fd)
                finally:
                    os.close(fd)
                temporary.rename(path)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
        return item

    async def get_to_fd(self, key: str, fd: int, listener: Listener | None = None) -> Item:
        """``get_to_file`` into an open, empty file, which holds rubbish when this raises.

        A download that breaks off goes on where it stopped, as long as each try brings something.

        Args:
            key: of what.
            fd: the file.
            listener: hears each piece, once and in order, in a thread.
        """
        item, offset = await self._get_from(key, fd, None, 0, listener)
        while offset < item.size:
            before = offset
            item, offset = await self._get_from(key, fd, item, offset, listener)
            if offset == before:
                raise Unavailable(self.url_of(key), f"{offset} of {item.size} bytes came")
        return item

    async def _get_from(
        self, key: str, fd: int, item: Item | None, offset: int, listener: Listener | None
    ) -> tuple[Item, int]:
        """Write what comes from ``offset`` on; returns where it broke off, or the end."""
        obstore = library()
        where = self.url_of(key)
        options: Any = None
        if item is not None:
            options = {"range": {"offset": offset}}
            if item.etag:
                options["if_match"] = _quoted(item.etag)  # else parts of two versions could be mixed
        writer = FileWriter(fd, offset, listener, where)
        try:
            async with contextlib.aclosing(writer):
                with translated(where):
                    result = await obstore.get_async(self.store, self.prefix + key, options=options)
                    item = item or _item(key, result.meta)
                    async for chunk in result.stream(min_chunk_size=PIECE):
                        await writer.write(chunk)
        except StorageConflictError as error:
            raise Unavailable(where, "it was replaced while it was read") from error
        except Unavailable:
            if item is None or writer.offset == 0:
                raise
        if writer.offset > item.size:
            raise Unavailable(where, f"{writer.offset} bytes came in place of {item.size}")
        return item, writer.offset

    async def put(self, key: str, data: bytes | Path, *, content_type: str | None = None) -> str:
        """Keep bytes, or those of a file, under a key, whoever wrote there before; returns the new etag.

        Raises:
            StorageUnavailableError: the service did not answer; nothing or all of it was kept.
            StorageError: any other failure.
        """
        return await self._put(key, data, None, content_type)

    async def put_new(
        self,
        key: str,
        data: bytes | Path,
        *,
        content_type: str | None = None,
        repeat: bool = False,
    ) -> str:
        """Keep bytes under a key that has none yet; returns the new etag.

        The conflict may be with oneself: when the answer to an earlier try was lost.

        Args:
            repeat: the same bytes found there count as written.

        Raises:
            StorageConflictError: there is something (and, with ``repeat``, something else).
            StorageUnavailableError: the service did not answer; nothing or all of it was kept.
            StorageError: any other failure.
        """
        try:
            return await self._put(key, data, "create", content_type)
        except StorageConflictError:
            if repeat and (etag := await self._etag_if_same(key, data)):
                return etag
            raise

    async def put_if(
        self, key: str, data: bytes | Path, etag: str, *, content_type: str | None = None
    ) -> str:
        """Replace just the bytes that ``etag`` stands for; returns the new etag.

        The conflict may be with oneself here, too. A service that has no such operation is asked what is
        there, and told to replace it in a second request.

        Raises:
            StorageConflictError: there is something else, or nothing; nothing was changed.
            StorageUnavailableError: the service did not answer; nothing or all of it was kept.
            StorageError: any other failure.
        """
        try:
            return await self._put(key, data, {"e_tag": _quoted(etag)}, content_type)
        except StorageNotFoundError as error:
            raise StorageConflictError(self.url_of(key), "somebody else deleted it") from error
        except UnsupportedError:
            with contextlib.suppress(StorageNotFoundError):
                if (await self.head(key)).etag == etag:
                    return await self.put(key, data, content_type=content_type)
            raise StorageConflictError(self.url_of(key), "somebody else changed it") from None

    async def _put(self, key: str, data: bytes | Path, mode: Any, content_type: str | None) -> str:
        obstore = library()
        size = await self._size(data)
        attributes: Any = {"Content-Type": content_type} if content_type and self._typed else None
        with translated(self.url_of(key)):
            result = await obstore.put_async(
                self.store,
                self.prefix + key,
                data,
                attributes=attributes,
                mode=mode,
                chunk_size=max(PART, size // _MOST_PARTS + 1),
                max_concurrency=PARTS_AT_ONCE,
            )
        return _plain(result["e_tag"])

    async def _size(self, data: bytes | Path) -> int:
        if isinstance(data, bytes):
            return len(data)
        with disk_errors(str(data)):
            return (await asyncio.to_thread(data.stat)).st_size

    async def _etag_if_same(self, key: str, data: bytes | Path) -> str | None:
        with contextlib.suppress(StorageNotFoundError):
            if (await self.head(key)).size == await self._size(data):
                etag, there = await self.digest(key)
                if there == await asyncio.to_thread(_digest, data):
                    return etag
        return None

    async def delete(self, key: str) -> None:
        """Delete a key; nothing happens when it is not there.

        Raises:
            StorageUnavailableError: the service did not answer.
            StorageError: any other failure.
        """
        obstore = library()
        with contextlib.suppress(StorageNotFoundError), translated(self.url_of(key)):
            await obstore.delete_async(self.store, self.prefix + key)

    async def delete_many(self, keys: Iterable[str]) -> None:
        """Delete keys, many with one request where the service can.

        Raises:
            StorageUnavailableError: the service did not answer; some may be gone.
            StorageError: any other failure.
        """
        obstore = library()
        paths = [self.prefix + key for key in keys]
        if not paths:
            return
        try:
            with translated(self.url):
                await obstore.delete_async(self.store, paths)
        except StorageNotFoundError:  # one was gone already, and others may not have been tried
            for path in paths:
                await self.delete(path.removeprefix(self.prefix))

    async def list(self, prefix: str = "") -> list[Item]:
        """All keys that begin with ``prefix``, sorted.

        Raises:
            StorageUnavailableError: the service did not answer.
            StorageError: any other failure.
        """
        obstore = library()
        folder = self.prefix + prefix.rpartition("/")[0]  # stores list whole folders only
        with translated(self.url_of(prefix)):
            found = await obstore.list(self.store, folder.rstrip("/") or None).collect_async()
        keys = ((meta["path"].removeprefix(self.prefix), meta) for meta in found)
        return sorted(_item(key, meta) for key, meta in keys if key.startswith(prefix))

    async def enforces_conditions(self) -> bool:
        """Whether the service keeps to ``put_new`` and ``put_if``; some take them and overwrite all the same.

        Writes a key of its own and deletes it.

        Raises:
            StorageUnavailableError: the service did not answer.
            StorageError: any other failure.
        """
        key = f".conjure-{secrets.token_hex(8)}.probe"
        try:
            etag = await self.put_new(key, b"1")
            try:
                await self.put_new(key, b"2")
            except StorageConflictError:
                pass
            else:
                return False
            try:
                await self.put_if(key, b"3", etag[::-1] + "0")
            except StorageConflictError:
                return True
            return False
        finally:
            with contextlib.suppress(StorageError):
                await self.delete(key)


def _item(key: str, meta: Any) -> Item:
    return Item(key, meta["size"], _plain(meta["e_tag"]), meta["last_modified"])


def _plain(etag: str | None) -> str:
    """Without its quotes, which some services leave out in listings and some do not."""
    return (etag or "").strip('"')


def _quoted(etag: str) -> str:
    return etag if etag.startswith("W/") else f'"{etag}"'


def _digest(data: bytes | Path) -> str:
    if isinstance(data, bytes):
        return hashlib.sha256(data).hexdigest()
    with data.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
