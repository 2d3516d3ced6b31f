"""The URIs that artifacts are referred to by.

=================================== ======================================================
``skill://csv-helper/assets/a.csv`` a file below a skill's ``assets`` folder
``file://sales_report``             a registered name, or a path from the notebook's folder
``https://example.com/data.json``   a URL, fetched when it is used
=================================== ======================================================

Names and paths are percent-decoded once (RFC 3986, section 2.4).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast
from urllib.parse import quote, unquote

from ..errors import InvalidArtifactError
from .shellwords import plain_words

Scheme: TypeAlias = Literal["skill", "file", "https", "http"]

_SCHEME = re.compile(r"(skill|file|https|http)://", re.IGNORECASE)
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
#: What a URI in a command may be made of: nothing that the shell would act on.
_PLAIN = re.compile(r"(?:skill|file)://[\w./%:@+,=~-]+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ArtifactURI:
    """A URI that names an artifact.

    Attributes:
        scheme: ``skill``, ``file``, ``https`` or ``http``.
        skill: of ``skill://``: the skill's name.
        path: of ``skill://``: the path below ``assets``, without ``..``.
        name: of ``file://``: the registered name, or the path.
        url: of ``https://`` and ``http://``: the URL as it was given.
    """

    scheme: Scheme
    skill: str | None = None
    path: str | None = None
    name: str | None = None
    url: str | None = None

    def __str__(self) -> str:
        if self.skill is not None and self.path is not None:
            return skill_uri(self.skill, self.path)
        if self.name is not None:
            return file_uri(self.name)
        return self.url or ""


def skill_uri(skill: str, path: str) -> str:
    """The URI of a file below a skill's ``assets`` folder."""
    return f"skill://{quote(skill, safe='')}/assets/{quote(path)}"


def file_uri(name: str) -> str:
    """The URI of a registered name, or of a path from the notebook's folder."""
    return f"file://{quote(name)}"


def is_uri(text: str) -> bool:
    """Whether a text begins like an artifact's URI; it may still be a wrong one."""
    return _SCHEME.match(text) is not None


def parse_uri(text: str) -> ArtifactURI:
    """Take a URI apart.

    Raises:
        InvalidArtifactError: it is none; says why.
    """
    match = _SCHEME.match(text)
    if match is None:
        raise InvalidArtifactError(text, "not an artifact's URI: skill://, file:// and https:// are")
    if _CONTROLS.search(text):
        raise InvalidArtifactError(text, "a URI cannot hold control characters or line ends")
    scheme, rest = cast("Scheme", match[1].lower()), text[match.end() :]
    if scheme == "skill":
        return _skill(text, rest)
    if scheme == "file":
        name = _decoded(text, rest)
        if not name.strip("/"):
            raise InvalidArtifactError(text, "write file://NAME with a registered name or a path")
        return ArtifactURI(scheme, name=name)
    if not rest.strip("/"):
        raise InvalidArtifactError(text, f"write {scheme}://HOST/PATH")
    return ArtifactURI(scheme, url=text)


def _skill(text: str, rest: str) -> ArtifactURI:
    name, _, path = rest.partition("/")
    skill = _decoded(text, name)
    folder, _, below = path.partition("/")
    if not skill or "/" in skill or folder != "assets" or not below:
        raise InvalidArtifactError(text, "write skill://SKILL/assets/PATH; only assets can be named")
    below = _decoded(text, below)
    parts = below.split("/")
    if ".." in parts or parts[0] == "":
        raise InvalidArtifactError(text, "the path must stay below the skill's assets")
    if not below.strip("./"):
        raise InvalidArtifactError(text, "it names a folder; name a file in it")
    return ArtifactURI("skill", skill=skill, path=below)


def _decoded(uri: str, part: str) -> str:
    try:
        decoded = unquote(part, errors="strict")
    except UnicodeDecodeError as error:
        raise InvalidArtifactError(uri, "its percent-encoding is not UTF-8") from error
    if _CONTROLS.search(decoded):
        raise InvalidArtifactError(uri, "a name cannot hold control characters")
    return decoded


def uris_in_words(command: str) -> list[tuple[int, int, str]]:
    """Where a bash command names artifacts: whole words that are not quoted.

    ``https://`` is left alone, and so is everything inside quotes, comments, here-documents and other words.

    Returns:
        Start, end and text of each ``skill://`` and ``file://`` URI, in order.
    """
    return [(start, end, word) for start, end, word in plain_words(command) if _PLAIN.fullmatch(word)]
