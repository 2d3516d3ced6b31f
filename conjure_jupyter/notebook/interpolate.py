"""What a cell's words stand for: variables of the kernel, and files to attach.

``{name}`` and ``{name.attr}`` are replaced by the value of a kernel variable; ``{{name}}`` is literal; all
other braces stay as they are. ``@path``, ``@variable`` and ``file://name`` attach what exists and are left
alone where nothing does, so that e-mail addresses and decorators in code pass through unchanged.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from ..errors import PathNotFoundError
from ..types import Content
from .values import attachable, preview

_NAME = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
_BRACES = re.compile(r"\{\{(" + _NAME + r")\}\}|(?<!\{)\{(" + _NAME + r")\}(?!\})")
_FILE_URL = re.compile(r"\bfile://(\S+)")
_MENTION = re.compile(r"(?<![^\s(\[{<\"'`,;])@(\"[^\"\n]+\"|[^\s@]+)")
_TAIL = ".,;:!?)]}>'\"`*"

#: Bytes of an image that the Messages API takes in one block.
MOST_IMAGE = 5_000_000

_MAGIC: tuple[tuple[Callable[[bytes], bool], str], ...] = (
    (lambda head: head.startswith(b"\x89PNG\r\n\x1a\n"), "image/png"),
    (lambda head: head.startswith(b"\xff\xd8\xff"), "image/jpeg"),
    (lambda head: head.startswith((b"GIF87a", b"GIF89a")), "image/gif"),
    (lambda head: head[:4] == b"RIFF" and head[8:12] == b"WEBP", "image/webp"),
)

_MISSING = object()


@dataclass(frozen=True, slots=True)
class Prompt:
    """A cell's words, ready to be sent.

    Attributes:
        text: the words with variables filled in.
        images: image blocks, in the order they were named.
        files: files for the session to take in, each once.
    """

    text: str
    images: tuple[Content, ...] = ()
    files: tuple[Path, ...] = ()

    @property
    def content(self) -> str | list[Content]:
        """What a session takes as its prompt."""
        return [*self.images, {"type": "text", "text": self.text}] if self.images else self.text


def interpolate(
    text: str,
    namespace: Mapping[str, Any],
    folder: Path,
    scratch: Callable[[], Path],
    *,
    files: Sequence[str] = (),
) -> Prompt:
    """Fill in variables and gather attachments.

    Args:
        text: the cell's words.
        namespace: the kernel's variables.
        folder: where relative paths start: the notebook's folder.
        scratch: makes a folder for variables that are attached as files.
        files: paths given as options; these must exist.

    Raises:
        PathNotFoundError: a path given as an option does not exist.
    """
    found: dict[Path, None] = {}
    images: list[Content] = []
    for name in files:
        path = _path(name, folder)
        if path is None:
            raise PathNotFoundError(name, "no such file")
        found[path] = None
    for kind, candidate in _mentions(text):
        for name in _without_tail(candidate):
            path = _path(name, folder) or (_path(unquote(name), folder) if kind == "url" else None)
            if path is not None:
                found[path] = None
                break
            value = _lookup(name, namespace) if kind == "mention" else _MISSING
            attached = None if value is _MISSING else attachable(name, value, scratch)
            if attached is not None:
                found[attached] = None
                break
    for path in found:
        block = image_block(path)
        if block is not None:
            images.append(block)
    filled = _BRACES.sub(lambda match: _fill(match, namespace), text)
    return Prompt(filled, tuple(images), tuple(found))


def _fill(match: re.Match[str], namespace: Mapping[str, Any]) -> str:
    if match[1]:
        return "{" + match[1] + "}"
    value = _lookup(match[2], namespace)
    return match[0] if value is _MISSING else preview(value)


def _lookup(dotted: str, namespace: Mapping[str, Any]) -> Any:
    first, *attributes = dotted.split(".")
    value = namespace.get(first, _MISSING)
    for attribute in attributes:
        if value is _MISSING:
            break
        try:
            value = getattr(value, attribute, _MISSING)
        except Exception:  # noqa: BLE001  a property of the user's may raise anything
            return _MISSING
    return value


def _mentions(text: str) -> Iterator[tuple[str, str]]:
    found = [(match.start(), "url", match[1]) for match in _FILE_URL.finditer(text)]
    found += [(match.start(), "mention", match[1].strip('"')) for match in _MENTION.finditer(text)]
    return ((kind, name) for _, kind, name in sorted(found))


def _without_tail(candidate: str) -> Iterator[str]:
    """The words after the sign, then without the punctuation that may follow a name."""
    yield candidate
    while candidate and candidate[-1] in _TAIL:
        candidate = candidate[:-1]
        yield candidate


def _path(name: str, folder: Path) -> Path | None:
    """The file of that name, or None; folders are not attached."""
    if not name or "\0" in name:
        return None
    try:
        path = folder / Path(name).expanduser()
        return path if path.is_file() else None
    except (OSError, RuntimeError, ValueError):  # too long, no such home folder
        return None


def image_block(path: Path) -> Content | None:
    """The image block of a file that is a PNG, JPEG, GIF or WebP of a size the API takes."""
    try:
        if path.stat().st_size > MOST_IMAGE:
            return None
        with path.open("rb") as stream:
            head = stream.read(16)
            kind = next((kind for test, kind in _MAGIC if test(head)), None)
            if kind is None:
                return None
            data = base64.b64encode(head + stream.read()).decode()
    except OSError:
        return None
    return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}
