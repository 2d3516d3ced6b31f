"""Taking note of a session's ``work`` folder at the start and end of each turn, so that it can be put back.

The bytes of each file go to the session's blobs, once for each content. A file whose inode, size and times
are those of the last look is not read again.
"""

from __future__ import annotations

import hashlib
import os
import stat
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from ...artifacts.blobs import BlobStore
from ...errors import ConjureError, SessionError, ToolError
from ...paths import open_beneath
from ..trees import Signature, signature
from . import worktree
from .manifest import Entry, Skipped, Snapshot, decode, encode

#: Digest and size of a file, and why its bytes could not be kept if they could not.
_Digest: TypeAlias = tuple[str, int, str | None]

#: More new files than this are read by several threads.
_FEW, _WORKERS = 8, 8

#: A file up to this many bytes is read at once.
_SMALL = 1 << 20


@dataclass(frozen=True, slots=True)
class _Known:
    """A file as it was read last; ``kept`` when its bytes are a blob."""

    signature: Signature
    sha256: str
    kept: bool


class Snapshots:
    """Takes and reads the snapshots of one session. Everything here blocks; call it in a thread.

    Args:
        root: the session's ``work`` folder.
        blobs: where bytes and manifests go.
        limit: most bytes of files that one snapshot keeps. Files under ``outputs/`` are kept first, then
            ``uploads/``, then the rest; in each the smallest first.

    Attributes:
        reads: how many files were read so far.
    """

    def __init__(self, root: Path, blobs: BlobStore, limit: int) -> None:
        self.root = root
        self.blobs = blobs
        self.limit = limit
        self.reads = 0
        self._known: dict[str, _Known] = {}
        self._last: Snapshot | None = None
        self._lock = threading.Lock()

    def take(self) -> Snapshot:
        """What the folder holds now, its bytes kept as far as the limit goes.

        What cannot be read or kept is left out and told in ``skipped``.

        Raises:
            SessionError: the manifest cannot be kept.
        """
        with self._lock:
            files, unseen, skipped = self._survey(keep=True)
            last = self._last
            if last is not None and (last.files, last.unseen, last.skipped) == (files, unseen, skipped):
                return last
            try:
                manifest = self.blobs.put(encode(files, unseen))
            except (ConjureError, OSError) as error:
                raise SessionError(
                    f"What {self.root} holds cannot be kept, so it cannot be undone later: {error}"
                ) from error
            self._last = Snapshot(manifest, files, unseen, skipped)
            return self._last

    def look(self) -> Snapshot:
        """What ``take`` would give; keeps nothing."""
        with self._lock:
            files, unseen, skipped = self._survey(keep=False)
            return Snapshot(hashlib.sha256(encode(files, unseen)).hexdigest(), files, unseen, skipped)

    def load(self, manifest: str) -> Snapshot:
        """A snapshot that was taken earlier.

        Raises:
            SessionError: it was not kept, or is damaged.
        """
        try:
            return decode(manifest, self.blobs.read(manifest))
        except (ConjureError, OSError, ValueError) as error:
            raise SessionError(f"The snapshot {manifest[:12]} cannot be read: {error}") from error

    def unchanged(self, path: str, status: os.stat_result, entry: Entry | None) -> bool:
        """Whether a file, as its status says now, is what the last look found."""
        known = self._known.get(path)
        if known is not None and known.signature == signature(status):
            return entry is not None and known.sha256 == entry.sha256
        try:
            return entry is not None and self._digest(path, status, keep=False)[0] == entry.sha256
        except (ConjureError, OSError):
            return False

    def _survey(self, *, keep: bool) -> tuple[dict[str, Entry], tuple[str, ...], tuple[Skipped, ...]]:
        found = worktree.look(self.root)
        chosen = _within(found.files, self.limit)
        skipped = [Skipped(folder, 0, "could not be looked into to its end") for folder in found.unseen]
        files: dict[str, Entry] = {}
        told = f"does not fit in undo_limit ({self.limit:,} bytes)"
        digests = self._digests({path: found.files[path] for path in chosen}, keep=keep)
        for path in sorted(found.files):
            status, mode = found.files[path], stat.S_IMODE(found.files[path].st_mode) & 0o777
            sha256, size, problem = digests.get(path, ("", status.st_size, told))
            if problem is not None:
                skipped.append(Skipped(path, size, problem))
            files[path] = Entry(sha256, mode, size, *(() if sha256 else (status.st_mtime_ns,)))
        self._known = {path: known for path, known in self._known.items() if path in files}
        return files, found.unseen, tuple(skipped)

    def _digests(self, files: Mapping[str, os.stat_result], *, keep: bool) -> dict[str, _Digest]:
        """Digest, size and problem of each file."""

        def one(path: str) -> _Digest:
            try:
                return self._digest(path, files[path], keep=keep)
            except (ConjureError, OSError) as error:
                return "", files[path].st_size, f"could not be read ({_why(error)})"

        found = {path: (k.sha256, files[path].st_size, None) for path, k in self._trusted(files, keep=keep)}
        new = [path for path in files if path not in found]
        if len(new) <= _FEW:
            return {**found, **{path: one(path) for path in new}}
        # Each waits for the disk, as a rule; together they wait once.
        with ThreadPoolExecutor(_WORKERS, "conjure-snapshot") as pool:
            return {**found, **dict(zip(new, pool.map(one, new), strict=True))}

    def _trusted(self, files: Mapping[str, os.stat_result], *, keep: bool) -> Iterator[tuple[str, _Known]]:
        """The files that need not be read, with what is known of them."""
        for path, status in files.items():
            known = self._known.get(path)
            if known is not None and known.signature == signature(status) and (known.kept or not keep):
                yield path, known

    def _digest(self, path: str, status: os.stat_result, *, keep: bool) -> _Digest:
        fd = open_beneath(self.root, path, os.O_RDONLY)
        try:
            before = os.fstat(fd)
            if not os.path.samestat(before, status):
                raise ToolError("something else took its place")
            self.reads += 1
            sha256, size, problem = _read(fd, before, self.blobs if keep else None)
            after = os.fstat(fd)
        finally:
            os.close(fd)
        if signature(before) == signature(after) and worktree.settled(after):
            self._known[path] = _Known(signature(after), sha256, keep and problem is None)
        else:
            self._known.pop(path, None)
        return sha256, size, problem


