"""What the settings add to a request's body: thinking, effort, prompt caching."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conjure_jupyter.settings import Settings
from conjure_jupyter.types import Content, Message

#: Smallest thinking budget the API takes, in tokens.
MIN_THINKING = 1024


def request_fields(settings: Settings, max_tokens: int) -> dict[str, Any]:
    """The body fields that the settings ask for.

    Args:
        settings: the session's settings.
        max_tokens: most tokens of this request's answer; a thinking budget must stay below it, and where no
            budget fits the request goes without thinking.
    """
    fields: dict[str, Any] = {}
    if settings.thinking == "enabled":
        budget = min(settings.thinking_tokens, max_tokens - 1)
        if budget >= MIN_THINKING:
            fields["thinking"] = {"type": "enabled", "budget_tokens": budget}
    elif settings.thinking is not None:
        fields["thinking"] = {"type": settings.thinking}
    if settings.effort is not None:
        fields["output_config"] = {"effort": settings.effort}
    if settings.cache_ttl != "off":
        fields["cache_control"] = {"type": "ephemeral", "ttl": settings.cache_ttl}
    return fields


def with_block_caching(body: Mapping[str, Any]) -> dict[str, Any]:
    """``body`` with its top-level ``cache_control`` put on blocks, for services that only know it there.

    Marked are the system prompt, which tools come before, and the last block of the last message. The
    messages given stay as they are.
    """
    changed = dict(body)
    marker = changed.pop("cache_control", None)
    if marker is None:
        return changed
    system = changed.get("system")
    if isinstance(system, str) and system:
        changed["system"] = [{"type": "text", "text": system, "cache_control": marker}]
    messages: list[Message] = changed.get("messages", [])
    if messages:
        changed["messages"] = [*messages[:-1], _marked(messages[-1], marker)]
    return changed


def _marked(message: Message, marker: dict[str, Any]) -> Message:
    content = message["content"]
    blocks: list[Content] = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    if not blocks or blocks[-1]["type"] in ("thinking", "redacted_thinking"):
        return message
    blocks[-1] = {**blocks[-1], "cache_control": marker}
    return {**message, "content": blocks}
