"""The read_artifact tool: anything of the session's history, by its logical path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import InvalidArtifactError, InvalidToolInputError, ToolError
from ..timeline.logical import LogicalPath, from_physical, parse
from ..types import Content
from . import schemas
from .text import numbered
from .tool import Outcome, ToolEnv
from .view import ViewTool, Window, check_range

if TYPE_CHECKING:
    from ..artifacts.service import ArtifactService


class ReadArtifactTool:
    """Files with their metadata first, then what ``view`` shows of them; everything else as text."""

    name = "read_artifact"
    read_only = True
    path_fields = ()
    read_fields = ()
    artifact_fields = ("path",)

    def __init__(self) -> None:
        self._view = ViewTool()

    @property
    def definition(self) -> dict[str, Any]:
        """Our schema; the artifact document has the paths."""
        return schemas.read_artifact_tool()

    async def run(self, arguments: dict[str, Any], env: ToolEnv) -> Outcome:
        """Read what a logical path names.

        Raises:
            ToolError: it is no such path, or nothing has it.
        """
        if env.artifacts is None:
            raise ToolError("There are no artifacts here; read files with view")
        lines = check_range(self.name, arguments.get("view_range"))
        logical = self._parse(arguments["path"])
        blocks = env.artifacts.discovery.text_blocks(logical)
        meta: dict[str, Any] = {"artifact": str(logical)}
        if logical.kind == "fi":
            shown, facts = await self._file(str(logical), arguments.get("view_range"), env, env.artifacts)
            return Outcome([*blocks, *shown], meta=meta | facts)
        missing = [number for number in logical.numbers if env.artifacts.discovery.source(number) is None]
        if missing:
            blocks.append(_text(f"[there is no source {', '.join(map(str, missing[:10]))}]"))
        return Outcome(_record(blocks, lines, env), meta=meta)

    def _parse(self, path: str) -> LogicalPath:
        if (logical := from_physical(path.removeprefix("./"))) is not None:
            return logical
        try:
            return parse(path)
        except InvalidArtifactError as error:
            raise InvalidToolInputError(self.name, f"{error}; view reads other files", field="path") from None

    async def _file(
        self, logical: str, view_range: list[int] | None, env: ToolEnv, artifacts: ArtifactService
    ) -> tuple[list[Content], dict[str, Any]]:
        """What a file holds, or why it cannot be shown (its digest is an answer too); and facts on it."""
        try:
            path = await artifacts.checkout(logical)
            outcome = await self._view.run({"path": path, "view_range": view_range}, env)
        except InvalidToolInputError:
            raise
        except ToolError as error:
            return [_text(f"[its content cannot be shown: {error}]")], {}
        if outcome.meta.get("binary"):
            return [_text(f"[it is no text; it lies at {path}]")], outcome.meta
        body = [_text(outcome.content)] if isinstance(outcome.content, str) else outcome.content
        return body, outcome.meta


def _record(blocks: list[Content], lines: tuple[int, int] | None, env: ToolEnv) -> list[Content]:
    """What was said: one text, whole or some of its lines, then what is no text."""
    text = "\n".join(block["text"] for block in blocks if block["type"] == "text")
    if lines is not None:
        window = Window(*lines, max(env.output_limit - 400, 200))
        window.feed(text)
        window.finish()
        text = f"{numbered(window.lines, lines[0])}\n[{window.count:,} lines in all]"
    return [_text(text), *(block for block in blocks if block["type"] != "text")]


def _text(text: str) -> Content:
    return {"type": "text", "text": text}
