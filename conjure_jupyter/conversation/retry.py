"""How long to wait before a failed request is sent again."""

from __future__ import annotations

import random

from ..errors import APIError

#: Seconds: the first wait, the longest of ours, and the longest that a service may ask for.
FIRST, LONGEST, LONGEST_ASKED = 0.5, 30.0, 300.0


def wait_before_retry(error: APIError, attempt: int, retries: int) -> float | None:
    """Seconds to wait before attempt ``attempt + 1``, or None when the error is final.

    Args:
        error: what the request failed with.
        attempt: how often it was sent so far, from 1.
        retries: how often it may be sent again.
    """
    if not error.retryable or attempt > retries:
        return None
    if error.retry_after is not None:
        return error.retry_after if error.retry_after <= LONGEST_ASKED else None
    ceiling: float = min(LONGEST, FIRST * 2 ** (attempt - 1))
    # Jitter keeps many notebooks from coming back at the same moment.
    return ceiling * random.uniform(0.75, 1.0)  # noqa: S311  not a secret


def reason(error: APIError) -> str:
    """Why a retry is made, in a few words for the user."""
    return {
        "rate_limited": "rate limit reached",
        "overloaded": "the service is overloaded",
        "api_timeout": "the service did not answer in time",
        "stream_interrupted": "the answer broke off",
        "api_connection_error": "the service cannot be reached",
    }.get(error.type, f"the service failed ({error.status or error.error_type or 'no status'})")
