"""Clients of every kind, each in front of a scripted service."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anthropic
import pytest

from conjure_jupyter.clients import Client
from conjure_jupyter.clients.anthropic import AnthropicClient
from conjure_jupyter.settings import Settings
from conjure_jupyter.testing import FakeClaude

#: The SDK's objects that reach the four ways of sending a request, by name.
SDK_CLIENTS: dict[str, Callable[[str], Any]] = {
    "own": lambda url: None,
    "async": lambda url: anthropic.AsyncAnthropic(base_url=url, api_key="k"),
    "blocking": lambda url: anthropic.Anthropic(base_url=url, api_key="k"),
    "foundry": lambda url: anthropic.AsyncAnthropicFoundry(base_url=url, api_key="k"),
    "blocking foundry": lambda url: anthropic.AnthropicFoundry(base_url=url, api_key="k"),
}

MakeClient = Callable[..., AnthropicClient]


@pytest.fixture
async def make_client(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[MakeClient]:
    """Makes a client for a ``FakeClaude``; ``kind`` is a key of ``SDK_CLIENTS``."""
    made: list[Callable[[], Awaitable[None]]] = []

    def make(claude: FakeClaude, kind: str = "own", **changes: Any) -> AnthropicClient:
        for name, value in claude.env.items():
            monkeypatch.setenv(name, value)
        given = SDK_CLIENTS[kind](claude.url)
        client = AnthropicClient(given, settings=Settings(**changes))
        made.append(client.close)
        if given is not None:
            made.append(_closing(given))
        return client

    yield make
    for close in made:
        await close()


def _closing(given: Any) -> Callable[[], Awaitable[None]]:
    async def close() -> None:
        result = given.close()
        if result is not None:
            await result

    return close


@pytest.fixture(params=list(SDK_CLIENTS))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


__all__ = ["Client"]
