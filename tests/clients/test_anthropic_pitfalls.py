"""Each trap of the SDK and the API, sprung over a real connection."""

from __future__ import annotations

import itertools
import json
from typing import Any

import anthropic
import pytest

from conjure_jupyter.clients import Client, MessageAccumulator
from conjure_jupyter.clients.anthropic import AnthropicClient
from conjure_jupyter.errors import (
    APIConnectionError,
    APIError,
    APITimeoutError,
    InvalidRequestError,
    MissingCredentialError,
    OverloadedError,
    ServerError,
    SettingsError,
    StreamInterruptedError,
)
from conjure_jupyter.settings import Settings
from conjure_jupyter.testing import (
    CutConnection,
    Delay,
    EndEarly,
    FakeClaude,
    Malformed,
    StreamError,
    Wire,
    message,
    redacted_thinking,
    thinking,
    tool_use,
)

from .conftest import MakeClient
from .contract import answer, ask

PLAIN = ["own", "async", "blocking"]


async def failing(client: Client, **fields: Any) -> tuple[APIError, MessageAccumulator]:
    """The error of a request, and what came before it."""
    accumulator = MessageAccumulator()

    async def read() -> None:
        async for event in client.stream(ask(**fields)):
            accumulator.add(event)

    with pytest.raises(APIError) as raised:
        await read()
    return raised.value, accumulator


async def test_credential_and_version_are_sent_as_the_sdk_does(make_client: MakeClient) -> None:
    with FakeClaude(["hi"], api_key="sk-secret-key") as claude:
        await answer(make_client(claude), ask())
    headers = claude.requests[0].headers
    assert headers["authorization"] == "Bearer sk-secret-key"
    assert headers["anthropic-version"] == "2026-10-21"


async def test_a_missing_credential_is_told_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    client = AnthropicClient(settings=Settings())
    with pytest.raises(MissingCredentialError, match="ANTHROPIC_API_KEY"):
        await answer(client, ask())
    with pytest.raises(MissingCredentialError, match="CONJURE_CLIENT=offline"):
        await client.count_tokens(ask())


async def test_a_client_object_without_a_credential_is_told_the_same() -> None:
    with FakeClaude() as claude:
        given = anthropic.AsyncAnthropic(base_url=claude.url)
        client = AnthropicClient(given, settings=Settings())
        with pytest.raises(MissingCredentialError, match="ANTHROPIC_API_KEY"):
            await answer(client, ask())
        await client.close()
        await given.close()
    assert claude.requests == []


