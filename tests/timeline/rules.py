"""What the Messages API asks of a history, as far as its shape goes."""

from __future__ import annotations

from typing import Any


def refusal(messages: list[dict[str, Any]]) -> str | None:
    """Why the API would refuse this history, or None when it would take it (or when it is empty)."""
    turns = _joined(messages)
    if turns and turns[0][0] != "user":
        return "the first message is not the user's"
    waiting: list[str] = []
    why = None
    for message in messages:
        why = why or _alone(message)
    for role, content in turns:
        why = why or _content(role, content)
        if role == "user":
            why = why or _answered(waiting, content)
        waiting = [block["id"] for block in content if role == "assistant" and block["type"] == "tool_use"]
        if len(set(waiting)) < len(waiting):
            why = why or "an id is used twice in one answer"
    return why or (f"calls without results at the end: {waiting}" if waiting else None)


def _joined(messages: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Neighbours of one role as one, as the API reads them."""
    turns: list[tuple[str, list[dict[str, Any]]]] = []
    for message in messages:
        if turns and turns[-1][0] == message["role"]:
            turns[-1][1].extend(message["content"])
        else:
            turns.append((message["role"], list(message["content"])))
    return turns


def _alone(message: dict[str, Any]) -> str | None:
    if set(message) != {"role", "content"} or not message["content"]:
        return f"a message without content, or with more: {message}"
    if message["role"] == "assistant" and message["content"][-1]["type"].endswith("thinking"):
        return "an answer ends with thinking"
    return None


def _content(role: str, content: list[dict[str, Any]]) -> str | None:
    for block in content:
        kind = block["type"]
        if kind == "text" and not block["text"].strip():
            return "blank text"
        if kind == "thinking" and not block.get("signature"):
            return "thinking without a signature"
        if kind == "tool_use" and (role != "assistant" or not isinstance(block["input"], dict)):
            return f"a wrong tool_use: {block}"
        if kind == "tool_result" and role != "user":
            return "a tool_result in an answer"
    return None


def _answered(waiting: list[str], content: list[dict[str, Any]]) -> str | None:
    results = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
    if sorted(results) != sorted(waiting):
        return f"calls {waiting} got results {results}"
    if any(block["type"] != "tool_result" for block in content[: len(results)]):
        return "something stands before the results"
    return None


def assert_accepted(messages: list[dict[str, Any]]) -> None:
    """The API would take this history."""
    why = refusal(messages)
    assert why is None, f"{why}\n{messages}"
