"""A Messages API server on the loopback interface that says what a test tells it to.

It speaks the real wire format, so the real SDK, its error classes and its connection handling are under test
with everything above them. It refuses what the API refuses and accounts for the prompt cache as the API does.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from conjure_jupyter.errors import InvalidRequestError
from conjure_jupyter.types import Content, Message

from .caching import PromptCache, count_input, count_output
from .faults import HTTPError
from .http import Answer, Server
from .script import Script, ScriptError, ScriptReader, Step
from .validation import refuse, signed_here, validate_request
from .wire import frames

#: Bytes of a request's body above which the service answers 413.
MAX_REQUEST = 32 * 1024 * 1024
API_KEY = "fake-claude-key"


@dataclass(slots=True)
class RecordedRequest:
    """A request that came in.

    Attributes:
        path: without the query.
        headers: names in lower case.
        body: parsed JSON, ``{}`` when it is none.
        raw: the body's bytes.
        status: HTTP status of the answer.
        usage: what the answer said it used; of answered messages only.
        hung_up: the client closed the connection before the answer was out.
        at: when it came, by ``time.monotonic()``, in seconds.
    """

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    raw: bytes = b""
    status: int = 0
    usage: dict[str, Any] = field(default_factory=dict)
    hung_up: bool = False
    at: float = field(default_factory=time.monotonic)


class FakeClaude:
    """A scripted Messages API server in a thread of its own; a context manager.

    ::

        with FakeClaude([tool_use("view", {"path": "a.txt"}), "It says hello."]) as claude:
            client = anthropic.Anthropic(base_url=claude.url, api_key="any")

    Args:
        script: what to answer (``Script``). A request that is refused uses up nothing.
        chunk: most characters of one delta; None sends a block in one delta.
        api_key: the only credential that is taken; None takes any.
        models: the models there are; None knows every name that starts with ``claude-``.
        check: whether requests are validated as the API does.

    Attributes:
        requests: every request that came in, in order.
    """

    def __init__(
        self,
        script: Script = (),
        *,
        chunk: int | None = 16,
        api_key: str | None = None,
        models: Iterable[str] | None = None,
        check: bool = True,
    ) -> None:
        self.requests: list[RecordedRequest] = []
        self._script = ScriptReader(script)
        self._chunk = chunk
        self._api_key = api_key
        self._models = None if models is None else tuple(models)
        self._check = check
        self._cache = PromptCache()
        self._signatures: set[tuple[str, str]] = set()
        self._clock = 0.0
        self._lock = threading.Lock()
        self._server: Server | None = None

    def __enter__(self) -> Self:
        self._server = Server(self._answer)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop; connections that are open break, answers that wait are dropped."""
        if self._server is not None:
            self._server.close()

    @property
    def url(self) -> str:
        """The base URL for a client."""
        if self._server is None:
            raise RuntimeError("FakeClaude runs inside its with statement only")
        return self._server.url

    @property
    def env(self) -> dict[str, str]:
        """Environment variables that lead a client here, past any proxy."""
        return {
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": self._api_key or API_KEY,
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
        }

    @property
    def messages(self) -> list[RecordedRequest]:
        """The requests for an answer, without token counts and the rest."""
        return [request for request in self.requests if request.path == "/v1/messages"]

    @property
    def connections(self) -> int:
        """Connections that clients opened so far."""
        return self._server.connections if self._server is not None else 0

    @property
    def left(self) -> int | None:
        """Answers of a script that is a list which nobody asked for; None for other scripts."""
        return self._script.left

    @property
    def usage(self) -> dict[str, int]:
        """Token counts of all answers together."""
        total: dict[str, int] = {}
        for request in self.messages:
            for name, value in request.usage.items():
                if isinstance(value, int):
                    total[name] = total.get(name, 0) + value
        return total

    @property
    def cached_share(self) -> float:
        """The part of all input tokens that was read from the prompt cache, from 0 to 1."""
        usage = self.usage
        names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        total = sum(usage.get(name, 0) for name in names)
        return usage.get("cache_read_input_tokens", 0) / total if total else 0.0

    def advance(self, seconds: float) -> None:
        """Let time pass for the prompt cache."""
        self._clock += seconds

    def _answer(self, method: str, path: str, headers: dict[str, str], raw: bytes) -> Answer:
        path, body = _from_vertex(path, _parsed(raw), headers)
        request = RecordedRequest(path, headers, body, raw)
        with self._lock:
            self.requests.append(request)
            number = len(self.requests)
        answer = self._routed(method, request, raw)
        request.status = answer.status
        answer.headers.setdefault("request-id", f"req_fake_{number:04d}")
        answer.on_hang_up = lambda: setattr(request, "hung_up", True)
        return answer

    def _routed(self, method: str, request: RecordedRequest, raw: bytes) -> Answer:
        try:
            self._admit(request.headers, raw)
            if request.path == "/v1/models" or request.path.startswith("/v1/models/"):
                return self._model_list(request.path)
            if method != "POST" or request.path not in ("/v1/messages", "/v1/messages/count_tokens"):
                refuse("Not found", status=404, error_type="not_found_error")
            if not request.body:
                refuse("The request body is not valid JSON")
            counting = request.path.endswith("count_tokens")
            if self._check:
                validate_request(request.body, counting=counting, signed=self._signed)
            self._known_model(request.body.get("model", ""))
            if counting:
                return _json(200, {"input_tokens": count_input(request.body)})
            return self._message(request)
        except InvalidRequestError as error:
            return _error(error.status or 400, error.error_type or "invalid_request_error", error.message)
        except ScriptError as error:
            return _error(400, "invalid_request_error", f"FakeClaude: {error}")

    def _admit(self, headers: Mapping[str, str], raw: bytes) -> None:
        if len(raw) > MAX_REQUEST:
            refuse(
                "Request exceeds the maximum allowed number of bytes.",
                status=413,
                error_type="request_too_large",
            )
        key = headers.get("authorization", "").removeprefix("Bearer ") or headers.get("x-api-key", "")
        if not key:
            refuse("Authentication credential is missing", status=401, error_type="authentication_error")
        if self._api_key is not None and key != self._api_key:
            refuse("invalid credential", status=401, error_type="authentication_error")
        if "anthropic-version" not in headers:
            refuse("anthropic-version: header is required")

    def _known_model(self, model: str) -> None:
        known = model.startswith("claude-") if self._models is None else model in self._models
        if not known:
            refuse(f"model: {model}", status=404, error_type="not_found_error")

    def _model_list(self, path: str) -> Answer:
        models = [
            {"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z"}
            for name in self._models or ("claude-sonnet-5-5", "claude-haiku-5-5", "claude-opus-5-5")
        ]
        if path == "/v1/models":
            ends = {"first_id": models[0]["id"], "last_id": models[-1]["id"]}
            return _json(200, {"data": models, "has_more": False, **ends})
        wanted = path.removeprefix("/v1/models/")
        found = next((model for model in models if model["id"] == wanted), None)
        if found is None:
            refuse(f"model: {wanted}", status=404, error_type="not_found_error")
        return _json(200, found)

    def _message(self, request: RecordedRequest) -> Answer:
        body = request.body
        step = self._script.next(body)
        refusal: HTTPError | None = step.first(HTTPError)
        if refusal is not None:
            return _refusal(refusal, step)
        message = self._completed(body, step.message)
        request.usage = message["usage"]
        if not body.get("stream"):
            return Answer(200, {"content-type": "application/json"}, [json.dumps(message).encode()], step)
        headers = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
        return Answer(200, headers, frames(step, message, self._chunk), step)

    def _completed(self, body: dict[str, Any], said: Message) -> Message:
        """The message as the service would send it, its tokens accounted for."""
        with self._lock:
            usage = self._cache.account(body, self._clock)
            number = len(self.requests)
            for block in said["content"]:
                if block["type"] == "thinking":
                    self._signatures.add((block["thinking"], block["signature"]))
        content: list[Content] = said["content"]
        usage = {**usage, "output_tokens": count_output(content), **said.get("usage", {})}
        return {
            "id": f"msg_fake_{number:04d}",
            "type": "message",
            "model": body["model"],
            "stop_sequence": None,
            **said,
            "usage": usage,
        }

    def _signed(self, words: str, signature: str) -> bool:
        return signed_here(words, signature) or (words, signature) in self._signatures


