"""Every exception of the SDK and every status becomes one of ours, and says no secret."""

from __future__ import annotations

import contextlib
import email.utils
import importlib
import json
import pkgutil
import time
from collections.abc import Iterator
from typing import Any

import anthropic
import anthropic.lib
import httpx2
import pytest

from conjure_jupyter import errors
from conjure_jupyter.clients.translate import retry_after, status_error, translate
from conjure_jupyter.errors import APIError
from conjure_jupyter.testing import FakeClaude, HTTPError

from .conftest import MakeClient
from .contract import answer, ask

REQUEST = httpx2.Request(
    "POST", "http://service.example/v1/messages", headers={"authorization": "Bearer s3cr3t"}
)


def everything(cls: type[BaseException]) -> Iterator[type[BaseException]]:
    yield cls
    for below in cls.__subclasses__():
        yield from everything(below)


def made(cls: type[BaseException]) -> BaseException:
    """One of these exceptions, as the SDK makes it."""
    if issubclass(cls, anthropic.APIStatusError):
        status = getattr(cls, "status_code", None) or (
            500 if issubclass(cls, anthropic.InternalServerError) else 418
        )
        response = httpx2.Response(status, request=REQUEST)
        return cls("said", response=response, body=None)
    if issubclass(cls, anthropic.APIResponseValidationError):
        return cls(httpx2.Response(200, request=REQUEST), None)
    if issubclass(cls, anthropic.APIConnectionError):
        return cls(request=REQUEST)
    if issubclass(cls, anthropic.APIError):
        return cls("said", REQUEST, body=None)
    try:
        return cls("said")
    except TypeError:
        return cls.__new__(cls, "said")


def test_every_exception_of_the_sdk_is_mapped() -> None:
    for module in pkgutil.iter_modules(anthropic.lib.__path__, "anthropic.lib."):
        # Some need an extra that is not installed.
        with contextlib.suppress(ImportError):
            importlib.import_module(module.name)
    classes = [cls for cls in everything(anthropic.AnthropicError) if cls.__module__.startswith("anthropic")]
    assert len(classes) > 20
    for cls in classes:
        ours = translate(made(cls))
        assert isinstance(ours, APIError), cls
        if cls is not anthropic.AnthropicError and issubclass(cls, anthropic.APIError):
            assert type(ours) is not APIError or cls is anthropic.APIError, cls


def test_the_most_specific_class_wins() -> None:
    assert type(translate(anthropic.APITimeoutError(REQUEST))) is errors.APITimeoutError
    assert type(translate(anthropic.APIConnectionError(request=REQUEST))) is errors.APIConnectionError


def test_every_exception_of_the_http_layer_is_mapped() -> None:
    for cls in everything(httpx2.HTTPError):
        if cls is httpx2.HTTPStatusError or not cls.__module__.startswith("httpx2"):
            continue
        ours = translate(cls("said"))
        assert isinstance(ours, APIError), cls
    assert type(translate(httpx2.RemoteProtocolError("cut"))) is errors.StreamInterruptedError
    assert type(translate(httpx2.ReadTimeout("slow"))) is errors.APITimeoutError
    assert type(translate(httpx2.ConnectError("no"))) is errors.APIConnectionError


def test_what_is_not_theirs_is_left_alone() -> None:
    assert translate(ValueError("ours")) is None
    assert translate(RuntimeError("ours")) is None
    already = errors.RateLimitError("x")
    assert translate(already) is already


