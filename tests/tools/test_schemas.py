from __future__ import annotations

from typing import Any

import pytest

from conjure_jupyter.errors import InvalidToolInputError
from conjure_jupyter.tools import definitions, parse_tool_use, schemas


def test_the_definitions_are_those_of_the_source_document() -> None:
    by_name = {tool["name"]: tool for tool in definitions()}
    assert list(by_name) == ["view", "bash_tool", "create_file", "str_replace"]
    required = {name: tool["input_schema"]["required"] for name, tool in by_name.items()}
    assert required == {
        "view": ["path"],
        "bash_tool": ["command", "description"],
        "create_file": ["path", "file_text", "description"],
        "str_replace": ["path", "old_str", "description"],
    }
    assert by_name["view"]["input_schema"]["properties"]["view_range"] == {
        "type": "array",
        "items": {"type": "integer"},
        "minItems": 2,
        "maxItems": 2,
        "description": "Optional [start_line, end_line] for text files. Use -1 for end_line to read to end.",
    }
    assert by_name["bash_tool"]["description"] == "Execute a bash command in the container environment."


def test_the_look_at_variables_comes_on_request() -> None:
    assert definitions(inspect_variables=True)[-1]["name"] == "inspect_variable"


def test_a_changed_definition_changes_no_other() -> None:
    schemas.view_tool()["input_schema"]["properties"].clear()
    assert "path" in schemas.view_tool()["input_schema"]["properties"]


def test_a_tool_use_block_becomes_a_call() -> None:
    call = parse_tool_use({"type": "tool_use", "id": "toolu_1", "name": "view", "input": {"path": "a"}})
    assert (call.id, call.name, call.input) == ("toolu_1", "view", {"path": "a"})


@pytest.mark.parametrize(
    ("block", "field"),
    [
        ({"type": "text", "text": "x"}, "type"),
        ("tool_use", "type"),
        ({"type": "tool_use", "id": "t", "input": {}}, "name"),
        ({"type": "tool_use", "id": "t", "name": 3, "input": {}}, "name"),
        ({"type": "tool_use", "name": "view", "input": {}}, "id"),
        ({"type": "tool_use", "id": "t", "name": "view", "input": "path"}, "input"),
        ({"type": "tool_use", "id": "t", "name": "view", "input": None}, "input"),
    ],
)
def test_a_block_of_another_shape_is_refused(block: Any, field: str) -> None:
    with pytest.raises(InvalidToolInputError) as caught:
        parse_tool_use(block)
    assert caught.value.field == field
