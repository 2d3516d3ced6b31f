"""How long to wait, and when not to try again."""

from __future__ import annotations

import pytest

from conjure_jupyter.conversation.retry import LONGEST, reason, wait_before_retry
from conjure_jupyter.errors import (
    APIError,
    AuthenticationError,
    InvalidRequestError,
    OverloadedError,
    RateLimitError,
    ServerError,
    StreamInterruptedError,
)


@pytest.mark.parametrize("kind", [AuthenticationError, InvalidRequestError, APIError])
def test_what_will_not_get_better_is_final(kind: type[APIError]) -> None:
    assert wait_before_retry(kind("no"), 1, 4) is None


def test_waits_grow_to_a_ceiling() -> None:
    waits = [wait_before_retry(OverloadedError("busy"), attempt, 100) or 0 for attempt in range(1, 12)]
    assert 0.3 < waits[0] <= 0.5
    assert 0.75 < waits[1] <= 1.0
    assert all(wait <= LONGEST for wait in waits)


def test_the_service_says_how_long() -> None:
    assert wait_before_retry(RateLimitError("slow down", retry_after=7.5), 1, 4) == 7.5
    assert wait_before_retry(RateLimitError("tomorrow", retry_after=86_400), 1, 4) is None


def test_retries_run_out() -> None:
    error = ServerError("broken", status=500)
    assert wait_before_retry(error, 2, 2) is not None
    assert wait_before_retry(error, 3, 2) is None
    assert wait_before_retry(error, 1, 0) is None


def test_reasons_are_words() -> None:
    assert reason(StreamInterruptedError("x")) == "the answer broke off"
    assert reason(ServerError("x", status=503)) == "the service failed (503)"
