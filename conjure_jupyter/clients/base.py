"""What every client is: something that answers a Messages API request with a stream of events.

The loop above knows nothing else of who answers. Events are the API's own, as plain dicts, in the order
``message_start``, then per content block ``content_block_start``, ``content_block_delta``…,
``content_block_stop``, then ``message_delta`` and ``message_stop``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

from conjure_jupyter.types import Message

#: A raw event of a Messages API stream; ``type`` says which.
StreamEvent: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """One request to the model.

    Message dicts must not be changed once they have been part of a request: clients may keep their encoded
    form, found again by the dict's identity. A changed message is a new dict.

    Attributes:
        model: the model's name.
        max_tokens: most tokens of the answer.
        system: the system prompt; empty for none.
        messages: the conversation, in the Messages API's form.
        tools: tool definitions; empty for none.
        extra: further fields of the request's body, such as ``tool_choice``, ``container`` or ``thinking``.
            They win over what a client would add by itself; a value of None leaves the field out.
        purpose: what it is for; a summary is asked for by the conversation itself, not by the user.
    """

    model: str
    max_tokens: int
    system: str
    messages: list[Message]
    tools: list[dict[str, Any]] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)
    purpose: Literal["turn", "summary"] = "turn"

    def body(self) -> dict[str, Any]:
        """The body of the API request, without ``stream``."""
        body: dict[str, Any] = {
            "model": self.model,
            "max_tokens": self.max_tokens,
            "messages": self.messages,
        }
        if self.system:
            body["system"] = self.system
        if self.tools:
            body["tools"] = self.tools
        body.update(self.extra)
        return {name: value for name, value in body.items() if value is not None}


class Client(ABC):
    """Answers requests. A client never retries: whether to, and how long to wait, is the loop's decision.

    All methods run on the engine's loop.

    Attributes:
        name: short name for messages and logs.
        live: whether requests reach a model, and so may cost money.
    """

    name: ClassVar[str]
    live: ClassVar[bool]

    @abstractmethod
    def stream(self, request: Request) -> AsyncIterator[StreamEvent]:
        """Yield the events of one answer, up to and including ``message_stop``.

        Closing the iterator early, or cancelling the task that reads it, ends the request.

        Raises:
            APIError: the service failed, refused, or broke off; ``retryable`` says whether the same request
                may do better, ``retry_after`` when.
            ReplayError: a recorded conversation has no such turn.
        """

    @abstractmethod
    async def count_tokens(self, request: Request) -> int | None:
        """Input tokens the request would use, or None when this client cannot tell.

        Raises:
            APIError: the service failed or refused.
        """

    async def close(self) -> None:
        """Release connections; a client is not used after it. Calling it twice is fine."""
        return
