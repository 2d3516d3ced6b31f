"""The rules by which the Messages API refuses a request.

Written after the API's documentation and the errors it is known to give; the wording is close to its own.
What the API takes is taken here, and what it refuses is refused, so that a history that passes here can be
sent.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from conjure_jupyter.errors import InvalidRequestError
from conjure_jupyter.types import Content, Message

from .builders import sign

MAX_MESSAGES = 100_000
MAX_BREAKPOINTS = 4
MAX_IMAGE = 5 * 1024 * 1024

_FIELDS = frozenset(
    (
        *("model", "max_tokens", "messages", "system", "tools", "tool_choice", "stream", "stop_sequences"),
        *("metadata", "thinking", "output_config", "cache_control", "container", "service_tier", "speed"),
        *(
            "temperature",
            "top_p",
            "top_k",
            "context_management",
            "mcp_servers",
            "inference_geo",
            "diagnostics",
        ),
    )
)
_TOOL_FIELDS = (
    *("name", "description", "input_schema", "type", "cache_control", "strict", "eager_input_streaming"),
    *("defer_loading", "allowed_callers", "input_examples"),
)
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_ID = re.compile(r"[a-zA-Z0-9_-]+")
_IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_RESULT_BLOCKS = ("text", "image", "document", "search_result", "tool_reference")
_USER_BLOCKS = ("text", "image", "document", "search_result", "tool_result", "container_upload")
_ASSISTANT_BLOCKS = ("text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "compaction")

#: Tells whether a signature belongs to a thinking block's text.
SignatureCheck = Callable[[str, str], bool]


def refuse(reason: str, *, status: int = 400, error_type: str = "invalid_request_error") -> NoReturn:
    """Raise what the API would answer.

    Raises:
        InvalidRequestError: always.
    """
    raise InvalidRequestError(reason, status=status, error_type=error_type)


def signed_here(words: str, signature: str) -> bool:
    """Whether the signature is the one that ``thinking`` gives a block of these words."""
    return signature == sign(words)


def validate_request(
    body: Mapping[str, Any], *, counting: bool = False, signed: SignatureCheck = signed_here
) -> None:
    """Check a request as the API does before it answers.

    Args:
        body: the request's body.
        counting: the request only asks for its number of tokens.
        signed: tells whether a thinking block's signature is genuine.

    Raises:
        InvalidRequestError: the API would refuse it; ``status`` and ``error_type`` are the API's.
    """
    for name in body:
        if name not in _FIELDS:
            refuse(f"{name}: Extra inputs are not permitted")
    if not isinstance(body.get("model"), str) or not body["model"]:
        refuse("model: Field required")
    if not counting:
        _max_tokens(body)
    _system(body.get("system"))
    _tools(body.get("tools"))
    _thinking_option(body)
    validate_messages(body.get("messages"), signed=signed)
    _thinking_first(body)
    _breakpoints(body)


def validate_messages(messages: Any, *, signed: SignatureCheck = signed_here) -> None:
    """Check a conversation: roles, content, and that every tool call has its result.

    Raises:
        InvalidRequestError: the API would refuse it.
    """
    if not isinstance(messages, list) or not messages:
        refuse("messages: at least one message is required")
    if len(messages) > MAX_MESSAGES:
        refuse(f"messages: at most {MAX_MESSAGES} messages are allowed")
    seen: set[str] = set()
    open_calls: list[str] = []
    for index, message in enumerate(messages):
        where = f"messages.{index}"
        blocks = _message(where, message)
        if index == 0 and message["role"] != "user":
            refuse("messages: first message must use the user role")
        _results(where, index, blocks, open_calls)
        open_calls = []
        for at, block in enumerate(blocks):
            _block(f"{where}.content.{at}", block, message["role"], signed)
            if block["type"] in ("tool_use", "server_tool_use"):
                if block["id"] in seen:
                    refuse(f"{where}.content.{at}: `tool_use` ids must be unique")
                seen.add(block["id"])
                if block["type"] == "tool_use":
                    open_calls.append(block["id"])
    if open_calls:
        refuse(_unanswered(len(messages) - 1, open_calls))
    _ending(messages)


def _message(where: str, message: Any) -> list[Content]:
    if not isinstance(message, dict) or message.get("role") not in ("user", "assistant"):
        refuse(f"{where}: role must be 'user' or 'assistant'")
    for name in message:
        if name not in ("role", "content"):
            refuse(f"{where}.{name}: Extra inputs are not permitted")
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list) or not content:
        refuse(f"{where}: all messages must have non-empty content")
    for at, block in enumerate(content):
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            refuse(f"{where}.content.{at}: Input should be a content block")
    return content


def _results(where: str, index: int, blocks: list[Content], open_calls: list[str]) -> None:
    """Every call of the message before is answered here, once, before anything else."""
    results = [block.get("tool_use_id") for block in blocks if block["type"] == "tool_result"]
    for at, result in enumerate(results):
        if result not in open_calls:
            refuse(f"{where}.content.{at}: unexpected `tool_use_id` found in `tool_result` blocks: {result}")
    if len(set(results)) != len(results):
        refuse(f"{where}: each `tool_use` must have a single result")
    leading = next((at for at, block in enumerate(blocks) if block["type"] != "tool_result"), len(blocks))
    missing = [call for call in open_calls if call not in results[:leading]]
    if missing:
        refuse(_unanswered(index - 1, missing))


def _unanswered(index: int, calls: list[str]) -> str:
    return (
        f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(calls)}"
    )


def _block(where: str, block: Content, role: str, signed: SignatureCheck) -> None:
    kind = block["type"]
    allowed = _USER_BLOCKS if role == "user" else _ASSISTANT_BLOCKS
    if kind not in allowed and not (role == "assistant" and kind.endswith("_tool_result")):
        refuse(f"{where}: `{kind}` blocks are not permitted in {role} messages")
    if kind in _CHECKS:
        _CHECKS[kind](where, block)
    if kind == "thinking":
        words, signature = block.get("thinking"), block.get("signature")
        if not isinstance(words, str) or not isinstance(signature, str):
            refuse(f"{where}.signature: Field required")
        if not signed(words, signature):
            refuse(f"{where}: Invalid `signature` in `thinking` block")


def _text(where: str, block: Content) -> None:
    words = block.get("text")
    if not isinstance(words, str):
        refuse(f"{where}.text: Input should be a valid string")
    if not words:
        refuse(f"{where}: text content blocks must be non-empty")
    if not words.strip():
        refuse(f"{where}: text content blocks must contain non-whitespace text")
    _only(where, block, ("type", "text", "citations", "cache_control"))


def _call(where: str, block: Content) -> None:
    if not isinstance(block.get("id"), str) or not _ID.fullmatch(block["id"]):
        refuse(f"{where}.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
    if not isinstance(block.get("name"), str) or not _NAME.fullmatch(block["name"]):
        refuse(f"{where}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
    if not isinstance(block.get("input"), dict):
        refuse(f"{where}.input: Input should be a valid dictionary")


def _result(where: str, block: Content) -> None:
    _only(where, block, ("type", "tool_use_id", "content", "is_error", "cache_control"))
    content = block.get("content", "")
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        refuse(f"{where}.content: Input should be a string or a list of content blocks")
    for at, part in enumerate(content):
        place = f"{where}.content.{at}"
        if not isinstance(part, dict) or part.get("type") not in _RESULT_BLOCKS:
            refuse(f"{place}: Input tag does not match any of the expected tags")
        if block.get("is_error") and part["type"] != "text":
            refuse(f"{where}: all content must be type `text` if `is_error` is true")
        if part["type"] in _CHECKS:
            _CHECKS[part["type"]](place, part)


def _image(where: str, block: Content) -> None:
    source = _source(where, block)
    if source["type"] != "base64":
        return
    if source.get("media_type") not in _IMAGE_TYPES:
        refuse(f"{where}.source.base64.media_type: Input should be {', '.join(_IMAGE_TYPES)}")
    if _decoded(where, source) > MAX_IMAGE:
        refuse(f"{where}.source.base64: image exceeds 5 MB maximum")


def _document(where: str, block: Content) -> None:
    source = _source(where, block)
    if source["type"] == "base64":
        if source.get("media_type") != "application/pdf":
            refuse(f"{where}.source.base64.media_type: Input should be 'application/pdf'")
        _decoded(where, source)


def _source(where: str, block: Content) -> dict[str, Any]:
    source = block.get("source")
    if not isinstance(source, dict) or source.get("type") not in ("base64", "url", "file", "text", "content"):
        refuse(f"{where}.source: Field required")
    return source


def _decoded(where: str, source: dict[str, Any]) -> int:
    """Bytes of the source's data."""
    try:
        return len(base64.b64decode(source["data"], validate=True))
    except (KeyError, TypeError, binascii.Error):
        refuse(f"{where}.source.base64.data: invalid base64 data")


