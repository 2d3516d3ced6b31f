"""What the system prompt says of artifacts (ADR-0018, section 4).

Names, types and paths come from the user and from skills, so none can close a tag, open an attribute or hide.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..errors import ToolError
from ..paths import read_beneath
from ..skills import Skill
from ..timeline.discovery import Registration
from ..wording import size_text
from .detect import HEAD, content_type
from .kinds import type_by_name
from .registry import reason
from .uris import file_uri, skill_uri

#: Most artifacts, and most assets, that are listed; the rest is counted.
MOST_ARTIFACTS, MOST_ASSETS = 50, 100

#: Characters of a value; a URI is never cut, a cut one is of no use.
_VALUE = 200

_DESCRIPTION = """\
<artifacts_description>
Artifacts are files and data available for this conversation.
Reference them using their URI in tool calls.
</artifacts_description>"""

_USAGE = """\
<artifact_usage>
Use artifact URIs with the view tool or in bash commands:
- view tool: {"path": "skill://csv-helper/assets/sample.csv"}
- bash: process file at resolved path

URI schemes:
- skill://{skill}/assets/{path} - Files bundled with skills
- file://{name} - User-provided files
- https://{url} - Remote resources (fetched on access)
</artifact_usage>"""

# Letters and marks that are drawn as nothing; format characters are found by not being printable.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


class Asset(NamedTuple):
    """A file in a skill's ``assets`` folder.

    Attributes:
        skill: the skill's name.
        path: relative to ``assets``, with ``/``.
        content_type: MIME type.
    """

    skill: str
    path: str
    content_type: str


def skill_assets(skills: Iterable[Skill]) -> list[Asset]:
    """The assets of skills, skill by skill; those whose name does not say their type are looked into."""
    return [
        Asset(skill.name, path.relative_to("assets").as_posix(), _type(skill, path.as_posix()))
        for skill in skills
        for path in skill.resources.assets
    ]


def _type(skill: Skill, path: str) -> str:
    known = type_by_name(path)
    if known is not None:
        return known
    try:
        return content_type(path, read_beneath(skill.path, path, limit=HEAD))
    except ToolError:
        return "unknown"


def artifacts_section(registrations: Sequence[Registration], assets: Sequence[tuple[str, str, str]]) -> str:
    """The ``<artifacts>`` element; empty text when there is nothing to list.

    Args:
        registrations: what the user registered.
        assets: ``Asset`` values, or the same as tuples, of the skills in use.
    """
    if not registrations and not assets:
        return ""
    parts = ["<artifacts>", _DESCRIPTION, ""]
    parts += _group(
        "user_artifacts", list(map(_artifact, registrations[:MOST_ARTIFACTS])), len(registrations)
    )
    parts += _group("skill_assets", list(map(_asset, assets[:MOST_ASSETS])), len(assets))
    return "\n".join([*parts, "", _USAGE, "</artifacts>"])


def _group(tag: str, lines: list[str], count: int) -> list[str]:
    if not lines:
        return []
    rest = count - len(lines)
    more = [f"<!-- {rest} more are not listed -->"] if rest else []
    return [f"<{tag}>", *lines, *more, f"</{tag}>"]


def _artifact(found: Registration) -> str:
    size = size_text(found.size) if found.size is not None else "unknown"
    values = {"name": found.name, "type": found.mime or "unknown", "size": size}
    line = f'<artifact {_attributes(values)} uri="{html.escape(file_uri(found.name))}"'
    why = reason(found)
    return f"{line} {_attributes({'unavailable': why})}/>" if why else f"{line}/>"


def _asset(asset: tuple[str, str, str]) -> str:
    skill, path, kind = asset
    values = {"skill": skill, "path": path, "type": kind}
    return f'<asset {_attributes(values)} uri="{html.escape(skill_uri(skill, path))}"/>'


def _attributes(values: dict[str, str]) -> str:
    return " ".join(f'{name}="{_value(value)}"' for name, value in values.items())


def _value(text: str) -> str:
    """One line of visible characters that cannot end its attribute."""
    shown = "".join(c if c.isprintable() else " " if c.isspace() else "" for c in _UNSEEN.sub("", text))
    shown = " ".join(shown.split())
    return html.escape(shown if len(shown) <= _VALUE else shown[: _VALUE - 1] + "…")
