"""From the SDK's and the HTTP layer's exceptions to ours.

What the service says of itself (``error.type``) decides first, then the exception's class, then the HTTP
status: a mid-stream error comes with status 200. Messages are made from the service's own sentence alone;
headers, request bodies and credentials never become part of one.
"""

from __future__ import annotations

import email.utils
import json
import math
import time
from collections.abc import Mapping
from typing import Any

from conjure_jupyter.errors import (
    APIConnectionError,
    APIError,
    APITimeoutError,
    AuthenticationError,
    InvalidRequestError,
    MissingCredentialError,
    ModelNotFoundError,
    OverloadedError,
    RateLimitError,
    RequestTooLargeError,
    ServerError,
    StreamInterruptedError,
)
from conjure_jupyter.redaction import redact

from .credentials import ADVICE

#: Longest sentence of the service that a message repeats, in characters.
MAX_SENTENCE = 600

#: The service's ``error.type``.
BY_TYPE: dict[str, type[APIError]] = {
    "overloaded_error": OverloadedError,
    "rate_limit_error": RateLimitError,
    "timeout_error": APITimeoutError,
    "api_error": ServerError,
    "authentication_error": AuthenticationError,
    "permission_error": AuthenticationError,
    "billing_error": InvalidRequestError,
    "request_too_large": RequestTooLargeError,
    "not_found_error": InvalidRequestError,
    "invalid_request_error": InvalidRequestError,
}

#: HTTP status, where the service did not say its type. 409 is a lock that the service failed to get.
BY_STATUS: dict[int, type[APIError]] = {
    401: AuthenticationError,
    403: AuthenticationError,
    408: APITimeoutError,
    409: ServerError,
    413: RequestTooLargeError,
    429: RateLimitError,
    499: APIConnectionError,
    503: OverloadedError,
    504: APITimeoutError,
    529: OverloadedError,
}

#: The SDK's exceptions without a status, most specific first.
BY_NAME: dict[str, type[APIError]] = {
    "APITimeoutError": APITimeoutError,
    "APIConnectionError": APIConnectionError,
    "APIResponseValidationError": ServerError,
    "RetryableError": ServerError,
    "IdentityTokenFileError": MissingCredentialError,
    "CredentialsError": AuthenticationError,
    "APIWebhookValidationError": InvalidRequestError,
    "AnthropicError": APIError,
}

#: The HTTP layer's exceptions while an answer is read, most specific first.
BY_TRANSPORT: dict[str, type[APIError]] = {
    "TimeoutException": APITimeoutError,
    "UnsupportedProtocol": InvalidRequestError,
    "InvalidURL": InvalidRequestError,
    "ConnectError": APIConnectionError,
    "ProxyError": APIConnectionError,
    "StreamError": StreamInterruptedError,
    "HTTPError": StreamInterruptedError,
}

_HEADLINES: dict[type[APIError], str] = {
    AuthenticationError: "The credential was refused",
    InvalidRequestError: "The service refused the request",
    ModelNotFoundError: "The service has no such model",
    RequestTooLargeError: "The request is too large for the service",
    RateLimitError: "Too many requests or tokens",
    OverloadedError: "The service is overloaded",
    ServerError: "The service failed",
    APITimeoutError: "The service did not answer in time",
    APIConnectionError: "The service cannot be reached",
    StreamInterruptedError: "The answer broke off",
    MissingCredentialError: "No credential for Claude",
    APIError: "The service answered with an error",
}


def translate(error: BaseException, *, secrets: tuple[str, ...] = ()) -> APIError | None:
    """Our error for one of the SDK or its HTTP layer; None when it is neither's.

    Args:
        error: what was raised.
        secrets: credentials to cut out of the service's own words, should it repeat them.
    """
    if isinstance(error, APIError):
        return error
    names = {cls.__name__ for cls in type(error).__mro__ if _package(cls) == "anthropic"}
    if names:
        known = _from_status if "APIStatusError" in names else _from_sdk
        return known(error, secrets)
    names = {cls.__name__ for cls in type(error).__mro__ if _package(cls) == "httpx2"}
    for name, ours in BY_TRANSPORT.items():
        if name in names:
            return ours(_message(ours, None, _clean(str(error), secrets)))
    return _from_others(error, secrets)


def _from_others(error: BaseException, secrets: tuple[str, ...]) -> APIError | None:
    """What the SDK lets through of its own doings and of the cloud providers' libraries."""
    if isinstance(error, json.JSONDecodeError | UnicodeDecodeError):
        return StreamInterruptedError("The service sent an event that is not JSON")
    if isinstance(error, TypeError) and "authentication method" in str(error):
        return MissingCredentialError(f"No credential for Claude: {ADVICE}")
    if _package(type(error)) in ("botocore", "google"):
        return MissingCredentialError(
            f"The cloud provider's credential cannot be used: {_clean(str(error), secrets)}"
        )
    return None