async def test_a_credential_set_later_is_found(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = AnthropicClient(settings=Settings())
    with pytest.raises(MissingCredentialError):
        await answer(client, ask())
    with FakeClaude(["hi"]) as claude:
        for name, value in claude.env.items():
            monkeypatch.setenv(name, value)
        assert await answer(client, ask())
        await client.close()


async def test_a_compatible_server_needs_no_credential(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is missing is not made up: the request goes out without ``Authorization``."""
    with FakeClaude(["hi"]) as claude:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", claude.url)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        client = AnthropicClient(settings=Settings())
        error, _ = await failing(client)
        await client.close()
    assert error.status == 401
    assert "authorization" not in claude.requests[0].headers
    assert "x-api-key" not in claude.requests[0].headers


@pytest.mark.parametrize("url", ["http://localhost:1234/v1", "https://user:password@llm.example/api/v1/"])
def test_a_base_url_with_the_version_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
    with pytest.raises(SettingsError, match="leave out the /v1") as raised:
        AnthropicClient(settings=Settings())
    assert "password" not in str(raised.value)
    monkeypatch.delenv("ANTHROPIC_BASE_URL")
    with pytest.raises(SettingsError, match="leave out the /v1"):
        AnthropicClient(anthropic.AsyncAnthropic(base_url=url, api_key="k"), settings=Settings())


async def test_proxy_variables_do_not_catch_the_loopback(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with FakeClaude(["hi"]) as claude:
        assert await answer(make_client(claude), ask())


async def test_a_large_max_tokens_is_fine_because_answers_are_streamed(
    kind: str, make_client: MakeClient
) -> None:
    with FakeClaude(["hi"]) as claude:
        assert await answer(make_client(claude, kind), ask(max_tokens=64_000))


async def test_sampling_options_still_reach_older_models(make_client: MakeClient) -> None:
    with FakeClaude(["hi"]) as claude:
        await answer(make_client(claude), ask(extra={"temperature": 0, "top_p": 0.9}))
    assert claude.requests[0].body["temperature"] == 0


async def test_a_stream_without_its_end_is_an_error(kind: str, make_client: MakeClient) -> None:
    with FakeClaude([[EndEarly(), message("half an answer")]]) as claude:
        error, seen = await failing(make_client(claude, kind))
    assert type(error) is StreamInterruptedError
    assert error.retryable
    assert error.request_id == "req_fake_0001"
    assert seen.partial()["content"] == [{"type": "text", "text": "half an answer"}]


@pytest.mark.parametrize("cut", [CutConnection(after_events=5), CutConnection(after_bytes=700)])
async def test_a_dropped_connection_is_an_error(
    cut: CutConnection, kind: str, make_client: MakeClient
) -> None:
    with FakeClaude([[cut, message("A long answer. " * 40)]]) as claude:
        error, _ = await failing(make_client(claude, kind))
    assert type(error) is StreamInterruptedError


async def test_a_connection_dropped_before_the_answer(kind: str, make_client: MakeClient) -> None:
    with FakeClaude([CutConnection()]) as claude:
        error, _ = await failing(make_client(claude, kind))
    assert isinstance(error, APIConnectionError)
    assert error.retryable
    assert len(claude.requests) == 1, "no hidden retry"


async def test_no_server_at_all(kind: str, make_client: MakeClient) -> None:
    with FakeClaude() as claude:
        client = make_client(claude, kind)
    error, _ = await failing(client)
    assert type(error) is APIConnectionError
    assert "127.0.0.1" in error.message


async def test_a_slow_service_is_a_time_out(make_client: MakeClient) -> None:
    with FakeClaude([Delay(30), [Delay(per_event=30), message("hi")]]) as claude:
        client = make_client(claude, api_timeout=0.2)
        before, _ = await failing(client)
        during, _ = await failing(client)
    assert type(before) is type(during) is APITimeoutError
    assert isinstance(before, TimeoutError)


@pytest.mark.parametrize(
    ("kind_of_error", "expected"),
    [
        ("overloaded_error", OverloadedError),
        ("api_error", ServerError),
        ("invalid_request_error", InvalidRequestError),
    ],
)
async def test_an_error_in_the_stream_is_told_by_its_type(
    kind_of_error: str, expected: type[APIError], kind: str, make_client: MakeClient
) -> None:
    with FakeClaude([[StreamError(kind_of_error, after_events=5), message("half an answer")]]) as claude:
        error, _ = await failing(make_client(claude, kind))
    assert type(error) is expected
    assert error.error_type == kind_of_error
    assert error.request_id == "req_fake_0001"
    assert "Overloaded" in error.message


@pytest.mark.parametrize("kind", PLAIN)
async def test_events_without_their_name_are_understood(kind: str, make_client: MakeClient) -> None:
    with FakeClaude([[Wire(event_names=False), message("hi", tool_use("view", {}))]]) as claude:
        said = await answer(make_client(claude, kind), ask())
    assert [block["type"] for block in said["content"]] == ["text", "tool_use"]


@pytest.mark.parametrize("kind", ["foundry", "blocking foundry"])
async def test_events_without_their_name_are_no_empty_answer(kind: str, make_client: MakeClient) -> None:
    """The SDK drops them in silence; what must not happen is a turn that looks done."""
    with FakeClaude([[Wire(event_names=False), message("hi")]]) as claude:
        error, _ = await failing(make_client(claude, kind))
    assert type(error) is StreamInterruptedError


async def test_an_event_that_is_no_json(kind: str, make_client: MakeClient) -> None:
    with FakeClaude([[Malformed(), message("hi")]]) as claude:
        error, _ = await failing(make_client(claude, kind))
    assert type(error) is StreamInterruptedError


async def test_unknown_blocks_are_kept_as_they_came(kind: str, make_client: MakeClient) -> None:
    novel = {"type": "hologram", "data": {"points": [1, 2.5, None]}, "caption": "new"}
    result = {
        "type": "bash_code_execution_tool_result",
        "tool_use_id": "srvtoolu_1",
        "content": {"type": "bash_code_execution_result", "stdout": "x", "new_field": True},
    }
    call = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "bash", "input": {"command": "ls"}}
    with FakeClaude([message(call, result, novel, "done")]) as claude:
        said = await answer(make_client(claude, kind), ask())
    assert said["content"] == [call, result, novel, {"type": "text", "text": "done"}]


async def test_a_tool_input_cut_by_max_tokens_is_not_sent_back(kind: str, make_client: MakeClient) -> None:
    cut = message(
        "Writing", tool_use("create_file", {"path": "a.txt"}, id="toolu_9"), stop_reason="max_tokens"
    )
    with FakeClaude([cut]) as claude:
        accumulator = MessageAccumulator()
        async for event in make_client(claude, kind).stream(ask()):
            accumulator.add(event)
    assert accumulator.message["stop_reason"] == "max_tokens"
    assert accumulator.partial()["content"] == [{"type": "text", "text": "Writing"}]


async def test_thinking_goes_back_verbatim(kind: str, make_client: MakeClient) -> None:
    first = message(
        thinking("Hm, a file…"), redacted_thinking(), tool_use("view", {"path": "x"}, id="toolu_2")
    )
    with FakeClaude([first, "done"]) as claude:
        client = make_client(claude, kind, thinking="enabled", thinking_tokens=2000)
        request = ask(max_tokens=5000)
        said = await answer(client, request)
        history = [
            *request.messages,
            {"role": "assistant", "content": said["content"]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_2", "content": "ok"}]},
        ]
        assert (await answer(client, ask(messages=history, max_tokens=5000)))["stop_reason"] == "end_turn"
    assert claude.requests[1].body["messages"][1]["content"] == first["content"]


async def test_pause_turn_and_containers_go_on(kind: str, make_client: MakeClient) -> None:
    container = {"id": "container_1", "expires_at": "2026-11-21T00:00:00Z"}
    call = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "bash_code_execution", "input": {}}
    paused = message("Working", call, stop_reason="pause_turn", container=container)
    with FakeClaude([paused, "done"]) as claude:
        client = make_client(claude, kind)
        request = ask()
        said = await answer(client, request)
        assert said["container"]["id"] == "container_1"
        history = [*request.messages, {"role": "assistant", "content": said["content"]}]
        await answer(client, ask(messages=history, extra={"container": "container_1"}))
    assert claude.requests[1].body["container"] == "container_1"


async def test_the_history_is_the_same_bytes_from_request_to_request(make_client: MakeClient) -> None:
    with FakeClaude(lambda body: message("next", tool_use("view", {"z": 1, "a": "ü"}))) as claude:
        client = make_client(claude)
        await _rounds(client, 4)
    histories = [request.raw[request.raw.index(b'"messages":') : -2] for request in claude.requests]
    for before, after in itertools.pairwise(histories):
        assert after.startswith(before)
        assert len(after) > len(before)


async def test_a_changed_message_is_encoded_anew(make_client: MakeClient) -> None:
    with FakeClaude(lambda body: "hi") as claude:
        client = make_client(claude)
        request = ask("one")
        await answer(client, request)
        request.messages[0]["content"].append({"type": "text", "text": "two"})
        await answer(client, request)
        request.messages[0] = {"role": "user", "content": "three"}
        await answer(client, request)
    contents = [request.body["messages"][0]["content"] for request in claude.requests]
    assert [len(content) for content in contents[:2]] == [1, 2]
    assert contents[2] == "three"


async def test_nine_tenths_of_the_input_are_read_from_the_cache(kind: str, make_client: MakeClient) -> None:
    with FakeClaude(lambda body: message("next", tool_use("view", {"path": "data.csv"}))) as claude:
        await _rounds(make_client(claude, kind), 20, system="You are careful. " * 800)
    assert claude.cached_share >= 0.9


async def test_usage_adds_up_to_the_whole_input(make_client: MakeClient) -> None:
    with FakeClaude(["hi"]) as claude:
        client = make_client(claude)
        request = ask("word " * 2000)
        counted = await client.count_tokens(request)
        usage = (await answer(client, request))["usage"]
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    assert sum(usage[name] for name in names) == counted


async def test_what_json_cannot_carry_is_a_clear_error(make_client: MakeClient) -> None:
    with FakeClaude() as claude:
        client = make_client(claude)
        for value in (float("nan"), object()):
            error, _ = await failing(client, extra={"metadata": {"x": value}})
            assert type(error) is InvalidRequestError
            assert "JSON" in error.message
    assert claude.requests == []


async def test_half_a_character_does_not_stop_the_conversation(make_client: MakeClient) -> None:
    with FakeClaude(["hi"]) as claude:
        await answer(make_client(claude), ask("cut here \ud83d"))
    assert claude.requests[0].body["messages"][0]["content"][0]["text"] == "cut here ?"


async def _rounds(client: AnthropicClient, rounds: int, **fields: Any) -> None:
    history: list[dict[str, Any]] = [{"role": "user", "content": "Start"}]
    for _ in range(rounds):
        said = await answer(client, ask(messages=list(history), **fields))
        call = next(block["id"] for block in said["content"] if block["type"] == "tool_use")
        result = {"type": "tool_result", "tool_use_id": call, "content": "row " * 40}
        history += [{"role": "assistant", "content": said["content"]}, {"role": "user", "content": [result]}]
    assert json.dumps(history)
