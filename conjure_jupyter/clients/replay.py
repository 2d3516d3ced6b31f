"""Answers that were recorded once, given again without a model.

A request is found by what the user said, its position and the ids of the calls it answers, never by what
tools gave: tools run for real each time, and an output that differs from the recorded one is reported.
The file holds no secret and no host path: secrets are redacted, and folders of this machine are written as
marks that become the folders of the machine that replays.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from ..errors import ReplayMismatchError, ReplayMissError, SettingsError
from ..redaction import redact
from ..types import Content, Message
from .accumulate import MessageAccumulator, message_events
from .base import Client, Request, StreamEvent
from .cassette import Cassette, Entry, calls_step, digest

Mode = Literal["off", "record", "replay", "auto"]

#: Characters of a tool's output that a cassette shows; what is compared is the digest of the whole.
SHOWN_OUTPUT = 2_000

#: Characters of a replayed delta.
_CHUNK = 64

#: Never redacted or rewritten: the service checks them, or calls and results are matched by them.
_VERBATIM = frozenset(
    {"id", "type", "signature", "data", "tool_use_id", "encrypted_content", "encrypted_index"}
)

# What differs from run to run and means nothing. Only in tool outputs: in a prompt "5 s" may be the point.
_VOLATILE = (
    (re.compile(r"(?<![\w.])\d+(?:\.\d+)?\s?(?:ns|µs|us|ms|s|secs?|seconds?|min|minutes?)\b"), "<duration>"),
    (re.compile(r"\b\d+:\d\d:\d\d(?:\.\d+)?\b"), "<duration>"),
    (re.compile(r"\bsessions/[\w.-]+/work\b"), "sessions/<session>/work"),
    (re.compile(r"\b0x[0-9a-fA-F]{6,16}\b"), "<address>"),
)


class ReplayClient(Client):
    """Gives recorded answers, or records those of another client.

    Args:
        inner: who answers live; needed by ``off`` and ``record``, and by ``auto`` for what is not recorded.
        path: the cassette.
        mode: ``off`` passes everything to ``inner``; ``record`` does so and records it; ``replay`` never asks
            ``inner``; ``auto`` replays what is recorded and records what is not.
        strict: a tool output that differs from the recorded one is an error, not a notice.
        headless: nobody watches, so ``auto`` never asks ``inner``.
        folders: names of folders whose paths differ from machine to machine, besides the cassette's own
            folder, the home folder, the temporary folder and Python's.

    Attributes:
        notices: one sentence for each tool output that differed so far.

    Raises:
        SettingsError: the mode needs ``inner`` and there is none.
    """

    name: ClassVar[str] = "replay"
    live: ClassVar[bool] = False

    def __init__(
        self,
        inner: Client | None,
        path: Path | str,
        mode: Mode = "replay",
        *,
        strict: bool = False,
        headless: bool = False,
        folders: Mapping[str, Path] | None = None,
    ) -> None:
        if mode not in ("off", "record", "replay", "auto"):
            raise SettingsError("replay", f"{mode!r} is not one of off, record, replay, auto")
        if inner is None and mode in ("off", "record"):
            raise SettingsError("replay", f"'{mode}' needs a client that answers")
        self.inner = inner
        self.cassette = Cassette(Path(path))
        self.mode = mode
        self.strict = strict
        self.headless = headless
        self.notices: list[str] = []
        self._places = _Places({"notebook": self.cassette.path.absolute().parent, **(folders or {})})
        if inner is not None and mode != "replay" and not (mode == "auto" and headless):
            self.live = inner.live  # type: ignore[misc]  # whether money may be spent depends on the mode

    async def stream(self, request: Request) -> AsyncIterator[StreamEvent]:
        """Yield the recorded answer, or the live one.

        Raises:
            ReplayMissError: the answer is not recorded and may not be asked for.
            ReplayMismatchError: ``strict``, and a tool output differs.
            ReplayError: the cassette cannot be read or written.
            APIError: the client that answers live failed.
        """
        if self.mode == "off" and self.inner is not None:
            async with _closing(self.inner.stream(request)) as events:
                async for event in events:
                    yield event
            return
        path = conversation_path(request.messages, self._places.hide)
        entry = None if self.mode == "record" else self.cassette.find(path)
        if entry is not None:
            self._compare(entry, request)
            message = self._places.show(entry.message)
            for event in message_events(message, chunk=_CHUNK):
                yield event
            return
        if self.inner is None or self.mode == "replay" or (self.headless and self.mode == "auto"):
            raise ReplayMissError(self.cassette.path, self._why_missing(path))
        answer = MessageAccumulator()
        async with _closing(self.inner.stream(request)) as events:
            async for event in events:
                answer.add(event)
                if event["type"] == "message_stop":
                    # Recorded before the loop can act on it: what is done is what is on the cassette.
                    entry = Entry(path, self._written(answer.message), self._results(request))
                    await asyncio.to_thread(self.cassette.put, entry)
                yield event

    async def count_tokens(self, request: Request) -> int | None:
        """What the live client says; None when it may not be asked."""
        return await self.inner.count_tokens(request) if self.inner is not None and self.live else None

    async def close(self) -> None:
        """Close the client that answers live."""
        if self.inner is not None:
            await self.inner.close()

    def _written(self, message: Message) -> Message:
        written: Message = _mapped(message, lambda text: self._places.hide(redact(text)))
        return written

    def _results(self, request: Request) -> dict[str, dict[str, Any]]:
        return {
            call_id: {"is_error": is_error, "sha256": digest(text), "text": text[:SHOWN_OUTPUT]}
            for call_id, text, is_error in self._outputs(request)
        }

    def _outputs(self, request: Request) -> Iterator[tuple[str, str, bool]]:
        """Id, comparable text and ``is_error`` of each result that the request brings."""
        last = request.messages[-1]["content"] if request.messages else ()
        for block in last if not isinstance(last, str) else ():
            if block["type"] == "tool_result":
                text = self._places.hide(redact(_text(block.get("content") or "")))
                for pattern, mark in _VOLATILE:
                    text = pattern.sub(mark, text)
                yield block["tool_use_id"], text, bool(block.get("is_error"))

    def _compare(self, entry: Entry, request: Request) -> None:
        for call_id, text, is_error in self._outputs(request):
            recorded = entry.results.get(call_id)
            if recorded is None or (recorded["sha256"] == digest(text) and recorded["is_error"] == is_error):
                continue
            reason = _difference(recorded, text, is_error)
            if self.strict:
                raise ReplayMismatchError(self.cassette.path, call_id, reason)
            self.notices.append(f"{self.cassette.path.name}: call {call_id}: {reason}")

    def _why_missing(self, path: tuple[str, ...]) -> str:
        if not self.cassette.path.exists():
            return "there is no such cassette"
        kind, _, said = path[-1].partition(": ")
        if kind == "calls":
            return f"no answer is recorded after the calls {said} of this prompt"
        before = (
            " after these earlier prompts" if len(path) > 1 and self.cassette.beginning_with(path[:1]) else ""
        )
        short = said if len(said) <= 80 else said[:79] + "…"
        return f"no answer is recorded for the prompt {short!r}{before}"


@contextlib.asynccontextmanager
async def _closing(events: AsyncIterator[StreamEvent]) -> AsyncIterator[AsyncIterator[StreamEvent]]:
    """End the live request when its reader stops early."""
    try:
        yield events
    finally:
        close = getattr(events, "aclose", None)
        if close is not None:
            await close()


def conversation_path(messages: list[Message], hide: Callable[[str], str]) -> tuple[str, ...]:
    """Where a conversation stands: what the user said and which calls were answered, in order.

    Args:
        messages: as the API takes them.
        hide: takes host paths out of a text.
    """
    path: list[str] = []
    for message in messages:
        if message["role"] != "user":
            continue
        content = message["content"]
        blocks: list[Content] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        calls = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if calls:
            path.append(calls_step(calls))
        said = [_said(block) for block in blocks if block["type"] != "tool_result"]
        if said:
            path.append("user: " + hide(redact("\n".join(said))).strip())
    return tuple(path)


def _said(block: Content) -> str:
    if block["type"] == "text":
        return str(block["text"])
    plain = {name: value for name, value in block.items() if name != "cache_control"}
    return f"[{block['type']} {digest(json.dumps(plain, sort_keys=True))[:16]}]"


def _text(content: str | list[Content]) -> str:
    return content if isinstance(content, str) else "\n".join(_said(block) for block in content)


def _difference(recorded: dict[str, Any], text: str, is_error: bool) -> str:
    if recorded["is_error"] != is_error:
        was, now = ("failed", "succeeds") if recorded["is_error"] else ("succeeded", "fails")
        return f"it {was} when recorded and {now} now"
    old, new = recorded["text"].splitlines(), text[:SHOWN_OUTPUT].splitlines()
    for number, (before, after) in enumerate(zip(old, new, strict=False), start=1):
        if before != after:
            return f"line {number} of the output was {before[:120]!r} and is {after[:120]!r}"
    return f"the output had {len(old)} lines when recorded and has {len(new)}, or differs further down"


def _mapped(value: Any, change: Callable[[str], str], verbatim: frozenset[str] = _VERBATIM) -> Any:
    """``value`` with its texts changed, those that must stay verbatim left alone."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {
            # A tool's input has names of its own: "data" there is no signed block.
            name: item
            if name in verbatim
            else _mapped(item, change, frozenset() if name == "input" else verbatim)
            for name, item in value.items()
        }
    return [_mapped(item, change, verbatim) for item in value] if isinstance(value, list) else value


class _Places:
    """Folders of this machine, and the marks that stand for them in a cassette."""

    def __init__(self, folders: Mapping[str, Path]) -> None:
        known = {
            **folders,
            "home": Path.home(),
            "python": Path(sys.prefix),
            "tmp": Path(tempfile.gettempdir()),
        }
        self._folders = {
            f"<{name}-folder>": str(folder) for name, folder in known.items() if len(folder.parts) > 1
        }
        # The longest first: a notebook's folder lies in the home folder.
        pairs = {
            (form, mark)
            for mark, folder in self._folders.items()
            for form in (folder, str(Path(folder).resolve()))
        }
        self._hidden = [
            (re.compile(rf"(?<![\w.-]){re.escape(form)}(?![\w.-]*[\w-])"), mark)
            for form, mark in sorted(pairs, key=lambda pair: (-len(pair[0]), pair[1]))
        ]

    def hide(self, text: str) -> str:
        for pattern, mark in self._hidden:
            text = pattern.sub(mark, text)
        return text

    def show(self, message: Message) -> Message:
        shown: Message = _mapped(message, self._shown)
        return shown

    def _shown(self, text: str) -> str:
        for mark, folder in self._folders.items():
            text = text.replace(mark, folder)
        return text
