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


def stage_artifacts_tool() -> Definition:
    """Putting artifacts into the working directory; the fields are those of the artifact document."""
    return {
        "name": "stage_artifacts",
        "description": "Put artifacts into the working directory so that other tools can use them as files: "
        "files the user gave or registered, skills' assets, URLs and earlier versions. The answer says where "
        "each one lies.",
        "input_schema": {
            "type": "object",
            "properties": {
                "artifact_names": {
                    "type": "array",
                    "items": {"type": "string"},
                    "minItems": 1,
                    "description": "Names of artifacts, such as data.csv; URIs (file://name, "
                    "skill://skill/assets/path, https://…); or logical paths "
                    "(fi:turn_0003.files/report.csv)",
                },
                "destination_path": {
                    "type": "string",
                    "default": "uploads/",
                    "description": "Folder to put them in, relative to the working directory; uploads/ "
                    "when left out",
                },
            },
            "required": ["artifact_names"],
        },
    }


def return_artifacts_tool() -> Definition:
    """Keeping files for the user; the fields are those of the artifact document."""
    return {
        "name": "return_artifacts",
        "description": "Save files of the working directory for the user to download, each under a name "
        "with a version number. Files under outputs/ are kept by themselves when a call made them; use this "
        "to point out results, to give them other names, or to save files that lie elsewhere.",
        "input_schema": {
            "type": "object",
            "properties": {
                "file_paths": {
                    "type": "array",
                    "items": {"type": "string"},
                    "minItems": 1,
                    "description": "Paths of the files, relative to the working directory, such as "
                    "outputs/report.pdf",
                },
                "artifact_names": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "Names for the user, one for each file in the same order; the files' own "
                    "names when left out",
                },
            },
            "required": ["file_paths"],
        },
    }


def read_artifact_tool() -> Definition:
    """Reading anything of the session's history by its logical path."""
    return {
        "name": "read_artifact",
        "description": "Read anything of this session by its logical path, also what is no longer in view: "
        "a file in the version of an earlier turn, a message, a tool call or its result, numbered sources, "
        "a summary. A file is described first, then shown; it is also put on disk, read-only, under its "
        "turn_… path.",
        "input_schema": {
            "type": "object",
            "properties": {
                "path": {
                    "type": "string",
                    "description": "A logical path: fi:turn_0003.files/report.csv, "
                    "fi:turn_0003.user.attachments/data.csv, ar:turn_0003.user.prompt, "
                    "ar:turn_0003.assistant.completion, tc:turn_0003.<call id>.call, "
                    "tc:turn_0003.<call id>.result, so:sources_pool[1,2] or su:turn_0005.conv.range.summary",
                },
                "view_range": {
                    "type": "array",
                    "items": {"type": "integer"},
                    "minItems": 2,
                    "maxItems": 2,
                    "description": "Optional [start_line, end_line] for text. "
                    "Use -1 for end_line to read to end.",
                },
            },
            "required": ["path"],
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


def render_file_tool() -> Definition:
    """Rendering a document; ours, since the artifact document gives its rendering tools no schema."""
    return {
        "name": "render_file",
        "description": "Render HTML or Markdown to a PDF document, PNG images or a PowerPoint presentation. "
        "Local images, stylesheets and fonts are found by path, relative to the document or to the working "
        "directory, also as turn_0003/files/…; [[S:3]] in the text becomes a numbered citation with a list "
        "of sources at the end, and as an image's src the file of that source. Nothing is fetched from the "
        "network and scripts are not run. The document's CSS decides the look of PDF and PNG. On slides, h1 "
        "makes a title slide, h2 a new slide, and a line across (---) goes on to the next one; CSS is not "
        "used.",
        "input_schema": {
            "type": "object",
            "properties": {
                "path": {
                    "type": "string",
                    "description": "The document: an HTML or Markdown file of the working directory. Send "
                    "this or content",
                },
                "content": {"type": "string", "description": "The document itself, in place of path"},
                "format": {
                    "type": "string",
                    "enum": ["html", "markdown"],
                    "description": "What the document is; needed with content, else told by the file's name",
                },
                "output": {
                    "type": "string",
                    "description": "The file to make, under outputs/, such as outputs/report.pdf; its ending "
                    "(.pdf, .png or .pptx) decides what is made. Several pages become outputs/report-1.png, "
                    "outputs/report-2.png and so on",
                },
                "title": {
                    "type": "string",
                    "description": "Title in the file's properties; the document's own when left out",
                },
                "page_size": {
                    "type": "string",
                    "description": "Size of a page or slide: A4 (the default), A3, A5, letter, legal, "
                    "tabloid, with ' landscape' after it if wanted; 16:9 (the default of slides); 4:3; or "
                    "'210mm x 100mm'",
                },
            },
            "required": ["output"],
        },
    }


def definitions(
    *, inspect_variables: bool = False, artifacts: bool = False, rendering: bool = False
) -> list[Definition]:
    """All tools, in the order Claude is shown them.

    Args:
        inspect_variables: also offer a look at the kernel's variables.
        artifacts: also offer staging, returning and reading artifacts.
        rendering: also offer rendering documents.
    """
    tools = [view_tool(), bash_tool(), create_file_tool(), str_replace_tool()]
    if artifacts:
        tools += [stage_artifacts_tool(), return_artifacts_tool(), read_artifact_tool()]
    if rendering:
        tools.append(render_file_tool())
    if inspect_variables:
        tools.append(inspect_variable_tool())
    return tools


def build_tools_param(
    skills: Sequence[object] = (),  # noqa: ARG001  every skill needs the same tools
    *,
    inspect_variables: bool = False,
    artifacts: bool = False,
    rendering: bool = False,
) -> list[Definition]:
    """The ``tools`` of a request that offers skills (specification 10.1)."""
    return definitions(inspect_variables=inspect_variables, artifacts=artifacts, rendering=rendering)


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
