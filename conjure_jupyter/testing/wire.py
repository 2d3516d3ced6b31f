"""A stream of events as bytes, with what a script wants broken."""

from __future__ import annotations

import json
from collections.abc import Iterator

from conjure_jupyter.clients.accumulate import message_events
from conjure_jupyter.clients.base import StreamEvent
from conjure_jupyter.types import Message

from .faults import EndEarly, Malformed, StreamError, Wire
from .script import Step


def frames(step: Step, message: Message, chunk: int | None) -> Iterator[bytes]:
    """The stream of ``message`` as the script wants it, one event at a time.

    Args:
        step: the answer's script.
        message: the whole message, with ``id`` and ``usage``.
        chunk: most characters of a delta, unless the script says otherwise.
    """
    wire: Wire = step.first(Wire) or Wire()
    events = list(_with_ping(message_events(message, chunk=wire.chunk or chunk)))
    early: EndEarly | None = step.first(EndEarly)
    error: StreamError | None = step.first(StreamError)
    broken: Malformed | None = step.first(Malformed)
    if early is not None:
        events = events[: len(events) - 1 if early.after_events is None else early.after_events]
    if error is not None:
        told = {"type": "error", "error": {"type": error.type, "message": error.message}}
        events = [*events[: error.after_events], told]
    for at, event in enumerate(events):
        if broken is not None and at == broken.after_events:
            yield frame(broken.data, "content_block_delta", wire)
            return
        yield frame(json.dumps(event), event["type"], wire)


def frame(data: str, name: str, wire: Wire) -> bytes:
    """One event in the form of server-sent events."""
    lines = [f"event: {name}"] if wire.event_names else []
    if wire.multiline:
        data = json.dumps(json.loads(data), indent=1)
    lines += [f"data: {line}" for line in data.split("\n")]
    return (wire.newline.join(lines) + wire.newline * 2).encode()


def _with_ping(events: Iterator[StreamEvent]) -> Iterator[StreamEvent]:
    yield next(events)
    yield {"type": "ping"}
    yield from events
