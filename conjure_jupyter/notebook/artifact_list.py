"""The artifacts of a session as a list: what has a name, what was given, what was made."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ..artifacts.registry import reason
from ..errors import ArtifactError
from ..wording import size_text
from .visible import one_line

if TYPE_CHECKING:
    from ..conversation.artifacts import SessionArtifacts
    from ..timeline.discovery import Artifact, Registration
    from .render import Style

#: Entries of each list, pictures, and bytes of a picture that are shown.
MOST, PICTURES, PICTURE_BYTES = 200, 12, 300_000

NOTHING = "No artifacts yet; %artifacts add NAME SOURCE gives something a name"

_PICTURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
)


@dataclass(frozen=True, slots=True)
class _Row:
    """A line of the list: a name, what is to be known of it, and its version when it is a file's."""

    name: str
    facts: str
    artifact: Artifact | None = None


@dataclass(frozen=True, slots=True)
class _Section:
    """Rows under a heading, and how many earlier ones there is no room for."""

    title: str
    rows: list[_Row]
    earlier: int


def browse(artifacts: SessionArtifacts, style: Style) -> dict[str, str] | None:
    """All artifacts as MIME bundle, bounded and escaped; None when there are none.

    Of files the newest are shown, each in its latest version.
    """
    registered = artifacts.registered()
    # The history itself, not ``artifacts.list()``: a value for each of ten thousand files takes long to make.
    files = [found for found in artifacts.discovery.current() if found.visibility == "external"]
    made = [found for found in files if found.path.startswith("outputs/")]
    given = [found for found in files if not found.path.startswith("outputs/")]
    sections = [
        _Section("Names", [_name(entry, style) for entry in registered[-MOST:]], len(registered) - MOST),
        _Section("Given", [_file(found) for found in given[-MOST:]], len(given) - MOST),
        _Section("Made", [_file(found) for found in made[-MOST:]], len(made) - MOST),
    ]
    sections = [section for section in sections if section.rows]
    if not sections:
        return None
    return {"text/plain": _plain(sections), "text/html": _html(sections, artifacts)}


def named(entry: Registration, style: Style) -> str:
    """What a name stands for, in a few words."""
    source = entry.source
    match source.get("type"):
        case "url":
            url = urlsplit(str(source.get("url")))
            what = f"{url.scheme}://{url.hostname}{url.path}"  # without credentials and query
        case "path":
            what = style.told(str(source.get("path")))
        case _:
            what = str(source.get("of"))
    facts = [what, entry.mime or "", size_text(entry.size) if entry.size is not None else ""]
    return one_line(", ".join(fact for fact in [*facts, _lacks(reason(entry))] if fact), 300)


def _name(entry: Registration, style: Style) -> _Row:
    return _Row(f"file://{one_line(entry.name)}", named(entry, style))


def _file(artifact: Artifact) -> _Row:
    facts = [one_line(artifact.mime), size_text(artifact.size), f"v{artifact.version}"]
    if not artifact.kept:
        facts.append(_lacks(artifact.reason or "its bytes"))
    return _Row(one_line(artifact.path, 200), ", ".join(facts), artifact)


def _lacks(why: str | None) -> str:
    return f"not kept: {one_line(why, 150)}" if why else ""


def _plain(sections: Sequence[_Section]) -> str:
    lines = []
    for section in sections:
        lines.append(f"{section.title}:")
        if section.earlier > 0:
            lines.append(f"  … {section.earlier:,} earlier ones")
        lines += [f"  {row.name} ({row.facts})" for row in section.rows]
    return "\n".join(lines)


def _html(sections: Sequence[_Section], artifacts: SessionArtifacts) -> str:
    parts = []
    pictures = PICTURES
    for section in sections:
        items = [f"<li>… {section.earlier:,} earlier ones</li>"] if section.earlier > 0 else []
        for row in section.rows:
            picture = _picture(row.artifact, artifacts) if row.artifact is not None and pictures else ""
            pictures -= bool(picture)
            items.append(f"<li><code>{escape(row.name)}</code> ({escape(row.facts)}){picture}</li>")
        parts.append(f"<p><strong>{section.title}</strong></p><ul>{''.join(items)}</ul>")
    return f"<div>{''.join(parts)}</div>"


def _picture(artifact: Artifact, artifacts: SessionArtifacts) -> str:
    """A raster image, folded; its type is read from its bytes. SVG is left out: it can carry script."""
    if not artifact.kept or not artifact.mime.startswith("image/") or artifact.size > PICTURE_BYTES:
        return ""
    try:
        data = artifacts.service.file_ref(artifact).bytes()
    except (ArtifactError, OSError):
        return ""
    kind = next((kind for magic, kind in _PICTURES if data.startswith(magic)), None)
    if kind is None:
        return ""
    name = escape(one_line(artifact.name))
    source = f"data:{kind};base64,{base64.b64encode(data).decode()}"
    return f'<details><summary>picture</summary><img alt="{name}" src="{source}"></details>'
