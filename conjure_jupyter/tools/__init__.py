"""What Claude can call: schemas, tools, their dispatch, and who decides about a call."""

from __future__ import annotations

from .dispatch import Toolbox
from .permissions import Decision, Policy, summary
from .schemas import (
    bash_tool,
    build_tools_param,
    create_file_tool,
    definitions,
    inspect_variable_tool,
    parse_tool_use,
    read_artifact_tool,
    return_artifacts_tool,
    stage_artifacts_tool,
    str_replace_tool,
    view_tool,
)
from .tool import Outcome, Tool, ToolEnv

#: The name it has at the top level of the package (specification 5.1).
tool_definitions = definitions

__all__ = [
    "Decision",
    "Outcome",
    "Policy",
    "Tool",
    "ToolEnv",
    "Toolbox",
    "bash_tool",
    "build_tools_param",
    "create_file_tool",
    "definitions",
    "inspect_variable_tool",
    "parse_tool_use",
    "read_artifact_tool",
    "return_artifacts_tool",
    "stage_artifacts_tool",
    "str_replace_tool",
    "summary",
    "tool_definitions",
    "view_tool",
]
