"""A function of the user's as a client: the ``api_callback`` of the conversation loop."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, ClassVar

from conjure_jupyter.errors import APIError, ConjureError
from conjure_jupyter.types import Message

from .accumulate import message_events
from .base import Client, Request, StreamEvent
from .translate import translate


class CallbackClient(Client):
    """Answers by calling a function.

    Args:
        callback: takes the messages so far, and the whole ``Request`` as a second argument if it has room for
            one; blocking or asynchronous. It returns a message in the API's form, an SDK ``Message``, or
            plain text. A blocking function runs in a thread.
    """

    name: ClassVar[str] = "callback"
    live: ClassVar[bool] = True

    def __init__(self, callback: Callable[..., Any]) -> None:
        self._callback = callback
        self._takes_request = _takes_two(callback)

    async def stream(self, request: Request) -> AsyncIterator[StreamEvent]:
        """Call the function and yield its answer as events.

        Raises:
            APIError: the function raised, or returned something that is no message.
        """
        for event in message_events(_message(await self._call(request), request.model)):
            yield event

    async def count_tokens(self, request: Request) -> int | None:  # noqa: ARG002  the contract's signature
        """None: a function does not count."""
        return None

    async def _call(self, request: Request) -> Any:
        # A list of its own, so that a function that edits it does not edit the history.
        messages = list(request.messages)
        arguments = (messages, request) if self._takes_request else (messages,)
        try:
            if inspect.iscoroutinefunction(self._callback):
                return await self._callback(*arguments)
            answer = await asyncio.to_thread(self._callback, *arguments)
            return await answer if inspect.isawaitable(answer) else answer
        except ConjureError:
            raise
        except Exception as error:
            ours = translate(error)
            if ours is not None:
                raise ours from None
            raise APIError(f"The callback failed: {type(error).__name__}: {error}") from error


def _takes_two(callback: Callable[..., Any]) -> bool:
    try:
        inspect.signature(callback).bind([], None)
    except (TypeError, ValueError):
        return False
    return True


def _message(answer: Any, model: str) -> Message:
    if isinstance(answer, str):
        answer = {"content": answer}
    elif hasattr(answer, "to_dict"):
        answer = answer.to_dict()
    if not isinstance(answer, dict) or "content" not in answer:
        raise APIError(f"The callback returned {type(answer).__name__}; it should return a message or text")
    content = answer["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    if not all(isinstance(block, dict) and "type" in block for block in blocks):
        raise APIError("The callback returned a message whose content is not a list of content blocks")
    reason = answer.get("stop_reason") or _stop_reason(blocks)
    return {"model": model, **answer, "role": "assistant", "content": blocks, "stop_reason": reason}


def _stop_reason(blocks: Iterable[dict[str, Any]]) -> str:
    return "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