_CHECKS: dict[str, Callable[[str, Content], None]] = {
    "text": _text,
    "tool_use": _call,
    "server_tool_use": _call,
    "tool_result": _result,
    "image": _image,
    "document": _document,
}


def _only(where: str, block: Content, names: tuple[str, ...]) -> None:
    for name in block:
        if name not in names:
            refuse(f"{where}.{name}: Extra inputs are not permitted")


def _ending(messages: list[Message]) -> None:
    """A conversation ends with the user's words, or with server tools that go on after ``pause_turn``."""
    last = messages[-1]
    if last["role"] == "user":
        return
    content = last["content"]
    kind = "text" if isinstance(content, str) else content[-1]["type"]
    if kind in ("text", "thinking", "redacted_thinking"):
        refuse("This model does not support assistant message prefill: the last message must be a user's.")


def _max_tokens(body: Mapping[str, Any]) -> None:
    limit = body.get("max_tokens")
    if not isinstance(limit, int) or isinstance(limit, bool):
        refuse("max_tokens: Field required")
    if limit < 0:
        refuse("max_tokens: Input should be greater than or equal to 0")


def _system(system: Any) -> None:
    if system is None or isinstance(system, str):
        return
    if not isinstance(system, list):
        refuse("system: Input should be a string or a list of text blocks")
    for at, block in enumerate(system):
        if not isinstance(block, dict) or block.get("type") != "text":
            refuse(f"system.{at}: Input should be a text block")
        _text(f"system.{at}", block)


