"""A session from a remote storage in a folder of this machine: its blobs first, then its log, whole.

What comes from outside is checked before it counts: names and sizes of the listing, the digest of each
blob, the lines of each piece. A crash on the way leaves the local log as it was, and blobs that need not be
brought again.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path

from ...errors import StorageError, StorageNotFoundError, TimelineError, ToolError
from ...paths import make_private_dir
from ...storage.bucket import Bucket
from ..aside import keep_aside
from ..durable import flush_file, flush_folder
from ..lock import WriterLock
from ..log import LOG
from ..recovery import Line
from .comparing import Standing, compare, diverged
from .contents import Mirrored, contents
from .keys import SEGMENT_SIZE, Listing, Segment, blob_key
from .naming import BlobsOf, blobs_of, listed_in, named_in
from .pieces import LocalLog, check_piece, cut, measure, open_log
from .together import each
from .uploads import file_digest, file_size

#: Where blobs lie until their digest is checked, in the session's folder.
_ARRIVING = ".arriving"

#: Blobs up to this many bytes are brought in one request.
_SMALL = 1024 * 1024


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """What was brought.

    Attributes:
        folder: the session's folder.
        lines: lines of the log that came.
        size: bytes of the log now.
        blobs: how many blobs came.
        blob_bytes: their bytes.
        kept_local: whether the log here had more than the remote one and was left as it is.
        missing: digests that the log names and that are neither here nor there.
        damaged: digests whose remote bytes are others; they were not kept.
    """

    folder: Path
    lines: int
    size: int
    blobs: int
    blob_bytes: int
    kept_local: bool
    missing: tuple[str, ...]
    damaged: tuple[str, ...]


async def restore(storage: Mirrored, folder: Path, *, blobs_of: BlobsOf = blobs_of) -> RestoreReport:
    """Bring a session into a folder, or what is new of it there; nothing local is overwritten.

    Takes no lease: whoever goes on with the session does.

    Args:
        storage: the session's.
        folder: the session's on this machine; made when missing (0700).
        blobs_of: says which blobs a block names.

    Raises:
        StorageNotFoundError: there is no such session.
        StorageConflictError: the log here has other lines than the remote one.
        StorageError: what is there is damaged or none of ours, or the disk is full.
        StorageUnavailableError: the service did not answer; what came is not brought again.
        SessionLockedError: the session is in use on this machine.
        TimelineError: the folder cannot be read or written.
    """
    bucket = storage.bucket
    listing = await contents(bucket)
    if not listing.segments:
        raise StorageNotFoundError(bucket.url, "there is no session of that name")
    try:
        folder = await asyncio.to_thread(_make, folder)
    except (ToolError, OSError) as error:
        raise TimelineError(folder, f"cannot be made: {error}") from error
    lock = await asyncio.to_thread(WriterLock, folder)
    try:
        return await _Restoring(bucket, folder, listing, blobs_of).run()
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        raise TimelineError(folder / LOG, f"cannot be written ({error.strerror or error})") from error
    finally:
        lock.release()
        await asyncio.to_thread(shutil.rmtree, folder / _ARRIVING, ignore_errors=True)


class _Restoring:
    """One run of ``restore``."""

    def __init__(self, bucket: Bucket, folder: Path, listing: Listing, ask: BlobsOf) -> None:
        self._bucket = bucket
        self._folder = folder
        self._listing = listing
        self._ask = ask
        self._blobs = folder / "blobs"
        self._log = folder / LOG
        self._brought: list[int] = []
        self._damaged: list[str] = []

    async def run(self) -> RestoreReport:
        local = await asyncio.to_thread(measure, self._log)
        standing = await compare(self._bucket, self._log, local.size, self._listing)
        if standing.diverged:
            raise diverged(self._bucket.url, self._folder, standing.common)
        wanted = await asyncio.to_thread(self._wanted)
        await asyncio.to_thread(self._must_fit, standing, sum(map(self._listing.blobs.__getitem__, wanted)))
        await each(wanted, self._bring)
        await asyncio.to_thread(flush_folder, self._blobs)
        lines = 0
        if standing.remote > standing.common:
            lines = await self._bring_log(local, standing)
        size = max(standing.remote, local.size)
        return RestoreReport(
            folder=self._folder,
            lines=lines,
            size=size,
            blobs=len(self._brought),
            blob_bytes=sum(self._brought),
            kept_local=local.size > standing.remote,
            missing=tuple(await asyncio.to_thread(self._missing, size)),
            damaged=tuple(sorted(self._damaged)),
        )

    def _wanted(self) -> list[str]:
        return [
            digest for digest, size in self._listing.blobs.items() if file_size(self._blobs / digest) != size
        ]

    def _must_fit(self, standing: Standing, blobs: int) -> None:
        needed = blobs + (standing.remote if standing.remote > standing.common else 0)
        free = shutil.disk_usage(self._folder).free
        if needed > free:
            raise StorageError(
                self._bucket.url,
                f"the session needs {needed:,} bytes and {free:,} are free at {self._folder}; make room, or "
                "choose another folder",
            )

    async def _bring(self, digest: str) -> None:
        arriving = self._folder / _ARRIVING / digest
        size = self._listing.blobs[digest]
        data = None
        if size <= _SMALL:
            data = await self._bucket.get(blob_key(digest))
        else:
            await self._bucket.get_to_file(blob_key(digest), arriving)
        if await asyncio.to_thread(_settle, data, arriving, self._blobs / digest):
            self._brought.append(size)
        else:
            self._damaged.append(digest)

    async def _bring_log(self, local: LocalLog, standing: Standing) -> int:
        """Put the log together beside the old one, and in its place at once; returns how many lines came."""
        temporary = self._folder / f".{LOG}.{secrets.token_hex(8)}"
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            try:
                os.fchmod(fd, 0o600)
                kept, rest = _split(self._listing.segments, standing.common)
                await asyncio.to_thread(_copy, self._log, fd, kept)
                lines = await self._append(fd, rest)
                await asyncio.to_thread(flush_file, fd)
            finally:
                os.close(fd)
            await asyncio.to_thread(self._replace_log, temporary, local)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        return lines

    async def _append(self, fd: int, segments: list[Segment]) -> int:
        """Write pieces in their order; the next travels while one is written."""
        lines = 0
        ahead: asyncio.Task[bytes] | None = None
        try:
            for number, segment in enumerate(segments):
                data = await (ahead or self._bucket.get(segment.key))
                ahead = None
                if number + 1 < len(segments):
                    ahead = asyncio.create_task(self._bucket.get(segments[number + 1].key))
                lines += check_piece(self._bucket.url, segment, data)
                await asyncio.to_thread(_write_all, fd, data)
        finally:
            if ahead is not None:
                ahead.cancel()
        return lines

    def _replace_log(self, temporary: Path, local: LocalLog) -> None:
        if local.torn:
            fd = open_log(self._log)
            try:
                keep_aside(self._folder, fd, [Line(local.size, local.torn, b"", ended=False)])
            finally:
                os.close(fd)
        temporary.rename(self._log)
        flush_folder(self._folder)
        flush_folder(self._folder.parent)

    def _missing(self, size: int) -> list[str]:
        named: set[str] = set()
        at = 0
        while at < size and (piece := cut(self._log, at, size)):
            direct, lists = named_in(piece, self._ask)
            named |= direct.union(*(listed_in(self._blobs, digest) for digest in lists))
            at += len(piece)
        return sorted(digest for digest in named if file_size(self._blobs / digest) is None)


def _make(folder: Path) -> Path:
    folder = folder.absolute()
    shutil.rmtree(folder / _ARRIVING, ignore_errors=True)
    for path in (folder, folder / "blobs", folder / _ARRIVING):
        make_private_dir(path)
    return folder


def _settle(data: bytes | None, arriving: Path, path: Path) -> bool:
    """Put a blob in its place, unless its bytes are not those of its name.

    Args:
        data: the bytes; None when they are in ``arriving`` already.
        arriving: a place on the same disk.
        path: where it goes; its name is the digest.
    """
    digest = file_digest(arriving) if data is None else hashlib.sha256(data).hexdigest()
    if digest != path.name:
        return False
    if data is not None:
        fd = os.open(arriving, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.fchmod(fd, 0o600)
            _write_all(fd, data)
            flush_file(fd)
        finally:
            os.close(fd)
    arriving.rename(path)
    return True


def _split(segments: list[Segment], common: int) -> tuple[int, list[Segment]]:
    """How many bytes of the local log are whole pieces, and the pieces that follow."""
    at = 0
    for number, segment in enumerate(segments):
        if at + segment.size > common:
            return at, segments[number:]
        at += segment.size
    return at, []


def _copy(path: Path, fd: int, length: int) -> None:
    if not length:
        return
    source = open_log(path)
    try:
        at = 0
        while at < length:
            data = os.pread(source, min(SEGMENT_SIZE, length - at), at)
            if not data:
                raise TimelineError(path, "became shorter while it was read")
            _write_all(fd, data)
            at += len(data)
    finally:
        os.close(source)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
