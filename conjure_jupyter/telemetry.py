"""A hook for telemetry: spans around requests, tool calls and turns.

Nothing is measured until somebody listens. A listener is called when a span ends::

    @conjure.telemetry.on_span
    def record(name, attributes, seconds, error): ...

Names are ``conjure.turn``, ``conjure.request``, ``conjure.tools`` and ``conjure.load_skills``; attributes are
plain values without any text of the conversation.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

log = logging.getLogger(__name__)

SpanListener: TypeAlias = Callable[[str, dict[str, Any], float, BaseException | None], None]

_listeners: list[SpanListener] = []


def on_span(listener: SpanListener) -> SpanListener:
    """Call ``listener(name, attributes, seconds, error)`` at the end of each span; usable as a decorator."""
    _listeners.append(listener)
    return listener


def remove(listener: SpanListener) -> None:
    """Stop calling ``listener``.

    Raises:
        ValueError: it was not listening.
    """
    _listeners.remove(listener)


@contextmanager
def span(name: str, **attributes: Any) -> Iterator[None]:
    """Measure a block of work; a listener that raises is logged and never breaks it."""
    if not _listeners:
        yield
        return
    started = time.perf_counter()
    failure: BaseException | None = None
    try:
        yield
    except BaseException as error:
        failure = error
        raise
    finally:
        seconds = time.perf_counter() - started
        for listener in tuple(_listeners):  # one may remove itself
            try:
                listener(name, attributes, seconds, failure)
            except Exception:
                log.exception("a telemetry listener failed")
