"""What of a logged message may go back to the API. Content that may is passed on as the same object.

The API refuses blank text, thinking without its signature or at a message's end, and tool calls without
results; calls run only after ``stop_reason`` ``tool_use``, since an input that was cut looks whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from ..types import Content, Message

_THINKING = frozenset({"thinking", "redacted_thinking"})


def assistant_content(message: Message, *, partial: bool) -> list[Content]:
    """The content blocks of an answer of Claude's that may be sent back; empty when none may.

    Args:
        message: as the API gave it, or as much of it as came.
        partial: whether it broke off.
    """
    reason = None if partial else message.get("stop_reason")
    blocks = [block for block in _blocks(message.get("content")) if _sendable(block)]
    if reason != "tool_use":
        blocks = [block for block in blocks if block["type"] != "tool_use"]
    blocks = _calls_usable(blocks)
    if reason not in ("tool_use", "pause_turn"):  # after these the service goes on with its own open calls
        blocks = without_open_calls(blocks, answered_calls(blocks))
    return _without_last_thinking(blocks)


def without_open_calls(blocks: Iterable[Content], answered: Collection[str]) -> list[Content]:
    """Leave out calls of the service's own tools whose id is not among ``answered``."""
    return _without_last_thinking(
        [block for block in blocks if not _is_server_call(block) or block.get("id") in answered]
    )


def answered_calls(blocks: Iterable[Content]) -> frozenset[str]:
    """The ids of the calls that have a result of the service's among ``blocks``."""
    ids = (block.get("tool_use_id") for block in blocks if block["type"].endswith("_tool_result"))
    return frozenset(id_ for id_ in ids if isinstance(id_, str))


def user_content(content: Any) -> list[Content]:
    """The content blocks of what a user said or a tool gave, without blank text."""
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    return [block for block in _blocks(content) if block["type"] != "text" or _has_text(block)]


def tool_result(data: dict[str, Any]) -> Content:
    """The API's form of a ``tool_result`` block of the timeline."""
    content = data.get("content", "")
    if not isinstance(content, str):
        content = user_content(content) or ""
    result: Content = {"type": "tool_result", "tool_use_id": data["tool_use_id"], "content": content}
    if data.get("is_error"):
        result["is_error"] = True
    return result


def text(value: str) -> Content:
    """A text block."""
    return {"type": "text", "text": value}


def _blocks(content: Any) -> list[Content]:
    if isinstance(content, str):
        return [text(content)]
    if not isinstance(content, list):
        return []
    return [block for block in content if isinstance(block, dict) and isinstance(block.get("type"), str)]


def _has_text(block: Content) -> bool:
    value = block.get("text")
    return isinstance(value, str) and bool(value.strip())


def _sendable(block: Content) -> bool:
    kind = block["type"]
    if kind == "text":
        return _has_text(block)
    if kind == "thinking":
        return isinstance(block.get("thinking"), str) and bool(block.get("signature"))
    if kind == "redacted_thinking":
        return bool(block.get("data"))
    return not _is_server_call(block) or isinstance(block.get("id"), str)


def _is_server_call(block: Content) -> bool:
    return bool(block["type"].endswith("_tool_use"))


def _calls_usable(blocks: list[Content]) -> list[Content]:
    """Each call once, under a name and an id, with an object as input."""
    usable, seen = [], set()
    for block in blocks:
        if block["type"] == "tool_use":
            id_ = block.get("id")
            if not isinstance(id_, str) or not id_ or id_ in seen or not isinstance(block.get("name"), str):
                continue
            seen.add(id_)
            if not isinstance(block.get("input"), dict):
                usable.append({**block, "input": {"INVALID_JSON": str(block.get("input", ""))}})
                continue
        usable.append(block)
    return usable


def _without_last_thinking(blocks: list[Content]) -> list[Content]:
    while blocks and blocks[-1]["type"] in _THINKING:
        blocks.pop()
    return blocks
