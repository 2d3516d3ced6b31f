"""What artifacts may be called, and what their files and variables are called."""

from __future__ import annotations

import posixpath
import unicodedata
from collections.abc import Iterable

from ..errors import InvalidArtifactError
from .kinds import BINARY, PLAIN, extension_for, has_mark, is_text, is_zip, suffix_of, type_by_name

#: Longest name, in characters.
MAX_NAME = 100

PREFIX = "ARTIFACT_"

# Letters that are drawn as nothing; a name is to be seen.
_UNSEEN = frozenset("\u115f\u1160\u3164\uffa0")

#: What the bytes of many formats show, which only differ inside.
_WRAPPERS = frozenset({"application/gzip", "application/x-ole-storage", "application/zip"})

#: Files that have no extension by custom.
_BARE = frozenset(
    {"authors", "brewfile", "changelog", "codeowners", "copying", "dockerfile", "gemfile", "jenkinsfile"}
    | {"justfile", "license", "makefile", "notice", "procfile", "rakefile", "readme", "vagrantfile"}
)


def check_name(name: str) -> str:
    """A name that an artifact may have, in the form that is stored (NFC).

    Letters and digits of any script, ``.``, ``_`` and ``-``; at most 100; not dots alone.

    Raises:
        InvalidArtifactError: it may not be used; says why.
    """
    if not isinstance(name, str):
        raise InvalidArtifactError(repr(name), "a name is text")
    name = unicodedata.normalize("NFC", name)
    if not name:
        raise InvalidArtifactError(name, "a name cannot be empty")
    if "://" in name:
        raise InvalidArtifactError(name, "a name cannot be a URI; give the URI as the source")
    if "/" in name or "\\" in name:
        raise InvalidArtifactError(name, "a name cannot be a path; give the path as the source")
    if len(name) > MAX_NAME:
        raise InvalidArtifactError(name, f"a name has at most {MAX_NAME} characters")
    wrong = next((c for c in name if not (c.isalnum() or c in "._-") or c in _UNSEEN), None)
    if wrong is not None:
        shown = repr(wrong) if wrong.isprintable() and wrong not in _UNSEEN else f"U+{ord(wrong):04X}"
        raise InvalidArtifactError(name, f"a name has letters, digits, '.', '_' and '-', not {shown}")
    if not name.strip("."):
        raise InvalidArtifactError(name, "a name cannot be dots alone")
    return name


def check_free(name: str, taken: Iterable[str]) -> None:
    """Check that a name can be told from those in use; the same name is no other.

    Raises:
        InvalidArtifactError: it differs only in case from one, which some file systems cannot tell apart, or
            both would have the same environment variable.
    """
    folded, variable = name.casefold(), env_name(name)
    for other in taken:
        if other == name:
            continue
        if other.casefold() == folded:
            raise InvalidArtifactError(name, f"{other!r} is in use and differs only in case")
        if env_name(other) == variable:
            raise InvalidArtifactError(name, f"{other!r} is in use and has the same variable, {variable}")


def env_name(name: str) -> str:
    """The environment variable that holds an artifact's path, such as ``ARTIFACT_SALES_DATA``.

    Accents are dropped, other letters beyond ASCII become their code point, and signs become ``_``.
    """
    plain = "".join(c for c in unicodedata.normalize("NFKD", name) if not unicodedata.combining(c))
    return PREFIX + "".join(_env_char(c) for c in plain)


def _env_char(char: str) -> str:
    if char.isascii():
        return char.upper() if char.isalnum() else "_"
    return f"U{ord(char):X}"


def with_extension(name: str, mime: str) -> str:
    """A file's name with the extension of its type, when it has none or one of another kind of file.

    An extension is never taken away: a ``chart.png`` that is a web page becomes ``chart.png.html``. Text is
    one kind, so ``notes.md`` stays what it is when all that could be told is that it is text; so are zip
    archives. Files that have no extension by custom (``Makefile``, ``.gitignore``) get none.

    Args:
        name: the name, or a path.
        mime: the type, as told by the content.
    """
    extension = extension_for(mime)
    base = posixpath.basename(name)
    if not extension or base.startswith(".") or base.casefold() in _BARE:
        return name
    claimed = type_by_name(name)
    if claimed is None:
        return name if suffix_of(name) and mime == PLAIN else name + extension
    return name if _same_kind(claimed, mime) else name + extension


def _same_kind(claimed: str, mime: str) -> bool:
    if claimed in (mime, BINARY) or (is_text(claimed) and is_text(mime)):
        return True
    # Many formats are known by their name only, within the archive that the bytes show.
    wrapped = mime in _WRAPPERS and not (is_text(claimed) or has_mark(claimed))
    return wrapped or (is_zip(claimed) and is_zip(mime))
