"""What a scripted Claude says: content blocks and messages in the API's form."""

from __future__ import annotations

import base64
import hashlib
import itertools
from typing import Any, TypeAlias

from conjure_jupyter.types import Content, Message, Usage

_ids = itertools.count(1)

#: A block, or text for a text block.
Block: TypeAlias = Content | str


def text(words: str) -> Content:
    """A text block."""
    return {"type": "text", "text": words}


def thinking(words: str, signature: str | None = None) -> Content:
    """A thinking block; its signature fits the text unless another is given."""
    return {
        "type": "thinking",
        "thinking": words,
        "signature": sign(words) if signature is None else signature,
    }


def redacted_thinking(data: str = "ZW5jcnlwdGVk") -> Content:
    """A block of thinking that the service encrypted."""
    return {"type": "redacted_thinking", "data": data}


def tool_use(name: str, tool_input: dict[str, Any], id: str | None = None) -> Content:  # noqa: A002  the API's name
    """A tool call; without an ``id`` it gets one that is unique in this process."""
    return {"type": "tool_use", "id": id or f"toolu_{next(_ids):06d}", "name": name, "input": tool_input}


def message(
    *blocks: Block, stop_reason: str | None = None, usage: Usage | None = None, **fields: Any
) -> Message:
    """A message of Claude's.

    Args:
        blocks: its content; plain text stands for a text block.
        stop_reason: default is ``tool_use`` when there is a call, else ``end_turn``.
        usage: token counts that replace those the server works out.
        fields: further fields of the message, such as ``container`` or ``stop_sequence``.
    """
    content = [text(block) if isinstance(block, str) else block for block in blocks]
    if stop_reason is None:
        calls = any(block["type"] == "tool_use" for block in content)
        stop_reason = "tool_use" if calls else "end_turn"
    built: Message = {"role": "assistant", "content": content, "stop_reason": stop_reason, **fields}
    if usage is not None:
        built["usage"] = usage
    return built


def sign(words: str) -> str:
    """The signature that a thinking block of these words carries here."""
    return base64.b64encode(hashlib.sha256(b"fake-claude:" + words.encode()).digest()).decode()
