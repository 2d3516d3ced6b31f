"""Token counts and the accounts of the service's prompt cache.

The service reads a prompt as tools, then system, then messages. What a breakpoint covers is kept under the
hash of everything up to it; a later request reads the longest prefix that was kept, looking back over at
most 20 blocks from each of its own breakpoints. Prefixes under 1,024 tokens are not kept.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from conjure_jupyter.types import Content, Usage

MIN_TOKENS = 1024
LOOKBACK = 20
#: Bytes of a block's JSON that count as one token.
BYTES_PER_TOKEN = 4
#: Tokens of an image, whatever its size.
IMAGE_TOKENS = 1600
#: Seconds an entry lives after its last use.
LIFETIMES = {"5m": 300.0, "1h": 3600.0}


@dataclass(frozen=True, slots=True)
class _Step:
    """One block of a prompt: the hash and tokens of everything up to and including it."""

    digest: bytes
    tokens: int
    cache_control: dict[str, Any] | None
    cacheable: bool


class PromptCache:
    """What the service keeps of earlier prompts."""

    def __init__(self) -> None:
        self._expires: dict[tuple[str, bytes], float] = {}
        self._lifetime: dict[tuple[str, bytes], float] = {}

    def account(self, body: Mapping[str, Any], now: float) -> Usage:
        """The input side of ``usage`` for a request, which also changes what is kept.

        Args:
            body: a valid request.
            now: the time, in seconds.
        """
        steps = _steps(body)
        total = steps[-1].tokens
        points = _breakpoints(body, steps)
        points = [(at, ttl) for at, ttl in points if steps[at].tokens >= MIN_TOKENS]
        if not points:
            return _usage(total, 0, {})
        model = body["model"]
        hit = -1
        for at, _ in points:
            for back in range(at, max(-1, at - LOOKBACK), -1):
                key = (model, steps[back].digest)
                if self._expires.get(key, 0.0) > now:
                    self._expires[key] = now + self._lifetime[key]
                    hit = max(hit, back)
                    break
        read = steps[hit].tokens if hit >= 0 else 0
        written: dict[str, int] = {}
        covered = read
        for at, ttl in points:
            key = (model, steps[at].digest)
            self._lifetime[key] = LIFETIMES[ttl]
            self._expires[key] = now + LIFETIMES[ttl]
            if steps[at].tokens > covered:
                written[ttl] = written.get(ttl, 0) + steps[at].tokens - covered
                covered = steps[at].tokens
        return _usage(total - covered, read, written)


def count_input(body: Mapping[str, Any]) -> int:
    """Tokens of a request's prompt: the same for the same prompt, wherever it is counted."""
    return _steps(body)[-1].tokens


def count_output(content: list[Content]) -> int:
    """Tokens of an answer."""
    return max(1, sum(_tokens(block) for block in content))


def _usage(fresh: int, read: int, written: dict[str, int]) -> Usage:
    return {
        "input_tokens": fresh,
        "cache_creation_input_tokens": sum(written.values()),
        "cache_read_input_tokens": read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": written.get("5m", 0),
            "ephemeral_1h_input_tokens": written.get("1h", 0),
        },
    }


def _steps(body: Mapping[str, Any]) -> list[_Step]:
    steps: list[_Step] = []
    digest, tokens = b"", 0

    def add(label: str, block: Content) -> None:
        nonlocal digest, tokens
        plain = {name: value for name, value in block.items() if name != "cache_control"}
        written = json.dumps([label, plain], ensure_ascii=False).encode("utf-8", "replace")
        digest = hashlib.sha256(digest + written).digest()
        tokens += _tokens(plain)
        cacheable = block.get("type") not in ("thinking", "redacted_thinking")
        steps.append(_Step(digest, tokens, block.get("cache_control"), cacheable))

    for tool in body.get("tools") or ():
        add("tool", tool)
    system = body.get("system") or []
    for block in [{"type": "text", "text": system}] if isinstance(system, str) else system:
        add("system", block)
    # A change of these keeps what was kept of tools and system, and nothing of the messages.
    options = json.dumps([body.get("tool_choice"), body.get("thinking")])
    for message in body["messages"]:
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            add(f"{options}:{message['role']}", block)
    return steps


def _breakpoints(body: Mapping[str, Any], steps: list[_Step]) -> list[tuple[int, str]]:
    points = {at: step.cache_control for at, step in enumerate(steps) if step.cache_control is not None}
    automatic = body.get("cache_control")
    if automatic is not None:
        last = next((at for at in range(len(steps) - 1, -1, -1) if steps[at].cacheable), None)
        if last is not None:
            points.setdefault(last, automatic)
    return [(at, points[at].get("ttl", "5m")) for at in sorted(points)]


def _tokens(block: Any) -> int:
    if isinstance(block, dict) and block.get("type") == "image":
        return IMAGE_TOKENS
    if (
        isinstance(block, dict)
        and block.get("type") == "tool_result"
        and isinstance(block.get("content"), list)
    ):
        return 10 + sum(_tokens(part) for part in block["content"])
    written = json.dumps(block, ensure_ascii=False).encode("utf-8", "replace")
    return len(written) // BYTES_PER_TOKEN + 1