def _tools(tools: Any) -> None:
    if tools is None:
        return
    if not isinstance(tools, list):
        refuse("tools: Input should be a valid list")
    names: set[str] = set()
    for at, tool in enumerate(tools):
        where = f"tools.{at}"
        if not isinstance(tool, dict):
            refuse(f"{where}: Input should be a valid dictionary")
        if tool.get("type", "custom") != "custom":
            continue  # a tool of the service's own: its shape is the service's
        _only(f"{where}.custom", tool, _TOOL_FIELDS)
        name = tool.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            refuse(f"{where}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
        if name in names:
            refuse("tools: Tool names must be unique.")
        names.add(name)
        schema = tool.get("input_schema")
        if not isinstance(schema, dict) or schema.get("type") != "object":
            refuse(f"{where}.custom.input_schema.type: Field required")
        if not isinstance(schema.get("properties", {}), dict) or not isinstance(
            schema.get("required", []), list
        ):
            refuse(f"{where}.custom.input_schema: JSON schema is invalid")


def _thinking_option(body: Mapping[str, Any]) -> None:
    option = body.get("thinking")
    if option is None:
        return
    if not isinstance(option, dict) or option.get("type") not in ("adaptive", "enabled", "disabled"):
        refuse("thinking.type: Input should be 'adaptive', 'enabled' or 'disabled'")
    if option["type"] != "enabled":
        return
    budget = option.get("budget_tokens")
    if not isinstance(budget, int) or budget < 1024:
        refuse("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
    if budget >= body.get("max_tokens", budget + 1):
        refuse("`max_tokens` must be greater than `thinking.budget_tokens`")


def _thinking_first(body: Mapping[str, Any]) -> None:
    """With a thinking budget, the message whose calls are being answered starts with its thinking."""
    messages = body["messages"]
    if (body.get("thinking") or {}).get("type") != "enabled" or len(messages) < 2:
        return
    answered = (
        isinstance(messages[-1]["content"], list) and messages[-1]["content"][0]["type"] == "tool_result"
    )
    if answered and messages[-2]["content"][0]["type"] not in ("thinking", "redacted_thinking"):
        refuse(
            f"messages.{len(messages) - 2}.content.0.type: Expected `thinking` or `redacted_thinking`, "
            f"but found `{messages[-2]['content'][0]['type']}`"
        )


def _breakpoints(body: Mapping[str, Any]) -> None:
    marked = [block for block in prompt_blocks(body) if "cache_control" in block]
    controls = [block["cache_control"] for block in marked]
    if body.get("cache_control") is not None:
        controls.append(body["cache_control"])
    for control in controls:
        if not isinstance(control, dict) or control.get("type") != "ephemeral":
            refuse("cache_control.type: Input should be 'ephemeral'")
        if control.get("ttl", "5m") not in ("5m", "1h"):
            refuse("cache_control.ttl: Input should be '5m' or '1h'")
    if len(controls) > MAX_BREAKPOINTS:
        refuse(f"A maximum of 4 blocks with cache_control may be provided. Found {len(controls)}.")
    if any(block["type"] in ("thinking", "redacted_thinking") for block in marked if "type" in block):
        refuse("cache_control cannot be set on thinking blocks")
    lives = [control.get("ttl", "5m") for control in controls]
    if "1h" in lives[lives.index("5m") :] if "5m" in lives else False:
        refuse("a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block")


def prompt_blocks(body: Mapping[str, Any]) -> list[Content]:
    """The parts of a prompt in the order in which the service reads them: tools, system, messages."""
    system = body.get("system") or []
    blocks: list[Content] = list(body.get("tools") or ())
    blocks += [{"type": "text", "text": system}] if isinstance(system, str) else system
    for message in body["messages"]:
        content = message["content"]
        blocks += [{"type": "text", "text": content}] if isinstance(content, str) else content
    return blocks