def _read(fd: int, status: os.stat_result, blobs: BlobStore | None) -> _Digest:
    """Digest and size of an open file, its bytes kept when there are blobs; and why they could not be."""
    small = os.read(fd, _SMALL) if status.st_size < _SMALL else None
    if small is not None and len(small) < _SMALL:
        sha256, size = hashlib.sha256(small).hexdigest(), len(small)
    else:
        small = None
        with os.fdopen(os.dup(fd), "rb", buffering=0) as stream:
            stream.seek(0)
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
            size = stream.tell()
            stream.seek(0)
    if blobs is None or blobs.has(sha256):
        return sha256, size, None
    try:
        if small is not None:
            blobs.put(small)
        else:
            sha256, size = blobs.put_file(fd, limit=size)
    except (ConjureError, OSError) as error:
        return sha256, size, f"could not be kept ({_why(error)})"
    return sha256, size, None


def _why(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _within(files: Mapping[str, os.stat_result], limit: int) -> set[str]:
    """The files that fit in ``limit`` bytes together, the most important first."""
    if sum(status.st_size for status in files.values()) <= limit:
        return set(files)
    chosen, room = set(), limit
    for path in sorted(files, key=lambda path: (_rank(path), files[path].st_size, path)):
        if files[path].st_size <= room:
            chosen.add(path)
            room -= files[path].st_size
    return chosen


def _rank(path: str) -> int:
    return {"outputs": 0, "uploads": 1}.get(path.partition("/")[0], 2)
