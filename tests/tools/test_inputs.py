from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conjure_jupyter.errors import InvalidToolInputError
from conjure_jupyter.tools.inputs import validate
from conjure_jupyter.tools.schemas import definitions

TOOLS = {tool["name"]: tool for tool in definitions(inspect_variables=True)}


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("view", {}, "path is missing"),
        ("view", {"file_path": "a"}, "did you mean path?"),
        ("view", {"path": 3}, "path must be a text, got a number"),
        ("view", {"path": None}, "path must be a text, got null"),
        ("view", {"path": ["a"]}, "path must be a text, got an array"),
        ("view", {"path": "a", "view_range": 5}, "view_range must be an array"),
        ("view", {"path": "a", "view_range": [1]}, "view_range must have 2 items, got 1"),
        ("view", {"path": "a", "view_range": [1, 2, 3]}, "must have 2 items, got 3"),
        ("view", {"path": "a", "view_range": ["1", 2]}, "view_range[0] must be a whole number, got a text"),
        ("view", {"path": "a", "view_range": [True, 2]}, "view_range[0] must be a whole number"),
        ("view", {"path": "a", "view_range": [1.5, 2]}, "view_range[0] must be a whole number"),
        ("view", {"path": "a\ud800"}, "surrogate"),
        ("view", {"path": "a", "limit": 3}, "there is no field 'limit'"),
        ("bash_tool", {"cmd": "ls"}, "did you mean command?"),
        ("bash_tool", {"command": "echo \udfff"}, "at character 5"),
        ("create_file", {"path": "a", "content": "x"}, "did you mean file_text?"),
        ("create_file", {"path": "a", "file_text": {"a": 1}}, "file_text must be a text, got an object"),
        ("str_replace", {"path": "a", "old_string": "x"}, "did you mean old_str?"),
        ("bash_tool", {"command": "ls", "description": 3}, "description must be a text"),
    ],
)
def test_a_wrong_input_is_told_with_what_to_send(tool: str, arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidToolInputError) as caught:
        validate(TOOLS[tool], arguments)
    assert says in str(caught.value)
    assert str(caught.value).startswith(f"{tool}: ")


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(InvalidToolInputError) as caught:
        validate(TOOLS["create_file"], {"file_text": 3, "mode": "w"})
    assert all(part in str(caught.value) for part in ("file_text must be", "'mode'", "path is missing"))


@pytest.mark.parametrize("arguments", [None, [], "ls", 3])
def test_an_input_that_is_no_object_is_refused(arguments: Any) -> None:
    with pytest.raises(InvalidToolInputError, match="must be an object"):
        validate(TOOLS["bash_tool"], arguments)


def test_a_missing_description_does_not_fail_a_call() -> None:
    assert validate(TOOLS["bash_tool"], {"command": "ls"}) == {"command": "ls"}


def test_whole_floats_are_whole_numbers() -> None:
    assert validate(TOOLS["view"], {"path": "a", "view_range": [1.0, -1]})["view_range"] == [1, -1]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
fields = st.sampled_from(["path", "command", "view_range", "file_text", "old_str", "new_str", "description"])


@given(st.sampled_from(sorted(TOOLS)), st.dictionaries(fields | st.text(max_size=5), json_values, max_size=5))
def test_what_is_let_through_fits_the_schema(tool: str, arguments: dict[str, Any]) -> None:
    try:
        checked = validate(TOOLS[tool], arguments)
    except InvalidToolInputError as error:
        str(error).encode()
        return
    properties = TOOLS[tool]["input_schema"]["properties"]
    assert set(checked) == set(arguments) <= set(properties)
    for name, value in checked.items():
        if name == "view_range":
            assert [type(item) for item in value] == [int, int]
        else:
            value.encode()
