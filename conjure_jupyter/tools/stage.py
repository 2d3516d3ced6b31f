"""The stage_artifacts tool: files the user gave, fetched or kept earlier, put into the working directory."""

from __future__ import annotations

from typing import Any

from ..errors import ToolError
from ..wording import size_text
from . import schemas
from .locations import printable
from .tool import Outcome, ToolEnv

#: Where files go when a call does not say.
DESTINATION = "uploads/"


class StageArtifactsTool:
    """Stages artifacts by name, URI or logical path; those that cannot be had are named with the reason."""

    name = "stage_artifacts"
    read_only = False
    path_fields = ()
    read_fields = ()
    artifact_fields = ("artifact_names", "destination_path")

    @property
    def definition(self) -> dict[str, Any]:
        """Our schema, with the fields of the artifact document."""
        return schemas.stage_artifacts_tool()

    async def run(self, arguments: dict[str, Any], env: ToolEnv) -> Outcome:
        """Stage each artifact, in order.

        Raises:
            ToolError: there are no artifacts here.
        """
        if env.artifacts is None:
            raise ToolError("There are no artifacts here; the files are where the user says")
        names: list[str] = arguments["artifact_names"]
        destination = arguments.get("destination_path") or DESTINATION
        staged, failed, paths = [], [], []
        for name in names:
            try:
                file = await env.artifacts.stage(name, destination, call_id=env.call_id)
            except ToolError as error:
                failed.append(f"Could not stage {printable(name)}: {error}")
            else:
                staged.append(f"  • {printable(file.path)} ({size_text(file.size)})")
                paths.append(file.path)
        head = [f"Successfully staged {len(staged)} file(s):"] if staged else []
        return Outcome("\n".join([*head, *staged, *failed]), not staged, {"staged": paths})
