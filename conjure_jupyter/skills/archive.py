"""``.skill`` archives: checked before a byte is written, extracted whole or not at all.

The first bad entry refuses the archive. The standard library's ``extractall`` is not used: it mends ``../``
in silence, leaves what it wrote before a bad checksum, and on Python 3.11 reads entries that overlap.
"""

from __future__ import annotations

import os
import re
import stat
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from ..errors import SkillArchiveError
from .reading import ENTRIES
from .resources import IGNORED_FOLDERS, ignored

#: Limits of an archive: its own bytes, its files, their bytes together, and how much smaller packed.
MAX_ARCHIVE = 100 * 1024 * 1024
MAX_ENTRIES = 5_000
MAX_TOTAL = 500 * 1024 * 1024
MAX_RATIO = 200
#: Below this many bytes no ratio is suspicious: a short file of blanks packs 1:1000.
RATIO_FROM = 10 * 1024 * 1024
#: Most bytes of the directory at the archive's end, read at once by the standard library.
MAX_DIRECTORY = 4 * 1024 * 1024
MAX_NAME = 1_000
MAX_LEVELS = 32

#: Invisible, yet part of words in some scripts and of emoji.
_JOINERS = "\u200c\u200d\ufe0f"
_CHUNK = 256 * 1024
_END = struct.Struct("<4s4H2LH")
_LOCAL = struct.Struct("<4s2B4HL2L2H")
_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})


class Archive:
    """An open archive whose entries have all been checked.

    Attributes:
        files: the entries to extract, by path relative to the skill's folder.
        folder: the name of the archive's top folder; None when SKILL.md lies at its top.
        entry: the name of its SKILL.md.
    """

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        """Check an archive.

        Raises:
            SkillArchiveError: it is damaged or hostile, or is no skill.
        """
        self.path = path
        self._file = file
        self._check_size()
        try:
            self._zip = zipfile.ZipFile(file)
            entries = self._zip.infolist()
            self._check_entries(entries)
            self._check_overlap(entries)
        except (zipfile.BadZipFile, NotImplementedError, struct.error, ValueError, EOFError) as error:
            raise self.refused(f"it is damaged: {error}") from error
        self.folder, self.entry, self.files = self._layout(entries)

    def refused(self, reason: str) -> SkillArchiveError:
        """The error that refuses this archive."""
        return SkillArchiveError(self.path, f"archive refused: {reason}")

    def extract(self, folder: Path) -> None:
        """Write all files into an empty folder; their bytes are counted and their checksums compared.

        Raises:
            SkillArchiveError: an entry is not what it says; some files may have been written.
            OSError: the disk is full, and the like.
        """
        total = 0
        for relative, info in self.files.items():
            target = folder / relative
            target.parent.mkdir(parents=True, exist_ok=True)
            mode = 0o755 if executable(info) else 0o644
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
            with os.fdopen(descriptor, "wb") as out:
                os.fchmod(descriptor, mode)
                for chunk in self._chunks(info):
                    total += len(chunk)
                    if total > MAX_TOTAL:
                        raise self.refused(f"it unpacks to more than {MAX_TOTAL // 1024 // 1024} MiB")
                    out.write(chunk)

    def matches(self, folder: Path) -> bool:
        """Whether a folder still holds exactly what this archive does."""
        for relative, info in self.files.items():
            checksum = size = 0
            try:
                with (folder / relative).open("rb") as file:
                    if bool(os.fstat(file.fileno()).st_mode & 0o100) is not executable(info):
                        return False
                    while chunk := file.read(_CHUNK):
                        checksum, size = zlib.crc32(chunk, checksum), size + len(chunk)
            except OSError:
                return False
            if size != info.file_size or checksum != info.CRC:
                return False
        return sum(len(files) for _, _, files in os.walk(folder)) == len(self.files)

    def head(self) -> bytes:
        """The beginning of its SKILL.md."""
        return next(self._chunks(self.files[self.entry]), b"")

    def _chunks(self, info: zipfile.ZipInfo) -> Iterator[bytes]:
        size = 0
        try:
            with self._zip.open(info) as source:
                while chunk := source.read(_CHUNK):
                    size += len(chunk)
                    yield chunk
        except (
            zipfile.BadZipFile,
            zlib.error,
            EOFError,
            NotImplementedError,
            RuntimeError,
            ValueError,
        ) as error:
            raise self.refused(f"{info.filename!r} is damaged: {error}") from error
        if size != info.file_size:
            raise self.refused(f"{info.filename!r} is not as large as it says")

    def _check_size(self) -> None:
        """Refuse before the standard library reads the directory, which it does at once and whole."""
        size = self._file.seek(0, os.SEEK_END)
        if size > MAX_ARCHIVE:
            raise self.refused(f"it is larger than {MAX_ARCHIVE // 1024 // 1024} MiB")
        self._file.seek(max(0, size - 0xFFFF - _END.size))
        tail = self._file.read()
        start = tail.rfind(b"PK\5\6")
        if start < 0 or len(tail) - start < _END.size:
            raise self.refused("it is no ZIP file")
        _, _, _, _, entries, directory, _, _ = _END.unpack_from(tail, start)
        if entries > MAX_ENTRIES or directory > MAX_DIRECTORY:
            raise self.refused(f"it has more than {MAX_ENTRIES} entries")
        self._file.seek(0)

    def _check_entries(self, entries: list[zipfile.ZipInfo]) -> None:
        if len(entries) > MAX_ENTRIES:
            raise self.refused(f"it has more than {MAX_ENTRIES} entries")
        seen: dict[str, bool] = {}
        total = 0
        for info in entries:
            reason = bad_name(info) or _bad_kind(info)
            if reason is None:
                reason = _collision(info, seen)
            if reason is not None:
                raise self.refused(f"entry {info.orig_filename!r}: {reason}")
            total += info.file_size
        packed = self._file.seek(0, os.SEEK_END)
        if total > MAX_TOTAL:
            raise self.refused(f"it unpacks to more than {MAX_TOTAL // 1024 // 1024} MiB")
        if total > RATIO_FROM and total > packed * MAX_RATIO:
            raise self.refused(f"it unpacks to more than {MAX_RATIO} times its size")

    def _check_overlap(self, entries: list[zipfile.ZipInfo]) -> None:
        """No two entries may share bytes: that is how 40 KB unpack to gigabytes."""
        end = 0
        for info in sorted(entries, key=lambda entry: entry.header_offset):
            if info.header_offset < end:
                raise self.refused(f"entry {info.filename!r} overlaps another")
            self._file.seek(info.header_offset)
            header = self._file.read(_LOCAL.size)
            magic, *_, name_length, extra_length = _LOCAL.unpack(header)
            if magic != b"PK\3\4":
                raise self.refused(f"entry {info.filename!r} does not begin where it says")
            end = info.header_offset + _LOCAL.size + name_length + extra_length + info.compress_size
        if end > self._zip.start_dir:
            raise self.refused("an entry reaches into the directory")

    def _layout(self, entries: list[zipfile.ZipInfo]) -> tuple[str | None, str, dict[str, zipfile.ZipInfo]]:
        files = {
            PurePosixPath(info.filename): info
            for info in entries
            if not info.is_dir() and not _is_junk(info.filename)
        }
        for entry in ENTRIES:
            if PurePosixPath(entry) in files:
                return None, entry, {str(path): info for path, info in files.items()}
        tops = {path.parts[0] for path in files}
        top = next(iter(tops), "")
        for entry in ENTRIES:
            if len(tops) == 1 and PurePosixPath(top, entry) in files:
                return top, entry, {str(path.relative_to(top)): info for path, info in files.items()}
        raise self.refused("there is no SKILL.md at its top or in its only folder")