def _from_vertex(path: str, body: dict[str, Any], headers: dict[str, str]) -> tuple[str, dict[str, Any]]:
    """A request in Vertex AI's form as one of the API's own; any other as it is.

    Vertex has the model in the path and the API's version in the body.
    """
    match = re.search(r"/publishers/anthropic/models/([^/:]+):(raw|streamRaw)Predict$", path)
    if match is None or "anthropic_version" not in body:
        return path, body
    body = {**body, "model": body.get("model", match[1])}
    headers["anthropic-version"] = body.pop("anthropic_version")
    return ("/v1/messages/count_tokens" if match[1] == "count-tokens" else "/v1/messages"), body


def _parsed(raw: bytes) -> dict[str, Any]:
    try:
        body = json.loads(raw)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _json(status: int, value: Any) -> Answer:
    return Answer(status, {"content-type": "application/json"}, [json.dumps(value).encode()])


def _error(status: int, kind: str, reason: str) -> Answer:
    return _json(status, {"type": "error", "error": {"type": kind, "message": reason}})


def _refusal(fault: HTTPError, step: Step) -> Answer:
    if fault.body is None:
        answer = _error(fault.status, fault.error_type, fault.message)
    else:
        answer = Answer(fault.status, {"content-type": "text/html"}, [fault.body.encode()])
    answer.step = step
    answer.headers.update(fault.headers)
    if fault.retry_after is not None:
        answer.headers["retry-after"] = str(fault.retry_after)
    return answer
