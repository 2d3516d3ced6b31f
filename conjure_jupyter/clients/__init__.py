"""Who answers: Anthropic's service, an offline stand-in, a recording, or a function of the user's."""

from __future__ import annotations

from typing import Any

from conjure_jupyter.errors import SettingsError
from conjure_jupyter.settings import Settings

from .accumulate import MessageAccumulator, message_events
from .base import Client, Request, StreamEvent
from .credentials import find_credential, has_credential, own_base_url

__all__ = [
    "Client",
    "MessageAccumulator",
    "Request",
    "StreamEvent",
    "choose_client",
    "find_credential",
    "has_credential",
    "message_events",
]


def choose_client(settings: Settings, client: Any = None) -> Client:
    """The client of a session; a recording is put around it by who knows the session's folders.

    Args:
        settings: ``client`` says whom to ask; ``auto`` is Anthropic's SDK when it would find a credential or
            is given a base URL, else the offline client.
        client: stronger than the setting: a ``Client``, a client object of Anthropic's SDK, or a function
            that answers messages (``api_callback``).

    Raises:
        SettingsError: ``client`` is none of these, or the base URL cannot be used.
    """
    if isinstance(client, Client):
        return client
    if client is not None:
        from .anthropic import AnthropicClient, is_sdk_client

        if is_sdk_client(client):
            return AnthropicClient(client, settings=settings)
        if callable(client):
            from .callback import CallbackClient

            return CallbackClient(client)
        raise SettingsError(
            "client",
            f"{type(client).__name__} is neither a client of Anthropic's SDK nor a function nor a Client",
        )
    chosen = settings.client
    if chosen == "auto":
        chosen = "anthropic" if has_credential() or own_base_url() else "offline"
    if chosen == "anthropic":
        from .anthropic import AnthropicClient

        return AnthropicClient(settings=settings)
    from .offline import OfflineClient

    return OfflineClient()
