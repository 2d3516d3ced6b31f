"""The tools as Claude sees them: the definitions of the source document, word for word (its section 8).

Each function returns a fresh dict, so that a caller may change its copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import InvalidToolInputError
from ..types import ToolCall

Definition = dict[str, Any]


def view_tool() -> Definition:
    """Reading files and listing folders."""
    return {
        "name": "view",
        "description": "View file contents or directory listings. Supports text files, images (base64), "
        "and directories (up to 2 levels deep).",
        "input_schema": {
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Absolute path to file or directory"},
                "view_range": {
                    "type": "array",
                    "items": {"type": "integer"},
                    "minItems": 2,
                    "maxItems": 2,
                    "description": "Optional [start_line, end_line] for text files. "
                    "Use -1 for end_line to read to end.",
                },
            },
            "required": ["path"],
        },
    }


def bash_tool() -> Definition:
    """Running a command."""
    return {
        "name": "bash_tool",
        "description": "Execute a bash command in the container environment.",
        "input_schema": {
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "The bash command to execute"},
                "description": {"type": "string", "description": "Why this command is being run"},
            },
            "required": ["command", "description"],
        },
    }


def create_file_tool() -> Definition:
    """Writing a whole file."""
    return {
        "name": "create_file",
        "description": "Create a new file with the specified content.",
        "input_schema": {
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Path where the file should be created"},
                "file_text": {"type": "string", "description": "Content to write to the file"},
                "description": {"type": "string", "description": "Why this file is being created"},
            },
            "required": ["path", "file_text", "description"],
        },
    }


def str_replace_tool() -> Definition:
    """Editing a file in one place."""
    return {
        "name": "str_replace",
        "description": "Replace a unique string in a file with another string.",
        "input_schema": {
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Path to the file to edit"},
                "old_str": {"type": "string", "description": "String to replace (must be unique in file)"},
                "new_str": {"type": "string", "description": "Replacement string"},
                "description": {"type": "string", "description": "Why this edit is being made"},
            },
            "required": ["path", "old_str", "description"],
        },
    }


def inspect_variable_tool() -> Definition:
    """Looking at a variable of the kernel. Not in the source document: a notebook has variables."""
    return {
        "name": "inspect_variable",
        "description": "Look at a Python variable of the user's notebook, read-only: its type, size, columns "
        "and a short preview. Without a name it lists the variables. Nothing is evaluated or changed, and "
        "bash_tool cannot see these variables.",
        "input_schema": {
            "type": "object",
            "properties": {
                "name": {
                    "type": "string",
                    "description": "A variable, or a path into one, such as df, df['price'], "
                    "config.model or rows[0]. Leave it out to list all variables.",
                },
            },
            "required": [],
        },
    }


def definitions(*, inspect_variables: bool = False) -> list[Definition]:
    """All tools, in the order Claude is shown them.

    Args:
        inspect_variables: also offer a look at the kernel's variables.
    """
    tools = [view_tool(), bash_tool(), create_file_tool(), str_replace_tool()]
    if inspect_variables:
        tools.append(inspect_variable_tool())
    return tools


def build_tools_param(skills: Sequence[object] = (), *, inspect_variables: bool = False) -> list[Definition]:  # noqa: ARG001
    """The ``tools`` of a request that offers skills (specification 10.1): every skill needs the same ones."""
    return definitions(inspect_variables=inspect_variables)


def parse_tool_use(block: Any) -> ToolCall:
    """The call that a ``tool_use`` content block asks for; its input is validated when it runs.

    Raises:
        InvalidToolInputError: the block has not the shape of a ``tool_use`` block.
    """
    if not isinstance(block, dict) or block.get("type") != "tool_use":
        kind = block.get("type") if isinstance(block, dict) else type(block).__name__
        raise InvalidToolInputError("tool_use", f"expected a tool_use block, got {kind!r}", field="type")
    name = block.get("name")
    if not isinstance(name, str) or not name:
        raise InvalidToolInputError("tool_use", "the block names no tool", field="name")
    call_id = block.get("id")
    if not isinstance(call_id, str) or not call_id:
        raise InvalidToolInputError(name, "the block has no id", field="id")
    arguments = block.get("input", {})
    if not isinstance(arguments, dict):
        raise InvalidToolInputError(
            name, f"the input must be an object, got {type(arguments).__name__}", field="input"
        )
    return ToolCall(call_id, name, arguments)
