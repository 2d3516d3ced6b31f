"""The return_artifacts tool: files of the working directory kept for the user, in numbered versions."""

from __future__ import annotations

from typing import Any

from ..errors import InvalidArtifactError, InvalidToolInputError, ToolError
from ..wording import size_text
from . import schemas
from .locations import check_path, in_workspace, printable
from .tool import Outcome, ToolEnv


class ReturnArtifactsTool:
    """Keeps files for download; what was kept already in these bytes is the same version."""

    name = "return_artifacts"
    read_only = True
    path_fields = ("file_paths",)
    read_fields = ()
    artifact_fields = ("artifact_names",)

    @property
    def definition(self) -> dict[str, Any]:
        """Our schema, with the fields of the artifact document."""
        return schemas.return_artifacts_tool()

    async def run(self, arguments: dict[str, Any], env: ToolEnv) -> Outcome:
        """Keep each file, in order.

        Raises:
            ToolError: there are no artifacts here, or there are not as many names as files.
        """
        if env.artifacts is None:
            raise ToolError("There are no artifacts here; tell the user where the files are")
        paths: list[str] = arguments["file_paths"]
        names: list[str] = arguments.get("artifact_names") or []
        if names and len(names) != len(paths):
            raise InvalidToolInputError(
                self.name,
                f"artifact_names has {len(names)} names for {len(paths)} files; send one for each, or none",
                field="artifact_names",
            )
        saved, failed, logical = [], [], []
        for index, path in enumerate(paths):
            try:
                inside = in_workspace(check_path(self.name, path), env.context)
                if inside is None:
                    raise InvalidArtifactError(
                        path, "it is outside the working directory; copy it to outputs/"
                    )
                kept = await env.artifacts.keep(inside, names[index] if names else None, call_id=env.call_id)
            except ToolError as error:
                failed.append(f"Could not save {printable(path)}: {error}")
            else:
                saved.append(f"  • {printable(kept.name)} (v{kept.version}, {size_text(kept.size)})")
                logical.append(kept.artifact_path)
        head = [f"Saved {len(saved)} file(s) for download:"] if saved else []
        return Outcome("\n".join([*head, *saved, *failed]), not saved, {"returned": logical})
