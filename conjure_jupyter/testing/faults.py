"""What can go wrong between a client and the service, for use in a script.

Each may stand alone, or in a list with the reply it spoils:
``[Delay(0.2), CutConnection(after_events=3), message("A long answer")]``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


class Fault:
    """Base of everything that is no reply."""


@dataclass(frozen=True, slots=True)
class Delay(Fault):
    """A wait.

    Attributes:
        seconds: before the answer's first byte.
        per_event: before each event of the stream, in seconds.
    """

    seconds: float = 0.0
    per_event: float = 0.0


@dataclass(frozen=True, slots=True)
class HTTPError(Fault):
    """An HTTP error instead of an answer.

    Attributes:
        status: the HTTP status.
        type: ``error.type``; default is the status's usual one.
        retry_after: value of the ``retry-after`` header: seconds or an HTTP date.
        message: ``error.message``.
        headers: further headers.
        body: sent as it is instead of the API's JSON.
    """

    status: int
    type: str | None = None
    retry_after: float | str | None = None
    message: str = "The service says no"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None

    @property
    def error_type(self) -> str:
        """``error.type`` of the body."""
        return self.type or _TYPES.get(self.status) or ("api_error" if self.status >= 500 else _TYPES[400])


@dataclass(frozen=True, slots=True)
class StreamError(Fault):
    """An ``error`` event in the middle of a stream, and nothing after it."""

    type: str = "overloaded_error"
    after_events: int = 3
    message: str = "Overloaded"


@dataclass(frozen=True, slots=True)
class CutConnection(Fault):
    """The connection breaks; without a number it does before the first byte of the answer.

    Attributes:
        after_events: events of the stream that still arrive.
        after_bytes: bytes of the body that still arrive.
    """

    after_events: int | None = None
    after_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class EndEarly(Fault):
    """The stream ends in good order but without ``message_stop``.

    Attributes:
        after_events: events that arrive; None is all but the last.
    """

    after_events: int | None = None


@dataclass(frozen=True, slots=True)
class Malformed(Fault):
    """An event whose data is not JSON, after some good ones."""

    after_events: int = 2
    data: str = '{"type": "content_block_delta", "ind'


@dataclass(frozen=True, slots=True)
class Wire(Fault):
    """Another way to write the same stream.

    Attributes:
        event_names: whether there are ``event:`` lines.
        newline: the line end.
        fragment: bytes of each write; None is one write an event.
        chunk: most characters of one delta.
        multiline: spread each event's JSON over several ``data:`` lines.
        whole: send the body when it is complete, so that all events come at once.
    """

    event_names: bool = True
    newline: str = "\n"
    fragment: int | None = None
    chunk: int | None = None
    multiline: bool = False
    whole: bool = False