@pytest.mark.parametrize(
    ("fault", "expected", "retryable"),
    [
        (HTTPError(400), errors.InvalidRequestError, False),
        (HTTPError(401), errors.AuthenticationError, False),
        (HTTPError(402), errors.InvalidRequestError, False),
        (HTTPError(403), errors.AuthenticationError, False),
        (HTTPError(404, message="model: claude-99"), errors.ModelNotFoundError, False),
        (HTTPError(404, message="no such page"), errors.InvalidRequestError, False),
        (HTTPError(408, type="x"), errors.APITimeoutError, True),
        (HTTPError(409, type="x"), errors.ServerError, True),
        (HTTPError(413), errors.RequestTooLargeError, False),
        (HTTPError(422, type="x"), errors.InvalidRequestError, False),
        (HTTPError(429, retry_after=7), errors.RateLimitError, True),
        (HTTPError(500), errors.ServerError, True),
        (HTTPError(502, body="<html>Bad gateway</html>"), errors.ServerError, True),
        (HTTPError(503, type="x"), errors.OverloadedError, True),
        (HTTPError(504), errors.APITimeoutError, True),
        (HTTPError(529, retry_after=0.5), errors.OverloadedError, True),
    ],
    ids=lambda value: str(value.status) if isinstance(value, HTTPError) else None,
)
async def test_statuses_over_the_wire(
    fault: HTTPError, expected: type[APIError], retryable: bool, make_client: MakeClient
) -> None:
    with FakeClaude([fault]) as claude, pytest.raises(APIError) as raised:
        await answer(make_client(claude), ask())
    error = raised.value
    assert type(error) is expected
    assert error.retryable is retryable
    assert error.status == fault.status
    assert error.retry_after == fault.retry_after
    assert error.request_id == "req_fake_0001"
    assert "<html>" not in error.message
    assert len(claude.requests) == 1, "no retry behind the loop's back"


async def test_every_kind_of_client_tells_statuses_alike(kind: str, make_client: MakeClient) -> None:
    with (
        FakeClaude([HTTPError(429, retry_after=3)]) as claude,
        pytest.raises(errors.RateLimitError) as raised,
    ):
        await answer(make_client(claude, kind), ask())
    assert raised.value.retry_after == 3
    assert raised.value.error_type == "rate_limit_error"
    assert len(claude.requests) == 1


def test_limits_on_spending_are_not_tried_again() -> None:
    body = {"error": {"type": "rate_limit_error", "message": "spent"}}
    error = status_error(429, body, {}, code="contract_spend_limit_reached")
    assert type(error) is errors.InvalidRequestError


def test_waiting_times_in_all_forms() -> None:
    assert retry_after({}) is None
    assert retry_after({"retry-after": "12"}) == 12
    assert retry_after({"retry-after": "1.5"}) == 1.5
    assert retry_after({"retry-after-ms": "250", "retry-after": "9"}) == 0.25
    assert retry_after({"retry-after": "-3"}) == 0
    assert retry_after({"retry-after": "soon"}) is None
    assert retry_after({"retry-after": "nan"}) is None
    date = email.utils.formatdate(time.time() + 60, usegmt=True)
    assert retry_after({"retry-after": date}) == pytest.approx(60, abs=5)
    past = email.utils.formatdate(time.time() - 60, usegmt=True)
    assert retry_after({"retry-after": past}) == 0


@pytest.mark.parametrize("status", [400, 401, 429, 500])
async def test_a_secret_that_the_service_repeats_is_cut_out(
    status: int, kind: str, make_client: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "fake-claude-key"
    leak = f"Bearer {key} of sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789 refused"
    with FakeClaude([HTTPError(status, message=leak)]) as claude, pytest.raises(APIError) as raised:
        await answer(make_client(claude), ask())
    error = raised.value
    shown = f"{error} {error.details!r} {error!r}"
    assert key not in shown
    assert "abcdefghijklmnop" not in shown
    assert "refused" in shown
    assert error.__cause__ is None
    assert error.__suppress_context__


async def test_a_credential_that_expired_is_renewed_once() -> None:
    tokens = iter(["stale-token", "fresh-token"])

    def provide(*, force_refresh: bool = False) -> Any:
        return anthropic.AccessToken(token=next(tokens), expires_at=None)

    from conjure_jupyter.clients.anthropic import AnthropicClient
    from conjure_jupyter.settings import Settings

    with FakeClaude(["hi"], api_key="fresh-token") as claude:
        given = anthropic.AsyncAnthropic(base_url=claude.url, credentials=provide)
        client = AnthropicClient(given, settings=Settings())
        assert await answer(client, ask())
        await client.close()
        await given.close()
    assert [request.status for request in claude.requests][-1] == 200


def test_errors_can_be_logged_as_json() -> None:
    error = status_error(
        429, {"error": {"type": "rate_limit_error", "message": "slow"}}, {"retry-after": "1"}
    )
    assert json.loads(json.dumps(error.details))["retry_after"] == 1
