"""Making a call's input ready where there are artifacts: what it names is put on disk before the tool runs.

Path fields may hold references (see ``references``); the file they stand for takes their place. Any other
text may mention files of earlier turns and numbered sources, which are put where the text expects them; the
text itself stays as it is, file contents above all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import InvalidToolInputError, ToolError
from ..types import Content
from .inputs import OPTIONAL_IN_PRACTICE
from .references import reference
from .tool import Outcome, Tool, ToolEnv

if TYPE_CHECKING:
    from ..artifacts.service import ArtifactService

#: Codes of notices, as the artifact document names them.
REWRITTEN = "path_rewritten"
MISSING_ASSETS = "tool_call_error.missing_assets"
MISSING_SOURCES = "tool_call_warning.missing_sources"

#: Missing paths or numbers that a notice names.
NAMED = 10
_MENTION = re.compile(r"turn_[0-9]{4,}/|\[\[S:")


@dataclass(slots=True)
class Notices:
    """What Claude is told besides a call's own result.

    Attributes:
        said: code and text of each, for the result's ``meta``.
    """

    said: list[dict[str, str]] = field(default_factory=list)
    _lines: list[str] = field(default_factory=list)

    def add(self, artifacts: ArtifactService, code: str, text: str, *, in_result: bool = True) -> None:
        """Write a notice to the timeline, and into the result of the call where it bears on that."""
        artifacts.notice(text, code)
        self.said.append({"code": code, "text": text})
        if in_result:
            self._lines.append(f"[{text}]")

    def added_to(self, outcome: Outcome) -> Outcome:
        """The outcome with what was said."""
        if self.said:
            outcome.meta["notices"] = [*outcome.meta.get("notices", ()), *self.said]
        if self._lines:
            lines = "\n".join(self._lines)
            if isinstance(outcome.content, str):
                outcome.content = f"{outcome.content}\n{lines}" if outcome.content else lines
            else:
                block: Content = {"type": "text", "text": lines}
                outcome.content = [*outcome.content, block]
        return outcome


async def resolve(tool: Tool, arguments: dict[str, Any], env: ToolEnv, notices: Notices) -> dict[str, Any]:
    """The validated arguments with every reference in a path field replaced by a path.

    Raises:
        ToolError: a reference names nothing that can be used; it is told which and why.
    """
    if env.artifacts is None:
        return arguments
    await _pull(env.artifacts, tool, arguments, notices)
    resolved = dict(arguments)
    for name in tool.path_fields:
        value = arguments.get(name)
        if isinstance(value, str):
            resolved[name] = await _path(tool, name, value, env, notices)
        elif isinstance(value, list):
            resolved[name] = [await _path(tool, name, item, env, notices) for item in value]
    return resolved


async def _path(tool: Tool, field_name: str, value: str, env: ToolEnv, notices: Notices) -> str:
    write = not tool.read_only
    meant = reference(value, env.context, write=write)
    if meant is None or env.artifacts is None:
        return value
    if meant.kind == "record":
        raise InvalidToolInputError(
            tool.name, f"{value} is a part of the conversation, no file; use read_artifact", field=field_name
        )
    found = await env.artifacts.resolve_path(meant.value, write=write, call_id=env.call_id)
    if found.notice is not None:
        notices.add(env.artifacts, REWRITTEN, found.notice, in_result=False)
    if write and meant.path is not None and found.path != meant.path:
        # The call was approved for that path and no other.
        raise ToolError(f"{value} cannot be written; write to {meant.path}")
    return found.path


async def _pull(artifacts: ArtifactService, tool: Tool, arguments: dict[str, Any], notices: Notices) -> None:
    """Put on disk what texts of the input mention; what cannot be found is told, and the call runs."""
    own = {*tool.path_fields, *tool.artifact_fields, *OPTIONAL_IN_PRACTICE}
    texts = [
        text
        for name, value in arguments.items()
        if name not in own
        for text in _texts(value)
        if ("turn_" in text or "[[S:" in text) and _MENTION.search(text)
    ]
    if not texts:
        return
    pulled = await artifacts.pull("\n".join(texts))
    if pulled.missing_assets:
        named = _named(pulled.missing_assets)
        notices.add(artifacts, MISSING_ASSETS, f"no artifact has the path {named}: it was not put on disk")
    if pulled.missing_sources:
        named = _named([f"[[S:{number}]]" for number in pulled.missing_sources])
        notices.add(artifacts, MISSING_SOURCES, f"the pool has no source {named}")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)


def _named(names: list[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
