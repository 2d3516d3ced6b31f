"""The API's rules, each by a request that breaks it."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from conjure_jupyter.errors import InvalidRequestError
from conjure_jupyter.testing import text, thinking, tool_use, validate_messages, validate_request

CALL = tool_use("view", {"path": "a"}, id="toolu_1")
PNG = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
TOOL = {"name": "view", "input_schema": {"type": "object", "properties": {}}}


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def said(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def result(call: str = "toolu_1", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call, "content": "ok", **fields}


HI = user(text("hi"))

GOOD: list[list[dict[str, Any]]] = [
    [{"role": "user", "content": "hi"}],
    [HI, HI],
    [HI, said(text("x"), CALL), user(result())],
    [HI, said(CALL), user(result(), text("and now?"))],
    [HI, said(CALL, {**CALL, "id": "toolu_2"}), user(result("toolu_2"), result())],
    [HI, said(CALL), user(result(content=[PNG, text("x")]))],
    [HI, said(CALL), user(result(content=""))],
    [HI, said(thinking("hm"), text("x")), HI],
    [HI, said(text("x"), {"type": "server_tool_use", "id": "s1", "name": "bash", "input": {}})],
]

BAD: dict[str, list[Any]] = {
    "at least one message": [],
    "first message must use the user role": [said(text("x"))],
    "role must be": [{"role": "system", "content": "x"}],
    "Extra inputs": [{**HI, "id": "x"}],
    "non-empty content": [user()],
    "must be non-empty": [user(text(""))],
    "non-whitespace": [user(text(" \n"))],
    "without `tool_result` blocks immediately after: toolu_1": [HI, said(CALL), HI],
    "blocks immediately after": [HI, said(CALL)],
    "immediately after: toolu_1": [HI, said(CALL), user(text("first"), result())],
    "unexpected `tool_use_id`": [HI, said(CALL), user(result("toolu_9"))],
    "found in `tool_result` blocks": [user(result())],
    "ids must be unique": [HI, said(CALL), user(result()), said(CALL), user(result())],
    "single result": [HI, said(CALL), user(result(), result())],
    "not permitted in user": [user(CALL)],
    "not permitted in assistant": [HI, said(PNG), HI],
    "Invalid `signature`": [HI, said({**thinking("hm"), "thinking": "changed"}, text("x")), HI],
    "signature: Field required": [HI, said({"type": "thinking", "thinking": "x"}), HI],
    "prefill": [HI, said(text("I"))],
    "valid dictionary": [HI, said({**CALL, "input": "x"}), user(result())],
    "A-Z0-9_-]+": [HI, said({**CALL, "id": "a b"}), user(result("a b"))],
    "must be type `text`": [HI, said(CALL), user(result(content=[PNG], is_error=True))],
    "media_type": [user({**PNG, "source": {**PNG["source"], "media_type": "image/bmp"}})],  # type: ignore[dict-item]
    "invalid base64": [user({**PNG, "source": {**PNG["source"], "data": "?"}})],  # type: ignore[dict-item]
}


@pytest.mark.parametrize("messages", GOOD)
def test_what_the_api_takes(messages: list[dict[str, Any]]) -> None:
    validate_messages(messages)


@pytest.mark.parametrize("reason", BAD)
def test_what_the_api_refuses(reason: str) -> None:
    with pytest.raises(InvalidRequestError) as raised:
        validate_messages(BAD[reason])
    assert reason in raised.value.message
    assert raised.value.status == 400


def test_results_come_before_anything_else() -> None:
    second = {**CALL, "id": "toolu_2"}
    with pytest.raises(InvalidRequestError, match="immediately after: toolu_2"):
        validate_messages([HI, said(CALL, second), user(result(), text("x"), result("toolu_2"))])


def test_images_have_a_largest_size() -> None:
    data = base64.b64encode(bytes(5 * 1024 * 1024 + 1)).decode()
    with pytest.raises(InvalidRequestError, match="5 MB"):
        validate_messages([user({**PNG, "source": {**PNG["source"], "data": data}})])  # type: ignore[dict-item]


def test_there_is_a_largest_number_of_messages() -> None:
    with pytest.raises(InvalidRequestError, match="100000"):
        validate_messages([HI] * 100_001)


def request(**fields: Any) -> dict[str, Any]:
    return {"model": "claude-x", "max_tokens": 2000, "messages": [HI], **fields}


MARK = {"cache_control": {"type": "ephemeral"}}
LONG = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"sytem": "x"}, "sytem: Extra inputs"),
        ({"model": None}, "model: Field required"),
        ({"max_tokens": None}, "max_tokens: Field required"),
        ({"max_tokens": -1}, "greater than or equal to 0"),
        ({"system": [{"type": "text", "text": ""}]}, "system.0: text content blocks must be non-empty"),
        ({"tools": [TOOL, TOOL]}, "unique"),
        ({"tools": [{**TOOL, "name": "a b"}]}, "tools.0.custom.name"),
        ({"tools": [{"name": "x"}]}, "input_schema"),
        ({"tools": [{**TOOL, "parameters": {}}]}, "parameters: Extra inputs"),
        ({"thinking": {"type": "enabled", "budget_tokens": 100}}, "1024"),
        ({"thinking": {"type": "enabled", "budget_tokens": 2000}}, "must be greater"),
        ({"thinking": {"type": "deep"}}, "thinking.type"),
        ({"messages": [user(*({**text("x"), **MARK} for _ in range(5)))]}, "Found 5"),
        ({"messages": [user(*({**text("x"), **MARK} for _ in range(4)))], **MARK}, "Found 5"),
        ({"cache_control": {"type": "ephemeral", "ttl": "2h"}}, "ttl"),
        ({"messages": [user({**text("x"), **MARK}, {**text("y"), **LONG})]}, "must not come after"),
        ({"messages": [HI, said({**thinking("x"), **MARK}, text("y")), HI]}, "thinking blocks"),
        (
            {
                "thinking": {"type": "enabled", "budget_tokens": 1024},
                "messages": [HI, said(CALL), user(result())],
            },
            "Expected `thinking`",
        ),
    ],
)
def test_requests_the_api_refuses(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidRequestError) as raised:
        validate_request(request(**fields))
    assert reason in raised.value.message


def test_requests_the_api_takes() -> None:
    hosted = {"type": "code_execution_20260521", "name": "code_execution"}
    validate_request(request(tools=[TOOL, hosted], system="x", temperature=1, **MARK))
    validate_request({"model": "claude-x", "messages": [HI]}, counting=True)
    validate_request(request(max_tokens=0))
