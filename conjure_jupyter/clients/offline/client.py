"""The client that answers when there is no credential. It is no language model and says so."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, ClassVar

from ...prompt import estimate_tokens
from ...types import Content
from ..accumulate import message_events
from ..base import Client, Request, StreamEvent
from .answering import Answer, answer, summary
from .reading import NOTEBOOK_FOLDER, Reading, read

#: Characters of one delta.
CHUNK = 48

MODEL = "offline"


class OfflineClient(Client):
    """Picks a skill by its description, runs its documented command on the user's files, and reports.

    The same request gets the same answer, identifiers and token counts included: counts are estimates, and
    identifiers are numbered by their place in the conversation.
    """

    name: ClassVar[str] = "offline"
    live: ClassVar[bool] = False

    async def stream(self, request: Request) -> AsyncIterator[StreamEvent]:
        """Yield the events of an answer; never raises an ``APIError``."""
        reading = read(request)
        content = _content(summary(request) if request.purpose == "summary" else answer(reading), reading)
        message = {
            "id": f"msg_offline_{reading.answer_count + 1:04d}",
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": content,
            "stop_reason": "tool_use" if content[-1]["type"] == "tool_use" else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": _size(request), "output_tokens": _tokens(content)},
        }
        for event in message_events(message, chunk=CHUNK):
            yield event
            await asyncio.sleep(0)  # a stop can arrive between any two events

    async def count_tokens(self, request: Request) -> int | None:
        """An estimate of the request's size in tokens."""
        return _size(request)


def _content(said: Answer, reading: Reading) -> list[Content]:
    content: list[Content] = [{"type": "text", "text": said.text}]
    if said.tool:
        call_id = f"toolu_offline_{reading.call_count + 1:04d}"
        content.append({"type": "tool_use", "id": call_id, "name": said.tool, "input": said.input or {}})
    return content


def _size(request: Request) -> int:
    # A path of this machine would make the count, and so a saved notebook, differ on the next one.
    return (
        estimate_tokens(NOTEBOOK_FOLDER.sub("", request.system))
        + _tokens(request.messages)
        + _tokens(request.tools)
    )


def _tokens(value: Any) -> int:
    return estimate_tokens(json.dumps(value, ensure_ascii=False)) if value else 0
