"""Fetched content on disk: one file of bytes and one of facts for each URL, bounded in size.

``<key>.json`` holds the facts, ``<key>-<sha256>`` the bytes; the key is a digest of the URL. Bytes are put
in place before the facts that name them, each by a rename, so that a crash leaves an entry or none. Bytes
are digested again at every use: a damaged entry is none. Files belong to their owner alone, and several
processes may share the folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import time
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from ...paths import make_private_dir
from .entries import Entry, load_entry

#: Seconds after which a file that somebody began and never finished is removed.
ABANDONED = 3600.0

_FILE = re.compile(r"(?P<key>[0-9a-f]{32})(?:\.json|-[0-9a-f]{64})")


@dataclass
class _Group:
    """The files of one URL."""

    used: float = 0.0
    size: int = 0
    paths: list[Path] = field(default_factory=list)


class FetchCache:
    """The cache in a folder. Its methods block; they are called from a thread.

    Args:
        folder: made when it is not there, for its owner alone.
        limit: most bytes of all its files.
    """

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder = folder
        self._limit = limit

    def path(self, entry: Entry) -> Path:
        """Where an entry's bytes are."""
        return self._folder / f"{_key(entry.url)}-{entry.sha256}"

    def find(self, url: str) -> Entry | None:
        """The entry of a URL, when it is whole; a damaged one is removed."""
        facts = self._facts(url)
        try:
            entry = load_entry(_read(facts))
        except OSError:
            return None
        if entry is not None and entry.url == url and self._whole(entry):
            return entry
        facts.unlink(missing_ok=True)
        return None

    def begin(self) -> Path:
        """An empty file to write content to; :meth:`keep` or :meth:`discard` ends it.

        Raises:
            OSError: it cannot be made.
            ToolError: the folder cannot be made, or is not ours.
        """
        make_private_dir(self._folder)
        path = self._folder / f"begun-{secrets.token_hex(16)}"
        os.close(_create(path))
        return path

    def discard(self, begun: Path) -> None:
        """Remove a file that came to nothing."""
        begun.unlink(missing_ok=True)

    def keep(self, entry: Entry, begun: Path, *, reuse: bool, held: Collection[Path] = ()) -> Path:
        """Put content in place of what was known of its URL, and make room.

        Args:
            entry: the facts.
            begun: the file with the content.
            reuse: whether later fetches may use it; otherwise it is only put there.
            held: files that somebody still reads.

        Raises:
            OSError: it cannot be written.
        """
        path = self.path(entry)
        begun.replace(path)
        if reuse:
            self.note(entry)
        else:
            self._facts(entry.url).unlink(missing_ok=True)
        for older in self._folder.glob(f"{_key(entry.url)}-*"):
            if older != path and older not in held:
                older.unlink(missing_ok=True)
        self.trim({path, *held})
        return path

    def note(self, entry: Entry) -> None:
        """Write the facts of an entry whose bytes are in place.

        Raises:
            OSError: they cannot be written.
        """
        facts = self._facts(entry.url)
        begun = self._folder / f"begun-{secrets.token_hex(16)}"
        try:
            with os.fdopen(_create(begun), "wb") as file:
                file.write(entry.dump())
            begun.replace(facts)
        except OSError:
            begun.unlink(missing_ok=True)
            raise

    def use(self, entry: Entry) -> Path:
        """The bytes of an entry, which becomes the last to go."""
        path = self.path(entry)
        with contextlib.suppress(OSError):
            os.utime(path)
        return path

    def forget(self, url: str) -> None:
        """Let no later fetch use what is known of a URL; its bytes go when room is needed."""
        self._facts(url).unlink(missing_ok=True)

    def trim(self, held: Collection[Path] = ()) -> None:
        """Remove what was used longest ago until the rest fits, and what was never finished.

        Args:
            held: files that stay.
        """
        groups: dict[str, _Group] = defaultdict(_Group)
        for path, info in self._files():
            match = _FILE.fullmatch(path.name)
            if match is None:
                if path.name.startswith("begun-") and time.time() - info.st_mtime > ABANDONED:
                    path.unlink(missing_ok=True)
                continue
            group = groups[match["key"]]
            group.used = max(group.used, info.st_mtime)
            group.size += info.st_size
            group.paths.append(path)
        excess = sum(group.size for group in groups.values()) - self._limit
        for group in sorted(groups.values(), key=lambda group: group.used):
            if excess <= 0:
                return
            if held and not set(group.paths).isdisjoint(held):
                continue
            for path in group.paths:
                path.unlink(missing_ok=True)
            excess -= group.size

    def _files(self) -> list[tuple[Path, os.stat_result]]:
        found = []
        with os.scandir(self._folder) as entries:
            for each in entries:
                with contextlib.suppress(FileNotFoundError):
                    found.append((Path(each.path), each.stat(follow_symlinks=False)))
        return found

    def _facts(self, url: str) -> Path:
        return self._folder / f"{_key(url)}.json"

    def _whole(self, entry: Entry) -> bool:
        try:
            fd = os.open(self.path(entry), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return False
        with os.fdopen(fd, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == entry.sha256


def _key(url: str) -> str:
    return hashlib.sha256(url.encode()).hexdigest()[:32]


def _create(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _read(path: Path) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    with os.fdopen(fd, "rb") as file:
        return file.read()
