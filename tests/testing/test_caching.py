"""The prompt cache's accounts."""

from __future__ import annotations

from typing import Any

from conjure_jupyter.testing import FakeClaude, PromptCache, count_input, text

LONG = "word " * 2000  # some 2,500 tokens
AUTOMATIC = {"type": "ephemeral"}


def body(*said: str, **fields: Any) -> dict[str, Any]:
    messages = [
        {"role": "assistant" if at % 2 else "user", "content": [text(words)]} for at, words in enumerate(said)
    ]
    return {"model": "claude-x", "system": LONG, "messages": messages, **fields}


def test_a_growing_conversation_reads_what_it_wrote() -> None:
    cache = PromptCache()
    first = cache.account(body("one", cache_control=AUTOMATIC), 0)
    assert first["cache_read_input_tokens"] == 0
    assert first["cache_creation_input_tokens"] == count_input(body("one"))
    assert first["input_tokens"] == 0
    second = cache.account(body("one", "two", "three", cache_control=AUTOMATIC), 1)
    assert second["cache_read_input_tokens"] == first["cache_creation_input_tokens"]
    whole = sum(
        second[name] for name in ("cache_read_input_tokens", "cache_creation_input_tokens", "input_tokens")
    )
    assert whole == count_input(body("one", "two", "three"))


def test_a_change_early_on_loses_everything_after_it() -> None:
    cache = PromptCache()
    cache.account(body("one", "two", "three", cache_control=AUTOMATIC), 0)
    changed = cache.account(body("ONE", "two", "three", cache_control=AUTOMATIC), 1)
    assert changed["cache_read_input_tokens"] == 0
    marked = [{"type": "text", "text": LONG, "cache_control": AUTOMATIC}]
    cache.account(body("one", system=marked, cache_control=AUTOMATIC), 2)
    kept = cache.account(body("ONE", system=marked, cache_control=AUTOMATIC), 3)
    assert kept["cache_read_input_tokens"] > 2000


def test_entries_end_unless_they_are_used() -> None:
    cache = PromptCache()
    request = body("one", cache_control=AUTOMATIC)
    cache.account(request, 0)
    assert cache.account(request, 299)["cache_read_input_tokens"]
    assert cache.account(request, 590)["cache_read_input_tokens"], "a read renews it"
    assert not cache.account(request, 900)["cache_read_input_tokens"]
    hour = body("one", cache_control={"type": "ephemeral", "ttl": "1h"})
    written = cache.account({**hour, "model": "claude-y"}, 1000)
    assert written["cache_creation"]["ephemeral_1h_input_tokens"] > 2000
    assert cache.account({**hour, "model": "claude-y"}, 4000)["cache_read_input_tokens"]


def test_short_prompts_and_other_models_are_not_read() -> None:
    cache = PromptCache()
    short = {**body("one", cache_control=AUTOMATIC), "system": "short"}
    cache.account(short, 0)
    usage = cache.account(short, 1)
    assert usage["cache_read_input_tokens"] == usage["cache_creation_input_tokens"] == 0
    cache.account(body("one", cache_control=AUTOMATIC), 0)
    assert not cache.account({**body("one", cache_control=AUTOMATIC), "model": "claude-z"}, 1)[
        "cache_read_input_tokens"
    ]


def test_the_service_looks_back_twenty_blocks() -> None:
    for added, expected in [(19, True), (20, False)]:
        cache = PromptCache()
        cache.account(body("one", cache_control=AUTOMATIC), 0)
        blocks = [text("one"), *(text(f"block {number}") for number in range(added))]
        longer = {**body("one", cache_control=AUTOMATIC), "messages": [{"role": "user", "content": blocks}]}
        assert bool(cache.account(longer, 1)["cache_read_input_tokens"]) is expected


def test_without_a_breakpoint_nothing_is_kept() -> None:
    cache = PromptCache()
    cache.account(body("one"), 0)
    assert cache.account(body("one"), 1)["input_tokens"] == count_input(body("one"))


def test_time_can_be_made_to_pass() -> None:
    with FakeClaude() as claude:
        assert claude.cached_share == 0
        claude.advance(301)
