"""The create_file tool: a whole file, new or in place of an old one."""

from __future__ import annotations

import asyncio
from typing import Any

from ..errors import InvalidToolInputError, PathNotFoundError, ToolError
from ..redaction import REDACTED
from ..wording import size_text
from . import schemas
from .diffs import whole_diff
from .locations import check_path, shown
from .text import detect, split_lines
from .tool import Outcome, ToolEnv

#: An old file larger than this is replaced without a diff.
COMPARED_BYTES = 1_000_000


class CreateFileTool:
    """Makes a file with its parent folders, or replaces one, and says which."""

    name = "create_file"
    read_only = False
    path_fields = ("path",)
    read_fields = ()
    artifact_fields = ()

    @property
    def definition(self) -> dict[str, Any]:
        """The source document's schema."""
        return schemas.create_file_tool()

    async def run(self, arguments: dict[str, Any], env: ToolEnv) -> Outcome:
        """Write the file.

        Raises:
            ToolError: the path cannot be written, or a secret would be lost.
        """
        path = check_path(self.name, arguments["path"])
        text = arguments["file_text"]
        if path.endswith("/"):
            raise InvalidToolInputError(
                self.name, f"{path} names a folder; send the path of a file in it", field="path"
            )
        old, existed = await _old_text(path, env)
        if REDACTED in text and old is not None and REDACTED not in old:
            raise ToolError(
                f"{path} holds secrets, which are shown to you as {REDACTED}; writing the file whole would "
                "lose them. Change the other lines with str_replace"
            )
        data = text.encode("utf-8")
        await env.executor.write(path, data, env.context)
        name = shown(path, env.context)
        diff = await asyncio.to_thread(whole_diff, old if existed else None, text, name)
        count = len(split_lines(text))
        facts = f"{count:,} line{'' if count == 1 else 's'}, {size_text(len(data))}"
        done = "Replaced" if existed else "Created"
        note = " (its content was the same)" if existed and old == text else ""
        meta = {"files": [name], "diff": diff, "created": not existed}
        return Outcome(f"{done} {name} ({facts}){note}", meta=meta)


async def _old_text(path: str, env: ToolEnv) -> tuple[str | None, bool]:
    """The text that is there, None when it is no text or too large to compare; and whether a file is."""
    try:
        stat = await env.executor.stat(path, env.context)
    except PathNotFoundError:
        return None, False
    if stat.kind == "dir":
        raise ToolError(f"{path} is a folder; send the path of a file in it")
    if stat.kind != "file" or stat.size > COMPARED_BYTES:
        return None, True
    try:
        data = await env.executor.read(path, env.context)
    except ToolError:
        return None, True
    encoding = detect(data[:8192], whole=len(data) <= 8192)
    try:
        return (encoding.decode(data) if encoding else None), True
    except UnicodeDecodeError:
        return None, True
