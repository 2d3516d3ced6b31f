"""What the loop relies on, whoever answers. A subclass gives the client and a request it can answer."""

from __future__ import annotations

import asyncio
import copy
import json
from contextlib import aclosing
from typing import Any

import pytest

from conjure_jupyter.clients import Client, MessageAccumulator, Request
from conjure_jupyter.testing import validate_messages


def ask(prompt: str = "Say hello", **fields: Any) -> Request:
    options: dict[str, Any] = {
        "model": "claude-sonnet-5-5",
        "max_tokens": 1000,
        "system": "Be brief.",
        "messages": [{"role": "user", "content": [{"type": "text", "text": prompt}]}],
        **fields,
    }
    return Request(**options)


async def answer(client: Client, request: Request) -> dict[str, Any]:
    accumulator = MessageAccumulator()
    async for event in client.stream(request):
        accumulator.add(event)
    assert accumulator.complete
    return accumulator.message


class ClientContract:
    """Override ``client`` (a fixture), and ``request_`` where the client needs a special one.

    Each test may stream up to three times.
    """

    @pytest.fixture
    def client(self) -> Client:
        raise NotImplementedError

    def request_(self) -> Request:
        return ask()

    async def test_the_stream_is_whole_and_in_order(self, client: Client) -> None:
        events = [event async for event in client.stream(self.request_())]
        kinds = [event["type"] for event in events]
        assert kinds[0] == "message_start"
        assert kinds[-2:] == ["message_delta", "message_stop"]
        assert kinds.count("message_start") == kinds.count("message_stop") == 1
        starts = [event["index"] for event in events if event["type"] == "content_block_start"]
        stops = [event["index"] for event in events if event["type"] == "content_block_stop"]
        assert starts == stops == list(range(len(starts)))
        assert starts, "an answer says something"
        assert "ping" not in kinds

    async def test_the_answer_can_become_history(self, client: Client) -> None:
        request = self.request_()
        message = await answer(client, request)
        assert message["role"] == "assistant"
        assert isinstance(message["stop_reason"], str)
        assert isinstance(message["usage"]["input_tokens"], int)
        assert isinstance(message["usage"]["output_tokens"], int)
        calls = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
        assert bool(calls) == (message["stop_reason"] == "tool_use")
        results: list[dict[str, Any]] = [
            {"type": "tool_result", "tool_use_id": call, "content": "ok"} for call in calls
        ]
        follow_up = {"role": "user", "content": [*results, {"type": "text", "text": "Go on"}]}
        validate_messages(
            [*request.messages, {"role": "assistant", "content": message["content"]}, follow_up]
        )

    async def test_events_are_json(self, client: Client) -> None:
        async for event in client.stream(self.request_()):
            assert json.loads(json.dumps(event)) == event

    async def test_the_request_stays_as_it_was(self, client: Client) -> None:
        request = self.request_()
        before = copy.deepcopy(request)
        await answer(client, request)
        assert request == before

    async def test_reading_may_stop_early(self, client: Client) -> None:
        async with aclosing(client.stream(self.request_())) as events:  # type: ignore[type-var]  # a generator
            async for _ in events:
                break
        assert (await answer(client, self.request_()))["content"]

    async def test_a_cancelled_reader_leaves_a_client_that_works(self, client: Client) -> None:
        started = asyncio.Event()

        async def read() -> None:
            async with aclosing(client.stream(self.request_())) as events:  # type: ignore[type-var]  # a generator
                async for _ in events:
                    started.set()
                    await asyncio.sleep(3600)

        task = asyncio.create_task(read())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await answer(client, self.request_()))["content"]

    async def test_tokens_are_counted_or_none(self, client: Client) -> None:
        count = await client.count_tokens(self.request_())
        assert count is None or count > 0

    async def test_it_says_what_it_is(self, client: Client) -> None:
        assert client.name == client.name.lower()
        assert client.name
        assert isinstance(client.live, bool)

    async def test_closing_twice_is_fine(self, client: Client) -> None:
        await answer(client, self.request_())
        await client.close()
        await client.close()
