"""Pure functions of a response: what Claude said, what it wants, whether it is done.

Specification sections 5.10 and 10.1. A response is the Messages API's: a dict, or an object of the SDK.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..tools.schemas import parse_tool_use
from ..types import Message, ToolCall, ToolResult


@dataclass(frozen=True, slots=True)
class ParsedResponse:
    """The parts of a response.

    Attributes:
        text_blocks: the text blocks, in order.
        tool_uses: the tool calls, in order.
        stop_reason: why the answer ended.
    """

    text_blocks: list[str]
    tool_uses: list[ToolCall]
    stop_reason: str | None


def as_dict(response: Any) -> dict[str, Any]:
    """A response as a plain dict.

    Raises:
        TypeError: it is neither a mapping nor an object of the SDK.
    """
    if isinstance(response, Mapping):
        return dict(response)
    for name in ("to_dict", "model_dump"):
        convert = getattr(response, name, None)
        if callable(convert):
            return dict(convert())
    raise TypeError(f"a response is a dict or an SDK message, not {type(response).__name__}")


def extract_tool_uses(response: Any) -> list[ToolCall]:
    """The tool calls of a response that may run.

    None may where the answer was cut (``max_tokens``): the last call's input may be half of what was meant.
    """
    answer = as_dict(response)
    if answer.get("stop_reason") not in ("tool_use", None):
        return []
    return [parse_tool_use(block) for block in _blocks(answer) if block.get("type") == "tool_use"]


def conversation_complete(response: Any) -> bool:
    """Whether nothing is left to do: no tool to run, and no paused turn to resume."""
    answer = as_dict(response)
    return answer.get("stop_reason") != "pause_turn" and not extract_tool_uses(answer)


def parse_response(response: Any) -> ParsedResponse:
    """The text blocks, tool calls and stop reason of a response.

    Raises:
        InvalidToolInputError: a tool_use block is malformed.
    """
    answer = as_dict(response)
    texts = [block["text"] for block in _blocks(answer) if block.get("type") == "text" and block.get("text")]
    return ParsedResponse(texts, extract_tool_uses(answer), answer.get("stop_reason"))


def format_tool_results_message(results: Sequence[ToolResult]) -> Message:
    """The one user message that answers all calls of a response, in order."""
    return {"role": "user", "content": [result.to_api() for result in results]}


def format_tool_results(results: Sequence[ToolResult]) -> list[Message]:
    """The messages that answer all calls of a response: one, or none when there are no results."""
    return [format_tool_results_message(results)] if results else []


def _blocks(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = answer.get("content") or []
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
