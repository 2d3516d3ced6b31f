"""Anthropic's SDK in front of a real HTTP server: the ordinary course of things."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import pytest

from conjure_jupyter.clients import Client, choose_client
from conjure_jupyter.clients.anthropic import AnthropicClient
from conjure_jupyter.clients.callback import CallbackClient
from conjure_jupyter.clients.offline import OfflineClient
from conjure_jupyter.errors import SettingsError
from conjure_jupyter.settings import Settings
from conjure_jupyter.testing import Delay, FakeClaude, Wire, message, redacted_thinking, thinking, tool_use

from .conftest import MakeClient
from .contract import ClientContract, answer, ask


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that another thread does."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110  an event of this loop cannot be set by the server's thread
            await asyncio.sleep(0.02)


RICH = message(
    thinking("Let me look."),
    redacted_thinking(),
    "I will read it: äöü 🎈",
    tool_use("view", {"path": "a.txt", "view_range": [1, -1]}, id="toolu_1"),
)
VIEW = {"name": "view", "description": "Look", "input_schema": {"type": "object", "properties": {}}}


class TestEveryKind(ClientContract):
    @pytest.fixture
    def claude(self) -> Iterator[FakeClaude]:
        with FakeClaude(lambda body: RICH) as claude:
            yield claude

    @pytest.fixture
    def client(self, claude: FakeClaude, kind: str, make_client: MakeClient) -> Client:
        return make_client(claude, kind)


async def test_every_kind_gets_the_same_answer(kind: str, make_client: MakeClient) -> None:
    with FakeClaude([RICH]) as claude:
        said = await answer(make_client(claude, kind), ask(tools=[VIEW]))
    assert said["content"] == RICH["content"]
    assert said["stop_reason"] == "tool_use"
    sent = claude.requests[0].body
    assert sent["tools"] == [VIEW]
    assert sent["system"] == "Be brief."
    assert sent["stream"] is True
    assert sent["cache_control"] == {"type": "ephemeral", "ttl": "5m"}


async def test_empty_system_and_tools_are_left_out(make_client: MakeClient) -> None:
    with FakeClaude(["hi"]) as claude:
        await answer(make_client(claude, cache_ttl="off"), ask(system=""))
    assert sorted(claude.requests[0].body) == ["max_tokens", "messages", "model", "stream"]


async def test_settings_become_fields_and_extra_wins(make_client: MakeClient) -> None:
    with FakeClaude(["hi", "hi", "hi"]) as claude:
        client = make_client(claude, thinking="enabled", thinking_tokens=4000, effort="low", cache_ttl="1h")
        await answer(client, ask(max_tokens=3000))
        await answer(client, ask(max_tokens=1024))
        await answer(client, ask(extra={"thinking": {"type": "adaptive"}, "cache_control": None, "top_k": 5}))
    first, second, third = (request.body for request in claude.requests)
    assert first["thinking"] == {"type": "enabled", "budget_tokens": 2999}
    assert first["output_config"] == {"effort": "low"}
    assert first["cache_control"]["ttl"] == "1h"
    assert "thinking" not in second
    assert third["thinking"] == {"type": "adaptive"}
    assert "cache_control" not in third
    assert third["top_k"] == 5


async def test_unknown_fields_reach_every_kind_of_service(kind: str, make_client: MakeClient) -> None:
    with FakeClaude(["hi"]) as claude:
        await answer(make_client(claude, kind), ask(extra={"temperature": 0.5, "context_management": {}}))
    assert claude.requests[0].body["temperature"] == 0.5
    assert claude.requests[0].body["context_management"] == {}


async def test_tokens_are_counted_by_the_service(kind: str, make_client: MakeClient) -> None:
    with FakeClaude() as claude:
        client = make_client(claude, kind)
        few, many = await client.count_tokens(ask("a")), await client.count_tokens(ask("a" * 4000))
    assert few is not None
    assert many is not None
    assert many - few == pytest.approx(1000, abs=2)
    assert "max_tokens" not in claude.requests[0].body


async def test_a_service_that_cannot_count_is_no_error(kind: str, make_client: MakeClient) -> None:
    from conjure_jupyter.testing.http import Answer, Server

    server = Server(lambda *_: Answer(404, {"content-type": "text/plain"}, [b"404 page not found"]))
    try:
        with FakeClaude() as claude:
            client = make_client(_Elsewhere(claude, server.url), kind)
            assert await client.count_tokens(ask()) is None
            await client.close()
    finally:
        server.close()


class _Elsewhere:
    """Stands for a ``FakeClaude`` at another address."""

    def __init__(self, claude: FakeClaude, url: str) -> None:
        self.url = url
        self.env = {**claude.env, "ANTHROPIC_BASE_URL": url}


async def test_cancelling_reaches_the_service(kind: str, make_client: MakeClient) -> None:
    with FakeClaude([[Delay(per_event=0.05), message("x" * 4000)]]) as claude:
        client = make_client(claude, kind)
        seen = asyncio.Event()

        async def read() -> None:
            async for _ in client.stream(ask()):
                seen.set()

        task = asyncio.create_task(read())
        await seen.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: claude.requests[0].hung_up)


async def test_cancelling_does_not_wait_for_a_silent_service(kind: str, make_client: MakeClient) -> None:
    with FakeClaude([Delay(60)]) as claude:
        client = make_client(claude, kind)
        task = asyncio.create_task(answer(client, ask()))
        await until(lambda: bool(claude.requests))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 10)


async def test_a_finished_answer_leaves_its_connection_for_the_next(make_client: MakeClient) -> None:
    with FakeClaude(lambda body: "hi") as claude:
        client = make_client(claude)
        for _ in range(5):
            await answer(client, ask())
        assert claude.connections == 1


async def test_the_users_client_keeps_its_own_settings(make_client: MakeClient) -> None:
    with FakeClaude(["hi"]) as claude:
        given = anthropic.AsyncAnthropic(
            base_url=claude.url,
            api_key="old-style",
            default_headers={"X-Api-Key": "old-style", "anthropic-version": "2023-06-01"},
        )
        client = AnthropicClient(given, settings=Settings())
        await answer(client, ask())
        await client.close()
        assert not given.is_closed()
        await given.close()
    headers = claude.requests[0].headers
    assert headers["anthropic-version"] == "2023-06-01"
    assert headers["x-api-key"] == "old-style"


async def test_middleware_of_the_users_client_runs() -> None:
    seen: list[str] = []

    async def middleware(request: Any, call_next: Any) -> Any:
        seen.append(request.options.json_data["model"])
        return await call_next(request)

    with FakeClaude(["hi"]) as claude:
        given = anthropic.AsyncAnthropic(base_url=claude.url, api_key="k", middleware=[middleware])
        client = AnthropicClient(given, settings=Settings())
        assert (await answer(client, ask()))["content"] == [{"type": "text", "text": "hi"}]
        await client.close()
        await given.close()
    assert seen == ["claude-sonnet-5-5"]


async def test_vertex_marks_blocks_for_caching() -> None:
    pytest.importorskip("google.auth", reason="google-auth is not installed")
    with FakeClaude(["hi", "there"]) as claude:
        given = anthropic.AsyncAnthropicVertex(
            base_url=claude.url, region="eu", project_id="p", access_token="t"
        )
        client = AnthropicClient(given, settings=Settings())
        request = ask()
        await answer(client, request)
        await client.close()
        await given.close()
    sent = claude.requests[0].body
    assert "cache_control" not in sent
    assert sent["system"][-1]["cache_control"] == {"type": "ephemeral", "ttl": "5m"}
    assert sent["messages"][-1]["content"][-1]["cache_control"] == {"type": "ephemeral", "ttl": "5m"}
    assert "cache_control" not in request.messages[-1]["content"][-1]


async def test_a_look_alike_is_a_client_too() -> None:
    class Stream:
        def __init__(self, events: list[dict[str, Any]]) -> None:
            self.events = events

        def __iter__(self) -> Iterator[dict[str, Any]]:
            return iter(self.events)

    class Messages:
        def create(self, **arguments: Any) -> Stream:
            from conjure_jupyter.clients import message_events

            assert arguments["stream"] is True
            return Stream(list(message_events(message(f"{len(arguments['messages'])} message"))))

    class LookAlike:
        messages = Messages()

    client = choose_client(Settings(), LookAlike())
    assert isinstance(client, AnthropicClient)
    assert (await answer(client, ask()))["content"][0]["text"] == "1 message"
    assert await client.count_tokens(ask()) is None


async def test_one_client_serves_conversations_at_the_same_time(kind: str, make_client: MakeClient) -> None:
    def echo(body: dict[str, Any]) -> Any:
        return [Delay(0.02), message(body["messages"][0]["content"][0]["text"])]

    with FakeClaude(echo) as claude:
        client = make_client(claude, kind)
        said = await asyncio.gather(*(answer(client, ask(f"number {number}")) for number in range(6)))
    assert [one["content"][0]["text"] for one in said] == [f"number {number}" for number in range(6)]


async def test_all_at_once_or_byte_by_byte(make_client: MakeClient) -> None:
    forms = [
        Wire(fragment=1),
        Wire(whole=True),
        Wire(newline="\r\n", fragment=3),
        Wire(newline="\r"),
        Wire(multiline=True),
    ]
    with FakeClaude([[form, RICH] for form in forms]) as claude:
        client = make_client(claude)
        for _ in forms:
            assert (await answer(client, ask()))["content"] == RICH["content"]


class TestChoosing:
    def test_nothing_found_is_offline(self) -> None:
        assert isinstance(choose_client(Settings()), OfflineClient)

    def test_a_credential_or_a_base_url_is_claude(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
        assert isinstance(choose_client(Settings()), AnthropicClient)
        monkeypatch.delenv("ANTHROPIC_API_KEY")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:11434")
        assert isinstance(choose_client(Settings()), AnthropicClient)
        assert isinstance(choose_client(Settings(client="offline")), OfflineClient)

    def test_what_is_given_wins(self) -> None:
        assert isinstance(choose_client(Settings(client="anthropic"), lambda messages: "hi"), CallbackClient)
        given = OfflineClient()
        assert choose_client(Settings(client="anthropic"), given) is given
        sdk = anthropic.Anthropic(api_key="k")
        assert isinstance(choose_client(Settings(), sdk), AnthropicClient)
        sdk.close()

    def test_something_else_is_a_clear_error(self) -> None:
        with pytest.raises(SettingsError, match="int is neither"):
            choose_client(Settings(), 42)

    def test_choosing_imports_no_sdk(self) -> None:
        code = (
            "import sys; from conjure_jupyter.clients import choose_client;"
            "from conjure_jupyter.settings import Settings;"
            "print(type(choose_client(Settings(client='anthropic'))).__name__);"
            "assert not {'anthropic', 'httpx2', 'pydantic'} & set(sys.modules)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.stdout == "AnthropicClient\n", done.stderr


def test_the_sdk_is_warmed_in_the_background() -> None:
    code = (
        "import sys, threading, conjure_jupyter.clients.anthropic as c; c.warm_up();"
        "[t.join() for t in threading.enumerate() if t.name == 'conjure-warm-up'];"
        "assert 'anthropic' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_client_used_by_the_users_loop_first() -> None:
    """The connections it has open there must not be touched from the engine's loop."""
    with FakeClaude(lambda body: "hi") as claude:
        given = anthropic.AsyncAnthropic(base_url=claude.url, api_key="k", max_retries=0)

        async def use_it_directly() -> None:
            await given.messages.create(
                model="claude-x", max_tokens=10, messages=[{"role": "user", "content": "hi"}]
            )

        users_loop = asyncio.new_event_loop()
        users_loop.run_until_complete(use_it_directly())
        said: list[Any] = []

        async def use_it_here() -> None:
            client = AnthropicClient(given, settings=Settings())
            said.append(await answer(client, ask()))
            await client.close()

        thread = threading.Thread(target=lambda: asyncio.run(use_it_here()))
        thread.start()
        thread.join()
        users_loop.run_until_complete(use_it_directly())
        users_loop.run_until_complete(given.close())
        users_loop.close()
    assert said[0]["content"][0]["text"] == "hi"
    assert [request.status for request in claude.requests] == [200, 200, 200]
