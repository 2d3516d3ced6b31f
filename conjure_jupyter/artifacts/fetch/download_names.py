"""What a fetched file is called: the server's word or the URL's last part, made harmless."""

from __future__ import annotations

import email.message
import re
import unicodedata
from collections.abc import Iterable
from pathlib import PurePosixPath
from urllib.parse import unquote

from ..kinds import BINARY
from ..naming import with_extension

#: Used when neither the server nor the URL gives a name.
FALLBACK = "download"

#: Most bytes of a name in UTF-8; file systems take 255, and others put something before or after it.
MAX_BYTES = 150

_MEDIA_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+")
_EXTENSION = re.compile(r"\.(?=[0-9]?[A-Za-z])[A-Za-z0-9]{1,10}")
_UNSAFE = re.compile(r'[<>:"|?*]')


def media_type(header: str) -> str:
    """The type of a ``Content-Type`` in lower case, without parameters; bytes when it says none."""
    kind = header.partition(";")[0].strip().lower()
    return kind if _MEDIA_TYPE.fullmatch(kind) else BINARY


def download_name(disposition: str, paths: Iterable[str], content_type: str) -> str:
    """A file name that is safe in any folder, with an extension where the type has one.

    Args:
        disposition: the ``Content-Disposition`` header (RFC 6266), or nothing.
        paths: the paths of the URL and of others on the way to it, the best first, percent-encoded.
        content_type: the media type, without parameters.
    """
    names = [name for path in paths if (name := _safe(unquote(path.partition("?")[0])))]
    by_path = next(filter(_has_extension, names), names[0] if names else FALLBACK)
    name = _safe(_given(disposition)) or by_path
    # An extension that is there stays, whatever the server calls the content: servers are often wrong.
    return name if _has_extension(name) else with_extension(name, content_type)


def _has_extension(name: str) -> bool:
    """Whether a name ends in one; the ``.2`` of ``v1.2`` is none."""
    return _EXTENSION.fullmatch(PurePosixPath(name).suffix) is not None


def _given(disposition: str) -> str:
    if not disposition:
        return ""
    message = email.message.Message()
    message["Content-Disposition"] = disposition
    try:
        return message.get_filename() or ""
    except (ValueError, LookupError):  # the parser's, for an encoding that is none
        return ""


def _safe(text: str) -> str:
    """The last part of a path, without what a file system, a shell's user or a terminal would stumble on."""
    name = re.split(r"[/\\]", unicodedata.normalize("NFC", text))[-1]
    name = "".join(
        char for char in name if unicodedata.category(char)[0] != "C" and char not in "\u2028\u2029"
    )
    name = _UNSAFE.sub("_", name).strip().lstrip(".-~").rstrip(". ")
    return _shortened(name)


def _shortened(name: str) -> str:
    if len(name.encode()) <= MAX_BYTES:
        return name
    suffix = PurePosixPath(name).suffix
    if len(suffix.encode()) > 20:
        suffix = ""
    room = MAX_BYTES - len(suffix.encode())
    return name.encode()[:room].decode(errors="ignore").rstrip(". ") + suffix
