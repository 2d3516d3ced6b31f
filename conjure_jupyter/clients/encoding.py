"""Request bodies as bytes, with the history encoded once.

A conversation is sent again with every request. Encoding only what is new keeps the cost of a round flat, and
keeps the bytes of the history identical, which the service's prompt cache needs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from conjure_jupyter.errors import InvalidRequestError
from conjure_jupyter.types import Message

_encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def encode(value: Any) -> bytes:
    """``value`` as compact UTF-8 JSON; characters that UTF-8 cannot carry become ``?``.

    Raises:
        InvalidRequestError: it holds something JSON cannot carry.
    """
    try:
        return _encoder.encode(value).encode("utf-8", "replace")
    except (TypeError, ValueError) as error:
        raise InvalidRequestError(f"The request cannot be written as JSON: {error}") from error


class BodyEncoder:
    """Encodes the bodies of one conversation's requests.

    The encoded form of a message is found again by the dict's identity, as long as its content is the same
    object with the same number of blocks. Only the messages of the last request are kept.
    """

    def __init__(self) -> None:
        self._known: list[tuple[Message, Any, int, bytes]] = []

    def encode(self, body: Mapping[str, Any]) -> bytes:
        """The body as bytes; ``messages`` comes last, after what seldom changes.

        Raises:
            InvalidRequestError: it holds something JSON cannot carry.
        """
        head = encode({name: value for name, value in body.items() if name != "messages"})
        start = b'{"messages":[' if head == b"{}" else head[:-1] + b',"messages":['
        return b"".join((start, b",".join(self._messages(body["messages"])), b"]}"))

    def _messages(self, messages: Sequence[Message]) -> list[bytes]:
        known = self._known
        same = 0
        for message, (kept, content, length, _) in zip(messages, known, strict=False):
            if message is not kept or message["content"] is not content or len(content) != length:
                break
            same += 1
        del known[same:]
        for message in messages[same:]:
            content = message["content"]
            known.append((message, content, len(content), encode(message)))
        return [entry[3] for entry in known]
