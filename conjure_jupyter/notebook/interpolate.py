"""What a cell's words stand for: variables of the kernel, and files to attach.

``{name}`` and ``{name.attr}`` are replaced by the value of a kernel variable; ``{{name}}`` is literal; all
other braces stay as they are. ``@path``, ``@variable`` and ``file://path`` attach what exists and are left
alone where nothing does, so that e-mail addresses and decorators in code pass through unchanged. So is
``file://name`` of a registered artifact: Claude's tools read it by that name, and ``@name`` stands for it.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from ..artifacts.uris import file_uri
from ..errors import PathNotFoundError
from ..types import Content
from .values import attachable, preview

_DOTTED = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
NAME = re.compile(_DOTTED)
_BRACES = re.compile(r"\{\{(" + _DOTTED + r")\}\}|(?<!\{)\{(" + _DOTTED + r")\}(?!\})")
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

#: What stands for a variable that is not there.
MISSING: Any = object()


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
    registered: Collection[str] = (),
) -> Prompt:
    """Fill in variables and gather attachments.

    Args:
        text: the cell's words.
        namespace: the kernel's variables.
        folder: where relative paths start: the notebook's folder.
        scratch: makes a folder for variables that are attached as files.
        files: paths given as options; these must exist.
        registered: names of the session's artifacts.

    Raises:
        PathNotFoundError: a path given as an option does not exist.
    """
    found: dict[Path, None] = {}
    for name in files:
        path = _path(name, folder)
        if path is None:
            raise PathNotFoundError(name, "no such file")
        found[path] = None
    parts, done = [], 0
    for mention in _mentions(text):
        for name in _without_tail(mention.name):
            if not mention.at and (name in registered or unquote(name) in registered):
                break
            path = _path(name, folder) or (None if mention.at else _path(unquote(name), folder))
            if path is None and mention.at:
                value = lookup(name, namespace)
                path = None if value is MISSING else attachable(name, value, scratch)
            if path is not None:
                found[path] = None
                break
            if mention.at and name in registered:
                parts += [text[done : mention.start], file_uri(name)]
                done = mention.end - (len(mention.name) - len(name))
                break
    said = "".join([*parts, text[done:]])
    blocks = (image_block(path) for path in found)
    return Prompt(
        _BRACES.sub(lambda match: _fill(match, namespace), said),
        tuple(block for block in blocks if block is not None),
        tuple(found),
    )


@dataclass(frozen=True, slots=True)
class _Mention:
    """Words that may name something to attach.

    Attributes:
        name: what follows the sign, up to the next blank, or what is quoted.
        at: the sign is ``@``, not ``file://``.
        start, end: where sign and name stand.
    """

    name: str
    at: bool
    start: int
    end: int


def _fill(match: re.Match[str], namespace: Mapping[str, Any]) -> str:
    if match[1]:
        return "{" + match[1] + "}"
    value = lookup(match[2], namespace)
    return match[0] if value is MISSING else preview(value)


def lookup(dotted: str, namespace: Mapping[str, Any]) -> Any:
    """The value of ``name`` or ``name.attr``; ``MISSING`` when there is none."""
    first, *attributes = dotted.split(".")
    value = namespace.get(first, MISSING)
    for attribute in attributes:
        if value is MISSING:
            break
        try:
            value = getattr(value, attribute, MISSING)
        except Exception:  # noqa: BLE001  a property of the user's may raise anything
            return MISSING
    return value


def _mentions(text: str) -> list[_Mention]:
    urls = (_Mention(match[1], False, *match.span()) for match in _FILE_URL.finditer(text))
    ats = (_Mention(match[1].strip('"'), True, *match.span()) for match in _MENTION.finditer(text))
    return sorted([*urls, *ats], key=lambda mention: mention.start)


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
