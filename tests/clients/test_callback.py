"""A function as a client."""

from __future__ import annotations

import threading
from typing import Any

import anthropic
import pytest

from conjure_jupyter.clients import Client, Request
from conjure_jupyter.clients.callback import CallbackClient
from conjure_jupyter.errors import APIError, BudgetExceededError, RateLimitError
from conjure_jupyter.testing import FakeClaude, HTTPError, message, tool_use

from .contract import ClientContract, answer, ask


class TestBlocking(ClientContract):
    @pytest.fixture
    def client(self) -> Client:
        return CallbackClient(lambda messages: message("hello", tool_use("view", {"path": "x"})))


class TestAsynchronous(ClientContract):
    @pytest.fixture
    def client(self) -> Client:
        async def reply(messages: list[dict[str, Any]], request: Request) -> str:
            return f"{len(messages)} message for {request.model}"

        return CallbackClient(reply)


async def test_text_and_bare_content_become_messages() -> None:
    said = await answer(CallbackClient(lambda messages: "hello"), ask())
    assert said["content"] == [{"type": "text", "text": "hello"}]
    assert said["stop_reason"] == "end_turn"
    assert said["model"] == "claude-sonnet-5-5"
    call = tool_use("view", {})
    said = await answer(CallbackClient(lambda messages: {"content": [call]}), ask())
    assert said["stop_reason"] == "tool_use"


async def test_a_message_of_the_sdk_is_taken() -> None:
    with FakeClaude([message("from the SDK", tool_use("view", {"a": 1}, id="toolu_5"))]) as claude:
        sdk = anthropic.Anthropic(base_url=claude.url, api_key="k")

        def reply(messages: list[Any]) -> Any:
            return sdk.messages.create(model="claude-x", max_tokens=100, messages=messages)

        said = await answer(CallbackClient(reply), ask())
        sdk.close()
    assert said["content"][1] == {"type": "tool_use", "id": "toolu_5", "name": "view", "input": {"a": 1}}
    assert said["usage"]["input_tokens"] > 0


async def test_a_blocking_function_does_not_hold_up_the_loop() -> None:
    threads: list[str] = []

    def reply(messages: list[Any]) -> str:
        threads.append(threading.current_thread().name)
        return "hi"

    await answer(CallbackClient(reply), ask())
    assert threads != [threading.current_thread().name]


async def test_the_function_gets_a_list_of_its_own() -> None:
    def reply(messages: list[Any]) -> str:
        messages.clear()
        return "hi"

    request = ask()
    await answer(CallbackClient(reply), request)
    assert len(request.messages) == 1


async def test_exceptions_become_ours() -> None:
    def broken(messages: list[Any]) -> str:
        raise ZeroDivisionError("division by zero")

    with pytest.raises(APIError, match="ZeroDivisionError: division by zero") as raised:
        await answer(CallbackClient(broken), ask())
    assert isinstance(raised.value.__cause__, ZeroDivisionError)

    def over_budget(messages: list[Any]) -> str:
        raise BudgetExceededError("1", "2")

    with pytest.raises(BudgetExceededError):
        await answer(CallbackClient(over_budget), ask())

    with FakeClaude([HTTPError(429, retry_after=2)]) as claude:
        sdk = anthropic.AsyncAnthropic(base_url=claude.url, api_key="k", max_retries=0)

        async def limited(messages: list[Any]) -> Any:
            return await sdk.messages.create(model="claude-x", max_tokens=100, messages=messages)

        with pytest.raises(RateLimitError) as limit:
            await answer(CallbackClient(limited), ask())
        await sdk.close()
    assert limit.value.retry_after == 2


@pytest.mark.parametrize("nonsense", [None, 42, {"text": "x"}, {"content": ["x"]}, [{"type": "text"}]])
async def test_what_is_no_message_is_a_clear_error(nonsense: Any) -> None:
    with pytest.raises(APIError, match="callback returned"):
        await answer(CallbackClient(lambda messages: nonsense), ask())
