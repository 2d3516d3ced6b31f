"""The scripted service, asked by the real SDK."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import httpx2
import pytest

from conjure_jupyter.testing import (
    Delay,
    FakeClaude,
    HTTPError,
    Reply,
    ScriptError,
    StreamError,
    last_prompt,
    message,
    text,
    thinking,
    tool_use,
)
from conjure_jupyter.testing.script import to_step

ASK: dict[str, Any] = {
    "model": "claude-sonnet-5-5",
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "Hello"}],
}


def sdk(claude: FakeClaude) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=claude.url, api_key="k", max_retries=0)


@pytest.fixture
def claude() -> Iterator[FakeClaude]:
    with FakeClaude(lambda body: "Hello.") as claude:
        yield claude


def test_an_answer_whole_and_streamed() -> None:
    reply = message(thinking("Hm."), "Look:", tool_use("view", {"path": "ä"}, id="toolu_1"))
    with FakeClaude([reply, reply]) as claude, sdk(claude) as client:
        whole = client.messages.create(**ASK)
        with client.messages.stream(**ASK) as stream:
            assert "".join(stream.text_stream) == "Look:"
            streamed = stream.get_final_message()
    assert whole.to_dict()["content"] == streamed.to_dict()["content"] == reply["content"]
    assert whole.stop_reason == streamed.stop_reason == "tool_use"
    assert whole.usage.output_tokens == streamed.usage.output_tokens
    assert claude.left == 0


def test_routing_by_prompt_and_by_function() -> None:
    with (
        FakeClaude({"chart": "A chart.", "(?i)summar": "A summary.", "": "Else."}) as claude,
        sdk(claude) as client,
    ):
        for prompt, expected in [("Summarise", "A summary."), ("a chart", "A chart."), ("x", "Else.")]:
            said = client.messages.create(**{**ASK, "messages": [{"role": "user", "content": prompt}]})
            assert said.to_dict()["content"] == [text(expected)]
    with FakeClaude(lambda body: f"{body['max_tokens']} tokens") as claude, sdk(claude) as client:
        assert client.messages.create(**ASK).to_dict()["content"] == [text("100 tokens")]


def test_the_prompt_is_what_the_user_said_not_what_tools_gave() -> None:
    result = {"type": "tool_result", "tool_use_id": "t", "content": "file"}
    messages = [{"role": "user", "content": "Say it"}, {"role": "user", "content": [result]}]
    assert last_prompt({"messages": messages}) == "Say it"


def test_a_script_at_its_end_says_so() -> None:
    with FakeClaude(["one"]) as claude, sdk(claude) as client:
        client.messages.create(**ASK)
        with pytest.raises(anthropic.BadRequestError, match="all 1 answers of the script are used up"):
            client.messages.create(**ASK)


def test_a_refused_request_uses_up_nothing() -> None:
    with FakeClaude(["one"]) as claude, sdk(claude) as client:
        with pytest.raises(anthropic.BadRequestError):
            client.messages.create(**{**ASK, "messages": [{"role": "user", "content": " "}]})
        assert claude.left == 1


def test_two_messages_in_one_answer_are_a_mistake() -> None:
    with pytest.raises(ScriptError, match="more than one message"):
        to_step(["one", "two"])
    with pytest.raises(ScriptError, match="int"):
        to_step([42])  # type: ignore[list-item]  # the mistake under test


def test_errors_are_the_sdks_own() -> None:
    faults = [HTTPError(429, retry_after=3), HTTPError(529), HTTPError(500), HTTPError(403)]
    classes = [
        anthropic.RateLimitError,
        anthropic.InternalServerError,
        anthropic.InternalServerError,
        anthropic.PermissionDeniedError,
    ]
    with FakeClaude(faults) as claude, sdk(claude) as client:
        for cls in classes:
            with pytest.raises(cls) as raised:
                client.messages.create(**ASK)
            assert raised.value.type
            assert raised.value.request_id


def test_the_sdk_retries_as_it_does_with_the_real_service() -> None:
    script: list[Reply] = [HTTPError(529, retry_after=0), HTTPError(429, retry_after=0), "done"]
    with FakeClaude(script) as claude, sdk(claude).with_options(max_retries=2) as client:
        assert client.messages.create(**ASK).to_dict()["content"] == [text("done")]
    assert [request.status for request in claude.requests] == [529, 429, 200]


def test_an_error_in_the_stream() -> None:
    script: list[Reply] = [[StreamError(), message("a long answer")]]
    with (
        FakeClaude(script) as claude,
        sdk(claude) as client,
        pytest.raises(anthropic.APIStatusError) as raised,
    ):
        list(client.messages.create(**ASK, stream=True))
    assert raised.value.type == "overloaded_error"
    assert raised.value.status_code == 200


def test_credentials(claude: FakeClaude) -> None:
    assert httpx2.post(f"{claude.url}/v1/messages", json=ASK).status_code == 401
    headers = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
    assert httpx2.post(f"{claude.url}/v1/messages", json=ASK, headers=headers).status_code == 200
    assert httpx2.post(f"{claude.url}/v1/messages", json=ASK, headers={"x-api-key": "k"}).status_code == 400
    with FakeClaude(["x"], api_key="right") as strict, sdk(strict) as client:
        assert client.with_options(api_key="right").messages.create(**ASK)
        with pytest.raises(anthropic.AuthenticationError):
            client.messages.create(**ASK)


def test_models(claude: FakeClaude) -> None:
    with sdk(claude) as client:
        assert "claude-sonnet-5-5" in [model.id for model in client.models.list()]
        assert client.models.retrieve("claude-haiku-5-5").id == "claude-haiku-5-5"
        with pytest.raises(anthropic.NotFoundError, match="model: gpt-x"):
            client.messages.create(**{**ASK, "model": "gpt-x"})


def test_counting_is_deterministic_and_matches_what_is_billed(claude: FakeClaude) -> None:
    with sdk(claude) as client:
        arguments: dict[str, Any] = {"model": ASK["model"], "messages": ASK["messages"], "system": "Be kind."}
        first = client.messages.count_tokens(**arguments).input_tokens
        assert first == client.messages.count_tokens(**arguments).input_tokens
        assert client.messages.create(**ASK, system="Be kind.").usage.input_tokens == first


def test_a_request_that_is_too_large(claude: FakeClaude) -> None:
    with sdk(claude) as client:
        large = {"role": "user", "content": "x" * (33 * 1024 * 1024)}
        with pytest.raises(anthropic.APIStatusError) as raised:
            client.messages.create(**{**ASK, "messages": [large]})
    assert raised.value.status_code == 413
    assert "request_too_large" in str(raised.value)


def test_what_is_no_json(claude: FakeClaude) -> None:
    headers = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
    answer = httpx2.post(f"{claude.url}/v1/messages", content=b"{nope", headers=headers)
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert httpx2.get(f"{claude.url}/v1/nothing", headers=headers).status_code == 404


def test_closing_does_not_wait_for_answers_that_wait() -> None:
    with FakeClaude([Delay(3600)]) as claude:
        client = sdk(claude)
        import threading

        failed: list[BaseException] = []

        def ask() -> None:
            try:
                client.messages.create(**ASK)
            except anthropic.APIConnectionError as error:
                failed.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        while not claude.requests:
            thread.join(0.01)
    thread.join(10)
    client.close()
    assert failed


def test_it_runs_inside_its_with_statement_only() -> None:
    with pytest.raises(RuntimeError, match="with statement"):
        _ = FakeClaude().url