def executable(info: zipfile.ZipInfo) -> bool:
    """Whether an entry was packed with an executable bit."""
    return bool(info.create_system == 3 and (info.external_attr >> 16) & 0o111)


def bad_name(info: zipfile.ZipInfo) -> str | None:
    """What is wrong with an entry's name, if anything."""
    name = info.orig_filename
    parts = name.removesuffix("/").split("/")
    rules = {
        "its name is too long": len(name) > MAX_NAME or len(parts) > MAX_LEVELS,
        "a part of its path is too long": any(len(part.encode("utf-8", "replace")) > 255 for part in parts),
        "its name holds a control or invisible character": not all(
            c.isprintable() or c in _JOINERS for c in name
        ),
        "its path is absolute": name.startswith("/"),
        "its path holds a backslash": "\\" in name,
        "its path names a drive": re.match(r"[A-Za-z]:", name) is not None,
        "its path holds an empty part, '.' or '..'": any(part in {"", ".", ".."} for part in parts),
    }
    return next((reason for reason, broken in rules.items() if broken), None)


def _bad_kind(info: zipfile.ZipInfo) -> str | None:
    if info.flag_bits & 0x1 or info.flag_bits & 0x40:
        return "it is encrypted"
    if info.compress_type not in _METHODS:
        return "it is packed by a method other than deflate"
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind == stat.S_IFLNK:
        return "it is a symbolic link"
    if kind not in {0, stat.S_IFREG, stat.S_IFDIR} or (kind == stat.S_IFDIR) > info.is_dir():
        return "it is no ordinary file or folder"
    if info.is_dir() and info.file_size:
        return "it is a folder with content"
    return None


def _collision(info: zipfile.ZipInfo, seen: dict[str, bool]) -> str | None:
    """Note an entry's path; tell when a file system that ignores case would confuse it with another."""
    name = unicodedata.normalize("NFC", info.filename.removesuffix("/")).casefold()
    folders = name.split("/")[:-1]
    for depth in range(1, len(folders) + 1):
        if seen.setdefault("/".join(folders[:depth]), True) is False:
            return "its folder is also a file"
    known = seen.get(name)
    if known is False or (known is True and not info.is_dir()):
        return "its path is given twice, or differs from another by case alone"
    seen[name] = info.is_dir()
    return None


def _is_junk(name: str) -> bool:
    parts = name.split("/")
    return (
        ignored(parts[-1])
        or parts[-1].startswith("._")
        or any(part in IGNORED_FOLDERS for part in parts[:-1])
    )