def from_event(
    event: Mapping[str, Any], *, request_id: str | None, secrets: tuple[str, ...] = ()
) -> APIError:
    """Our error for an ``error`` event in the middle of a stream, which has no status of its own."""
    body = event.get("error")
    kind, sentence = _said(event)
    ours = BY_TYPE.get(kind or "", ServerError)
    if isinstance(body, str):
        sentence = body
    return ours(
        _message(ours, None, _clean(sentence, secrets)),
        error_type=kind,
        request_id=_text(event.get("request_id")) or request_id,
    )


def status_error(
    status: int,
    body: Any,
    headers: Mapping[str, str],
    *,
    secrets: tuple[str, ...] = (),
    code: str | None = None,
) -> APIError:
    """Our error for an HTTP status.

    Args:
        status: the HTTP status.
        body: the parsed JSON of the answer, or its text.
        headers: the answer's headers.
        secrets: credentials to cut out of the service's own words.
        code: the service's ``error.details.error_code``, when it gave one.
    """
    kind, sentence = _said(body)
    ours = BY_TYPE.get(kind or "") or BY_STATUS.get(status)
    if ours is None:
        ours = ServerError if status >= 500 else InvalidRequestError
    if "spend_limit" in (code or "") or (status == 409 and code):
        ours = InvalidRequestError  # waiting does not help
    if status == 404 and "model" in sentence.lower():
        ours = ModelNotFoundError
    if ours is InvalidRequestError and status == 413:
        ours = RequestTooLargeError
    message = _message(ours, status, _clean(sentence, secrets))
    if ours is AuthenticationError:
        message = f"{message}. Check ANTHROPIC_API_KEY and who it belongs to"
    return ours(
        message,
        status=status,
        error_type=kind,
        request_id=headers.get("request-id"),
        retry_after=retry_after(headers),
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds the service asks to wait: ``retry-after-ms``, ``retry-after`` in seconds or as an HTTP date."""
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) / scale
        except ValueError:
            date = email.utils.parsedate_tz(value)
            if date is None:
                continue
            seconds = email.utils.mktime_tz(date) - time.time()
        if math.isfinite(seconds):
            return max(0.0, seconds)
    return None


def _from_status(error: BaseException, secrets: tuple[str, ...]) -> APIError:
    response = getattr(error, "response", None)
    headers = response.headers if response is not None else {}
    status = int(getattr(error, "status_code", 0))
    body = getattr(error, "body", None)
    if status == 200 and isinstance(body, Mapping):
        return from_event(body, request_id=headers.get("request-id"), secrets=secrets)
    code = getattr(error, "error_code", None)
    return status_error(status, body, headers, secrets=secrets, code=code)


def _from_sdk(error: BaseException, secrets: tuple[str, ...]) -> APIError:
    names = {cls.__name__ for cls in type(error).__mro__}
    ours = next((ours for name, ours in BY_NAME.items() if name in names), APIError)
    cause = error.__cause__
    if cause is None:
        return ours(_message(ours, None, _clean(str(error), secrets)))
    if any(cls.__name__ in ("UnsupportedProtocol", "InvalidURL") for cls in type(cause).__mro__):
        ours = InvalidRequestError
    host = getattr(getattr(getattr(error, "request", None), "url", None), "host", "")
    reason = _clean(str(cause), secrets) or type(cause).__name__
    return ours(_message(ours, None, f"{host}: {reason}" if host else reason))


def _package(cls: type) -> str:
    return cls.__module__.partition(".")[0]


def _said(body: Any) -> tuple[str | None, str]:
    """``error.type`` and ``error.message`` of an answer's body; nothing of a body in another form."""
    error = body.get("error") if isinstance(body, Mapping) else None
    if not isinstance(error, Mapping):
        return None, ""
    return _text(error.get("type")), _text(error.get("message")) or ""


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _clean(sentence: str, secrets: tuple[str, ...]) -> str:
    for secret in secrets:
        sentence = sentence.replace(secret, "[redacted]")
    line = redact(" ".join(sentence.split()))
    return line if len(line) <= MAX_SENTENCE else line[:MAX_SENTENCE] + "…"


def _message(ours: type[APIError], status: int | None, sentence: str) -> str:
    headline = _HEADLINES[ours] + (f" ({status})" if status else "")
    return f"{headline}: {sentence}" if sentence else headline
