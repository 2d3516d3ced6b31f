"""What waits to be sent, on disk and in order: the folder of the queue.

``log`` holds a record for each operation, with the bytes when they are few, and one for each that the service
has confirmed; larger bytes lie in files beside it, named by the operation's number. Operations that come at
the same time reach the disk together. When nothing waits the log begins anew. One process at a time has the
folder, by a lock that ends with it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..errors import StorageConflictError, StorageError, ToolError
from ..paths import make_private_dir, write_atomic
from .entry import Entry, dumps
from .files import Folder, copy_bytes
from .keys import QUEUE_FOLDER
from .records import Damaged, Record, append, data_offset, pack, scan

#: Bytes up to this many are kept in the log itself.
INLINE = 64 * 1024

#: Bytes of a log above which what is done is taken out of it, once that is most of it.
LONG = 16 * 1024 * 1024

#: Version of the records; others are left alone, with an error.
FORMAT = 1


class Journal:
    """The queue's folder. Its methods block: call them in a thread, one at a time but for ``content``."""

    def __init__(self, files: Folder, target: str) -> None:
        """Name the folder; nothing is touched yet.

        Args:
            files: the local copy that the queue lies in.
            target: address of where it is sent to; operations for another one are never sent there.
        """
        self.files = files
        self.folder = files.root / QUEUE_FOLDER
        self._target = target
        self._lock: int | None = None
        self._log = -1
        self._end = 0
        self._places: dict[int, tuple[int, int]] = {}
        self._live: dict[int, Entry] = {}
        self._guard = threading.Lock()

    def acquire(self) -> bool:
        """Take the folder for this process; False when another has it.

        Raises:
            StorageError: it cannot be used, or holds operations for another address.
        """
        if self._lock is not None:
            return True
        with self._errors():
            make_private_dir(self.folder)
            lock = _open(self.folder / "lock", os.O_RDWR | os.O_CREAT)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                return False
            self._lock = lock
        return True

    def release(self) -> None:
        """Let another process have the folder."""
        if self._log >= 0:
            os.close(self._log)
            self._log = -1
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def entries(self) -> list[Entry]:
        """What waits, in order; what a crash left half made is removed.

        Raises:
            StorageConflictError: it waits for another address.
            StorageError: it cannot be read; nothing new may overtake it.
        """
        with self._errors():
            try:
                records, self._end = scan(self.folder / "log")
                self._take(records)
            except (Damaged, TypeError, KeyError, StorageError) as error:
                raise StorageError(str(self.folder / "log"), f"it cannot be read: {error}") from error
            self._check_target()
            if self._log < 0:
                self._log = _open(self.folder / "log", os.O_RDWR | os.O_CREAT)
                _sync_folder(self.folder)
            os.ftruncate(self._log, self._end)
            kept = {self._spool(entry).name for entry in self._live.values()}
            for path in self.folder.iterdir():
                if (path.suffix == ".data" and path.name not in kept) or path.suffix == ".tmp":
                    path.unlink()
            return [*self._live.values()]

    def _take(self, records: Sequence[Record]) -> None:
        self._live.clear()
        self._places.clear()
        for values, offset, size in records:
            if values.pop("format", None) != FORMAT:
                raise TypeError("another version of this package wrote it")
            if "done" in values:
                self._live.pop(values["done"], None)
            else:
                entry = Entry.from_json(values)
                self._live[entry.seq] = entry
                self._places[entry.seq] = offset, size

    def _check_target(self) -> None:
        path = self.folder / "target"
        with contextlib.suppress(FileNotFoundError):
            before = path.read_text(encoding="utf-8")
            if before == self._target:
                return
            if self._live:
                self.release()
                reason = f"writes for {before} wait here; send or remove them before going to {self._target}"
                raise StorageConflictError(str(self.folder), reason)
        write_atomic(path, self._target.encode())

    def spool(self, entry: Entry, source: int) -> None:
        """Keep the bytes of an open file beside the log; its size and digest are filled in.

        Raises:
            StorageError: they cannot be kept; nothing of them is left.
        """
        path = self._spool(entry)
        with self._errors():
            fd = _open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            try:
                try:
                    if entry.sha256:
                        _clone(source, fd)
                    else:
                        entry.sha256 = copy_bytes(source, fd)
                    entry.size = os.fstat(fd).st_size
                    os.fsync(fd)
                finally:
                    os.close(fd)
            except BaseException:
                path.unlink(missing_ok=True)
                raise
            _sync_folder(self.folder)

    def write(self, added: Sequence[Entry], done: Sequence[Entry]) -> None:
        """Keep new entries, on disk when this returns, and note those that are done, which may take longer.

        Raises:
            StorageError: the new ones cannot be kept, none of them.
        """
        lines = [(entry, dumps({"format": FORMAT, **entry.to_json()})) for entry in added]
        notes = [pack(dumps({"format": FORMAT, "done": entry.seq})) for entry in done]
        packed = [pack(line, _inline(entry)) for entry, line in lines]
        with self._errors(), self._guard:
            try:
                place = append(self._log, b"".join([*notes, *packed]), sync=bool(added))
            except BaseException:
                for entry in added:
                    self._spool(entry).unlink(missing_ok=True)
                raise
            self._end = place + sum(map(len, notes)) + sum(map(len, packed))
            place += sum(map(len, notes))
            for (entry, line), record in zip(lines, packed, strict=True):
                self._places[entry.seq] = place + data_offset(line), len(_inline(entry))
                self._live[entry.seq] = entry
                place += len(record)
            self._forget(done)

    def _forget(self, done: Sequence[Entry]) -> None:
        for entry in done:
            self._live.pop(entry.seq, None)
            self._places.pop(entry.seq, None)
            if entry.held == "spool":
                self._spool(entry).unlink(missing_ok=True)
        if not self._live:
            if self._end:
                os.ftruncate(self._log, 0)
                self._end = 0
        elif self._end > LONG and sum(size for _, size in self._places.values()) < self._end // 2:
            self._shorten()

    def _shorten(self) -> None:
        """Write the log anew with only what waits."""
        content = b""
        for entry in self._live.values():
            line = dumps({"format": FORMAT, **entry.to_json()})
            data = os.pread(self._log, self._places[entry.seq][1], self._places[entry.seq][0])
            self._places[entry.seq] = len(content) + data_offset(line), len(data)
            content += pack(line, data)
        path = self.folder / "log"
        write_atomic(path, content)
        os.close(self._log)
        self._log = _open(path, os.O_RDWR)
        self._end = len(content)

    @contextlib.contextmanager
    def content(self, entry: Entry) -> Iterator[bytes | Path]:
        """The bytes of a put: themselves when they are few, else a path that is good in the block.

        Raises:
            StorageError: they are gone, or are not those that were written.
        """
        with self._errors():
            if entry.held == "inline":
                yield entry.content if entry.content is not None else self._bytes_of(entry)
            elif entry.held == "spool":
                yield self._spool(entry)
            else:
                with self.files.opened(entry.key) as fd:
                    if os.fstat(fd).st_size != entry.size:
                        reason = "it was changed on disk before it was sent; write it again"
                        raise StorageError(entry.key, reason)
                    # An object store's own reader is the fastest there is, and nobody can swap this name.
                    yield Path(f"/dev/fd/{fd}")

    def _bytes_of(self, entry: Entry) -> bytes:
        with self._guard:
            offset, size = self._places[entry.seq]
            return os.pread(self._log, size, offset)

    def _spool(self, entry: Entry) -> Path:
        return self.folder / f"{entry.seq:012d}.data"

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except StorageError:
            raise
        except ToolError as error:
            raise StorageError(str(self.folder), error.message) from error
        except OSError as error:
            raise StorageError(str(self.folder), error.strerror or str(error)) from error


def hold(entry: Entry, data: bytes) -> None:
    """Keep bytes with the entry itself."""
    entry.held, entry.content, entry.size = "inline", data, len(data)
    entry.sha256 = entry.sha256 or hashlib.sha256(data).hexdigest()


def _inline(entry: Entry) -> bytes:
    return entry.content or b"" if entry.held == "inline" else b""


def _open(path: Path, flags: int) -> int:
    fd = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    os.fchmod(fd, 0o600)  # whatever the umask
    return fd


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _clone(source: int, target: int) -> None:
    """Copy by the kernel, which shares the blocks where the file system can; else by hand."""
    size, offset = os.fstat(source).st_size, 0
    if hasattr(os, "copy_file_range"):
        with contextlib.suppress(OSError):
            while offset < size:
                copied = os.copy_file_range(source, target, size - offset, offset, offset)
                if not copied:
                    break
                offset += copied
    if offset < size:
        os.ftruncate(target, 0)
        os.lseek(target, 0, os.SEEK_SET)
        copy_bytes(source, target)
