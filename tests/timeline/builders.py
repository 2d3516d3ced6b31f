"""Blocks as a session writes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from conjure_jupyter.timeline import BaseTimeline, MemoryTimeline, MessageProjection, follow
from conjure_jupyter.types import Block


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def thinking(value: str, signature: str = "c2ln") -> dict[str, Any]:
    return {"type": "thinking", "thinking": value, "signature": signature}


def tool_use(id_: str, name: str = "view", **input_: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": name, "input": input_}


def server_tool_use(id_: str) -> dict[str, Any]:
    return {"type": "server_tool_use", "id": id_, "name": "web_search", "input": {"query": "x"}}


def server_tool_result(id_: str) -> dict[str, Any]:
    return {"type": "web_search_tool_result", "tool_use_id": id_, "content": []}


def answer(*content: dict[str, Any], reason: str | None = None, partial: bool = False) -> dict[str, Any]:
    """The data of an ``assistant`` block."""
    calls = any(block["type"] == "tool_use" for block in content)
    return {
        "message": {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "content": list(content),
            "stop_reason": reason or ("tool_use" if calls else "end_turn"),
            "usage": {
                "input_tokens": 10,
                "output_tokens": 5,
                "cache_creation": {"ephemeral_5m_input_tokens": 3},
            },
        },
        "partial": partial,
    }


def prompt(value: str) -> dict[str, Any]:
    """The data of a ``user`` block."""
    return {"content": [text(value)], "model": "claude-sonnet-5-5", "options": {}}


def result(id_: str, content: Any = "ok", *, is_error: bool = False) -> dict[str, Any]:
    """The data of a ``tool_result`` block."""
    return {"tool_use_id": id_, "content": content, "is_error": is_error, "meta": {"duration": 0.1}}


def turn_end(reason: str = "end_turn", *, cost: float | None = 0.01, **more: Any) -> dict[str, Any]:
    """The data of a ``turn_end`` block."""
    return {"reason": reason, "usage": {"input_tokens": 7}, "cost": cost, "error": None, "files": [], **more}


def whole_turn(timeline: BaseTimeline, value: str, calls: Iterable[str] = ()) -> int:
    """Append a turn: a prompt, an answer with calls and their results, a last answer."""
    turn = timeline.begin_turn()
    timeline.append("user", prompt(value))
    ids = list(calls)
    if ids:
        timeline.append("assistant", answer(text("I look."), *(tool_use(id_) for id_ in ids)))
        for id_ in ids:
            timeline.append("tool_call", {"id": id_, "name": "view", "decision": "allow"})
            timeline.append("tool_result", result(id_))
    timeline.append("assistant", answer(text(f"Answer to {value}")))
    timeline.append("turn_end", turn_end())
    return turn


def project(blocks: Iterable[Block]) -> MessageProjection:
    """A projection that was fed the blocks."""
    projection = MessageProjection()
    for block in blocks:
        projection.feed(block)
    return projection


def live() -> tuple[MemoryTimeline, MessageProjection]:
    """A timeline and the projection that follows it."""
    timeline, projection = MemoryTimeline(), MessageProjection()
    follow(timeline, projection)
    return timeline, projection


def shape(messages: list[dict[str, Any]]) -> list[str]:
    """A history in short: ``user: result a, text``."""
    return [f"{message['role']}: {', '.join(map(_short, message['content']))}" for message in messages]


def _short(block: dict[str, Any]) -> str:
    kind = block["type"]
    if kind == "text":
        return str(block["text"])
    if kind == "tool_use":
        return f"call {block['id']}"
    if kind == "tool_result":
        return f"result {block['tool_use_id']}"
    return str(kind)
