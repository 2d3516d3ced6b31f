"""Spans: measured when somebody listens, harmless when a listener fails."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from conjure_jupyter import telemetry

Span = tuple[str, dict[str, Any], float, BaseException | None]


@pytest.fixture
def spans() -> Iterator[list[Span]]:
    heard: list[Span] = []

    def listen(name: str, attributes: dict[str, Any], seconds: float, error: BaseException | None) -> None:
        heard.append((name, attributes, seconds, error))

    telemetry.on_span(listen)
    yield heard
    telemetry.remove(listen)


def test_a_span_is_heard(spans: list[Span]) -> None:
    with telemetry.span("conjure.turn", model="m"):
        pass
    name, attributes, seconds, error = spans[0]
    assert (name, attributes, error) == ("conjure.turn", {"model": "m"}, None)
    assert seconds >= 0


def test_an_error_is_heard_and_goes_on(spans: list[Span]) -> None:
    with pytest.raises(ValueError, match="no"), telemetry.span("conjure.turn"):
        raise ValueError("no")
    assert isinstance(spans[0][3], ValueError)


def test_a_listener_that_fails_breaks_nothing(spans: list[Span], caplog: pytest.LogCaptureFixture) -> None:
    def bad(*_: object) -> None:
        raise RuntimeError("bad listener")

    telemetry.on_span(bad)
    try:
        with telemetry.span("conjure.turn"):
            pass
    finally:
        telemetry.remove(bad)
    assert len(spans) == 1
    assert "a telemetry listener failed" in caplog.text
