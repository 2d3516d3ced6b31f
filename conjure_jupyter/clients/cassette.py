"""A file of recorded answers: what it holds, how it is read, written and found in.

Each entry stands at a path through a conversation: what the user said and which calls were answered, from
the first message on. Tool outputs are no part of the path. Entries of many conversations share a file;
where two begin alike they share those entries.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import ReplayError, ToolError
from ..paths import write_atomic

VERSION = 1

#: Stands for a text of several lines in the file, one line of the file each, so that a change shows as one.
_LINES = "$lines"

_locks: dict[Path, threading.Lock] = {}


@dataclass(slots=True)
class Entry:
    """One recorded answer.

    Attributes:
        path: the way to it: ``user: …`` and ``calls: …`` steps.
        message: the answer, in the API's form.
        results: what the calls of the last step gave when it was recorded: id to ``{"is_error", "sha256",
            "text"}``, of which the text is only its beginning.
    """

    path: tuple[str, ...]
    message: dict[str, Any]
    results: dict[str, dict[str, Any]] = field(default_factory=dict)


class Cassette:
    """The entries of one file. Safe to share by threads and processes: each change reads the file anew.

    Args:
        path: where it lies; it need not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._entries: dict[tuple[str, ...], Entry] = {}
        self._seen: tuple[int, int] | None = None

    def find(self, path: tuple[str, ...]) -> Entry | None:
        """The entry at a path.

        Raises:
            ReplayError: the file is no cassette of a known version.
        """
        self._refresh()
        return self._entries.get(path)

    def beginning_with(self, path: tuple[str, ...]) -> list[Entry]:
        """Entries at or below a path."""
        self._refresh()
        return [entry for entry in self._entries.values() if entry.path[: len(path)] == path]

    def put(self, entry: Entry) -> None:
        """Add or replace an entry, and drop those that an answer with other calls makes unreachable.

        Raises:
            ReplayError: the file is no cassette of a known version, or cannot be written.
        """
        calls = call_step(entry.message)
        with self._changing():
            self._refresh()
            depth = len(entry.path)
            for path in list(self._entries):
                below = path[:depth] == entry.path and len(path) > depth
                if below and path[depth].startswith("calls: ") and path[depth] != calls:
                    del self._entries[path]
            self._entries[entry.path] = entry
            self._write()

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        """Keep other writers out, by a lock on the folder: no lock file is left beside a notebook."""
        lock = _locks.setdefault(self.path.absolute(), threading.Lock())
        try:
            folder = os.open(self.path.absolute().parent, os.O_RDONLY)
        except OSError as error:
            raise ReplayError(f"{self.path}: cannot be written: {error.strerror}") from error
        try:
            with lock:
                fcntl.flock(folder, fcntl.LOCK_EX)
                yield
        finally:
            os.close(folder)

    def _refresh(self) -> None:
        try:
            status = self.path.stat()
        except FileNotFoundError:
            self._entries, self._seen = {}, None
            return
        now = (status.st_mtime_ns, status.st_ino)
        if now == self._seen:
            return
        try:
            self._entries = {entry.path: entry for entry in _decoded(json.loads(self.path.read_bytes()))}
        except OSError as error:
            raise ReplayError(f"{self.path}: cannot be read: {error.strerror}") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ReplayError(f"{self.path}: no cassette that this version reads ({error})") from error
        self._seen = now

    def _write(self) -> None:
        data = {"version": VERSION, "entries": [_encoded(entry) for entry in self._entries.values()]}
        text = json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
        try:
            write_atomic(self.path, text.encode("utf-8", "surrogatepass"), mode=0o644)
        except ToolError as error:
            raise ReplayError(f"The cassette cannot be written: {error}") from error
        self._seen = None


def call_step(message: dict[str, Any]) -> str:
    """The step that follows an answer with calls: their ids, in their order."""
    return calls_step([block["id"] for block in message["content"] if block.get("type") == "tool_use"])


def calls_step(ids: list[str]) -> str:
    """The step of results for these calls."""
    return "calls: " + " ".join(ids)


def digest(text: str) -> str:
    """What a tool output is compared by."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _encoded(entry: Entry) -> dict[str, Any]:
    data = {"path": list(entry.path), "message": entry.message, "results": entry.results}
    return {name: _broken(value) for name, value in data.items() if value != {}}


def _decoded(data: Any) -> Iterator[Entry]:
    if data["version"] != VERSION:
        reason = f"version {data['version']!r}, not {VERSION}"
        raise ValueError(reason)
    for item in data["entries"]:
        whole = _joined(item)
        yield Entry(tuple(whole["path"]), whole["message"], whole.get("results", {}))


def _broken(value: Any) -> Any:
    """``value`` with each text of several lines as ``{"$lines": […]}``."""
    if isinstance(value, str):
        return {_LINES: value.split("\n")} if "\n" in value else value
    if isinstance(value, dict):
        mark = "$" if _is_marked(value) else ""  # a dict that looks like such a text gets one more sign
        return {mark + name: _broken(item) for name, item in value.items()}
    return [_broken(item) for item in value] if isinstance(value, list) else value


def _joined(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {_LINES}:
            return "\n".join(value[_LINES])
        mark = "$" if _is_marked(value) else ""
        return {name.removeprefix(mark): _joined(item) for name, item in value.items()}
    return [_joined(item) for item in value] if isinstance(value, list) else value


def _is_marked(value: dict[str, Any]) -> bool:
    name = next(iter(value), "")
    return len(value) == 1 and name.startswith("$") and "$" + name.lstrip("$") == _LINES
