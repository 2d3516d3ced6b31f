"""Checking what Claude sends against a tool's schema, with answers that say what to send instead.

Only the part of JSON Schema that our definitions use is known here: strings, booleans, integers, numbers,
arrays, objects and ``required``. Two rules are ours:

- ``description`` is required by the source document's schemas, but it only explains a call to the user.
  A call without it is served; failing it would cost a request and change nothing.
- A text with a lone surrogate is refused: it cannot be written to a file or sent back to the service.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from ..errors import InvalidToolInputError

#: Fields that a call may leave out although its schema requires them.
OPTIONAL_IN_PRACTICE = frozenset({"description"})

#: Names that other text editing tools use for our fields.
_ALIASES = {
    "file_path": "path",
    "filepath": "path",
    "filename": "path",
    "file": "path",
    "cmd": "command",
    "content": "file_text",
    "contents": "file_text",
    "text": "file_text",
    "old_string": "old_str",
    "new_string": "new_str",
    "range": "view_range",
    "variable": "name",
    "artifacts": "artifact_names",
    "names": "artifact_names",
    "destination": "destination_path",
    "paths": "file_paths",
    "files": "file_paths",
}

_NAMES = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "an array",
    "object": "an object",
}


def validate(definition: Mapping[str, Any], arguments: Any) -> dict[str, Any]:
    """The arguments, checked; whole floats such as ``1.0`` become integers where those are asked for.

    Args:
        definition: a tool's definition.
        arguments: what Claude sent.

    Raises:
        InvalidToolInputError: a field is missing, unknown or of the wrong type; all problems are named.
    """
    tool = definition["name"]
    schema = definition["input_schema"]
    if not isinstance(arguments, dict):
        raise InvalidToolInputError(tool, f"the input must be an object, got {_kind(arguments)}")
    properties: Mapping[str, Any] = schema.get("properties", {})
    checked: dict[str, Any] = {}
    problems: list[tuple[str, str]] = []
    for name, value in arguments.items():
        if name not in properties:
            problems.append((str(name), _unknown(str(name), properties, arguments)))
            continue
        try:
            checked[name] = _check(name, value, properties[name])
        except ValueError as error:
            problems.append((name, str(error)))
    problems += [
        (name, f"{name} is missing: {properties[name].get('description', 'it is required')}")
        for name in schema.get("required", ())
        if name not in arguments and name not in OPTIONAL_IN_PRACTICE
    ]
    if problems:
        reason = "; ".join(text for _, text in problems[:8])
        raise InvalidToolInputError(tool, reason, field=problems[0][0])
    return checked


def _check(name: str, value: Any, schema: Mapping[str, Any]) -> Any:
    expected = schema.get("type", "string")
    if expected == "integer" and isinstance(value, float) and value.is_integer():
        value = int(value)
    if not _is(value, expected):
        raise ValueError(f"{name} must be {_NAMES[expected]}, got {_kind(value)}")
    if expected == "string":
        check_text(name, value)
    if expected == "array":
        low, high = schema.get("minItems", 0), schema.get("maxItems")
        if len(value) < low or (high is not None and len(value) > high):
            size = f"{low}" if low == high else f"{low} to {high if high is not None else 'any number of'}"
            raise ValueError(f"{name} must have {size} items, got {len(value)}")
        return [_check(f"{name}[{index}]", item, schema.get("items", {})) for index, item in enumerate(value)]
    if "enum" in schema and value not in schema["enum"]:
        raise ValueError(f"{name} must be one of {', '.join(map(str, schema['enum']))}")
    return value


def check_text(name: str, value: str) -> None:
    """Refuse text that UTF-8 cannot hold.

    Raises:
        ValueError: it has a lone surrogate; the message says where.
    """
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{name} has half of a surrogate pair (\\u{ord(value[error.start]):04x}) at character "
            f"{error.start}, which is no valid text; send the whole character"
        ) from None


def _is(value: Any, expected: str) -> bool:
    if expected == "boolean":
        return isinstance(value, bool)
    if expected in ("integer", "number"):
        numbers = int if expected == "integer" else int | float
        return isinstance(value, numbers) and not isinstance(value, bool)
    return isinstance(value, {"string": str, "array": list, "object": dict}[expected])


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    kinds = {
        bool: "a boolean",
        int: "a number",
        float: "a number",
        str: "a text",
        list: "an array",
        dict: "an object",
    }
    return kinds.get(type(value), type(value).__name__)


def _unknown(name: str, properties: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    shown = name if len(name) <= 40 else name[:40] + "…"
    shown = shown.encode("ascii", "backslashreplace").decode()
    free = [known for known in properties if known not in arguments]
    near = _ALIASES.get(name.lower())
    if near not in free:
        near = next(iter(difflib.get_close_matches(name, free, n=1)), None)
    hint = f"did you mean {near}?" if near else f"the fields are {', '.join(properties)}"
    return f"there is no field {shown!r}; {hint}"
