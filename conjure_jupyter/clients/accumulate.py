"""From stream events to a message, and back.

Deltas are collected and joined once: a tool's input is parsed when its block stops, never before, so a
200 KB input costs one parse. Blocks and fields this version does not know are kept as they came.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NoReturn

from conjure_jupyter.errors import StreamInterruptedError
from conjure_jupyter.types import Content, Message

from .base import StreamEvent

#: Delta type -> (its field, the block's field), for deltas that add to a text.
_TEXTS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
}

#: Stop reasons after which the last block may be cut, whatever it looks like.
_CUT = ("max_tokens", "model_context_window_exceeded")


class _Block:
    """A content block that is still being written."""

    __slots__ = ("content", "json", "texts")

    def __init__(self, content: Content) -> None:
        self.content = content
        self.texts: dict[str, list[str]] = {}
        self.json: list[str] = []

    def add(self, delta: dict[str, Any]) -> None:
        kind = delta.get("type")
        if kind in _TEXTS:
            source, target = _TEXTS[kind]
            parts = self.texts.get(target)
            if parts is None:
                parts = self.texts[target] = [self.content.get(target) or ""]
            parts.append(delta[source])
        elif kind == "input_json_delta":
            self.json.append(delta["partial_json"])
        elif kind == "citations_delta":
            self.content["citations"] = [*(self.content.get("citations") or ()), delta["citation"]]
        else:
            # signature_delta replaces, as do deltas of later versions: their fields are the block's.
            self.content.update((name, value) for name, value in delta.items() if name != "type")

    def join(self) -> None:
        for name, parts in self.texts.items():
            parts[:] = ["".join(parts)]
            self.content[name] = _whole_characters(parts[0])


class MessageAccumulator:
    """Builds the message that a stream of events describes.

    Attributes:
        complete: ``message_stop`` was seen.
        invalid_inputs: tool inputs that are no JSON object, as text, by the call's id. The block has ``{}``
            as its input: such a call must be answered with an error, not run.
    """

    def __init__(self) -> None:
        self.complete = False
        self.invalid_inputs: dict[str, str] = {}
        self._message: Message = {}
        self._open: dict[int, _Block] = {}

    def add(self, event: StreamEvent) -> None:
        """Take one event, in the order of the stream; unknown events are passed over.

        Raises:
            StreamInterruptedError: the event does not fit what came before it.
        """
        kind = event.get("type")
        if kind == "content_block_delta":
            self._block(event).add(event["delta"])
        elif kind == "content_block_start":
            self._started(event)
            block = _Block(dict(event["content_block"]))
            self._open[event["index"]] = block
            self._message["content"].append(block.content)
        elif kind == "content_block_stop":
            self._finish(self._block(event))
            del self._open[event["index"]]
        elif kind == "message_start":
            self._message = dict(event["message"])
            self._message["content"] = list(self._message.get("content") or ())
            self._message["usage"] = dict(self._message.get("usage") or {})
        elif kind == "message_delta":
            self._started(event)
            self._merge(event)
        elif kind == "message_stop":
            self._started(event)
            self.complete = True

    @property
    def message(self) -> Message:
        """The message so far, in the API's form; ``{}`` before ``message_start``.

        It is the same dict from call to call and grows with the stream; once ``complete`` it stays as it is.
        """
        for block in self._open.values():
            block.join()
        return self._message

    def partial(self) -> Message:
        """What may go back to the API of an answer that broke off: a new dict with the same blocks.

        Left out: calls whose input is not whole, server calls without their result, thinking without its
        signature or with nothing after it, and empty text. The content may be empty.
        """
        message = self.message
        blocks: list[Content] = message.get("content", [])
        unfinished = {id(block.content) for block in self._open.values()}
        if blocks and message.get("stop_reason") in _CUT:
            unfinished.add(id(blocks[-1]))
        answered = {block.get("tool_use_id") for block in blocks}
        kept = [block for block in blocks if self._keep(block, id(block) not in unfinished, answered)]
        while kept and kept[-1]["type"] in ("thinking", "redacted_thinking"):
            kept.pop()
        return {**message, "content": kept}

    def _keep(self, block: Content, whole: bool, answered: set[str | None]) -> bool:
        kind = block.get("type")
        if kind == "text":
            return bool(block.get("text", "").strip())
        if kind == "thinking":
            return bool(block.get("signature"))
        if not whole or block.get("id") in self.invalid_inputs:
            return False
        return kind not in ("server_tool_use", "mcp_tool_use") or block.get("id") in answered

    def _started(self, event: StreamEvent) -> None:
        if not self._message:
            raise StreamInterruptedError(f"The service sent {event['type']} before message_start")

    def _block(self, event: StreamEvent) -> _Block:
        try:
            return self._open[event["index"]]
        except KeyError:
            raise StreamInterruptedError(
                f"The service sent {event['type']} for a content block that is not open"
            ) from None

    def _finish(self, block: _Block) -> None:
        block.join()
        text = "".join(block.json)
        if not text:
            return
        try:
            value = json.loads(text, parse_constant=_refuse_constant)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            self.invalid_inputs[block.content.get("id", "")] = text
            value = {}
        block.content["input"] = value

    def _merge(self, event: StreamEvent) -> None:
        # Counts are totals, so they replace; a count that is left out or null keeps the earlier one.
        usage = self._message["usage"]
        usage.update((name, value) for name, value in (event.get("usage") or {}).items() if value is not None)
        for name, value in event["delta"].items():
            if value is not None or name not in self._message:
                self._message[name] = value
        for name, value in event.items():
            if name not in ("type", "delta", "usage"):
                self._message[name] = value


def _refuse_constant(name: str) -> NoReturn:
    """NaN and the infinities are no JSON: a history that holds one would be refused by the API for ever."""
    raise ValueError(name)


def _whole_characters(text: str) -> str:
    r"""``text`` with the halves of characters that two deltas carried put together.

    Some servers escape characters outside the BMP as two ``\uXXXX`` and cut between them. A half that
    stays alone cannot be written as UTF-8 and becomes U+FFFD.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def message_events(message: Message, *, chunk: int | None = None) -> Iterator[StreamEvent]:
    """The stream events that describe a finished message.

    Args:
        message: as the API would return it; missing fields get the values of an ordinary answer.
        chunk: most characters of one delta; None sends each text in one piece.
    """
    usage = {"input_tokens": 0, "output_tokens": 0, **(message.get("usage") or {})}
    start = {
        "id": "msg_0",
        "type": "message",
        "role": "assistant",
        "model": "",
        **message,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**usage, "output_tokens": min(1, usage["output_tokens"])},
    }
    yield {"type": "message_start", "message": start}
    for index, block in enumerate(message["content"]):
        first, deltas = _split(block, chunk)
        yield {"type": "content_block_start", "index": index, "content_block": first}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    end = {
        "stop_reason": message.get("stop_reason") or "end_turn",
        "stop_sequence": message.get("stop_sequence"),
    }
    for name in ("container", "stop_details"):
        if message.get(name) is not None:
            end[name] = message[name]
    yield {"type": "message_delta", "delta": end, "usage": usage}
    yield {"type": "message_stop"}


def _split(block: Content, chunk: int | None) -> tuple[Content, list[dict[str, Any]]]:
    """A block as ``content_block_start`` carries it, and the deltas that complete it."""
    kind = block["type"]
    if kind == "text":
        first = {**block, "text": ""}
        deltas = [{"type": "text_delta", "text": part} for part in _parts(block["text"], chunk)]
        if block.get("citations"):
            first["citations"] = []
            deltas += [{"type": "citations_delta", "citation": one} for one in block["citations"]]
        return first, deltas
    if kind == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": part} for part in _parts(block["thinking"], chunk)]
        deltas.append({"type": "signature_delta", "signature": block.get("signature", "")})
        return {**block, "thinking": "", "signature": ""}, deltas
    if "input" in block:
        text = json.dumps(block["input"], ensure_ascii=False)
        return {**block, "input": {}}, [
            {"type": "input_json_delta", "partial_json": part} for part in _parts(text, chunk)
        ]
    return dict(block), []


def _parts(text: str, chunk: int | None) -> list[str]:
    if chunk is None or not text:
        return [text] if text else []
    return [text[at : at + chunk] for at in range(0, len(text), chunk)]
