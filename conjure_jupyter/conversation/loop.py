"""The one loop: ask, run what Claude asked for, ask again, until it is done.

What to do next is read from the history alone: calls without results are run, otherwise a request is
made. So a turn that paused for an approval, or that a crash cut, goes on through the same door. Every
block is in the timeline before it is acted on; its sync to disk overlaps the next request.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from ..clients.accumulate import MessageAccumulator
from ..clients.base import Client, Request
from ..errors import APIError, ApprovalRequiredError, MaxIterationsError
from ..places.contract import Place
from ..telemetry import span
from ..timeline import MemoryTimeline, MessageProjection, Timeline
from ..types import (
    AnswerDiscarded,
    AssistantMessage,
    Event,
    Message,
    Notice,
    RequestStarted,
    Retrying,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolFinished,
    ToolInputDelta,
    ToolOutput,
    ToolResult,
    ToolStarted,
    UsageUpdated,
)
from .approvals import Gate, Ruling
from .cost import Meter, prices_loaded
from .retry import reason, wait_before_retry

log = logging.getLogger(__name__)

#: Characters of a running call's output that are kept in case it is stopped.
_KEPT_OUTPUT = 20_000

#: Seconds between two events that tell what was used.
_USAGE_EVERY = 0.25


@dataclass(slots=True)
class Plan:
    """What stays the same in every request of a turn.

    Attributes:
        before: messages that come before the history's, for callers who keep their own.
    """

    model: str
    max_tokens: int
    system: str
    tools: list[dict[str, Any]]
    extra: dict[str, Any] = field(default_factory=dict)
    before: list[Message] = field(default_factory=list)
    max_iterations: int = 25
    retries: int = 4


class Loop:
    """One turn of a conversation.

    Args:
        client: who answers.
        place: where tools run.
        timeline: the record; ``history`` must be fed by it.
        history: the messages it stands for.
        gate: who may say yes to a call.
        meter: counts tokens and money.
        plan: what every request has in common.
        emit: hears events; returns at once.
        make_room: called before each request with its estimated input tokens; may summarise older turns.
    """

    def __init__(
        self,
        *,
        client: Client,
        place: Place,
        timeline: Timeline | MemoryTimeline,
        history: MessageProjection,
        gate: Gate,
        meter: Meter,
        plan: Plan,
        emit: Callable[[Event], None],
        make_room: Callable[[int], Awaitable[bool]] | None = None,
    ) -> None:
        self.client = client
        self.place = place
        self.timeline = timeline
        self.history = history
        self.gate = gate
        self.meter = meter
        self.plan = plan
        self.emit = emit
        self.make_room = make_room
        self.turn = timeline.turn
        self.retries = 0
        self.answers: list[Message] = []
        self.records: list[tuple[ToolCall, ToolResult]] = []
        self._sync: asyncio.Task[Any] | None = None
        self._invalid: dict[str, str] = {}
        self._usage_told = float("-inf")

    @property
    def messages(self) -> list[Message]:
        """The conversation so far, as the API takes it."""
        return [*self.plan.before, *self.history.messages]

    def take_up(self, answers: list[Message], records: list[tuple[ToolCall, ToolResult]]) -> None:
        """Go on with a turn that paused: what it said, did and used so far counts."""
        self.answers += answers
        self.records += records
        for answer in answers:
            self.meter.add(answer.get("model") or self.plan.model, answer.get("usage") or {})

    async def run(self) -> str:
        """Go on until Claude is done; returns the API's stop reason.

        Raises:
            MaxIterationsError: the limit was reached.
            BudgetExceededError: the next request does not fit.
            ApprovalRequiredError: calls wait for the user's word.
            APIError: the service failed for good.
            ExecutorError: the place failed.
            asyncio.CancelledError: it was stopped; partial answer and results are in the timeline.
        """
        iteration = len(self.answers)
        try:
            while True:
                if calls := self.history.pending_calls():
                    await self._run_calls(calls)
                    continue
                if iteration >= self.plan.max_iterations:
                    raise MaxIterationsError(self.plan.max_iterations, self.messages)
                iteration += 1
                message = await self._ask(iteration)
                await self.place.collect(message)
                stop_reason = message.get("stop_reason") or "end_turn"
                if stop_reason != "pause_turn" and not self.history.pending_calls():
                    return stop_reason
        finally:
            if self._sync is not None:
                # Whatever it failed with is raised again where the end of the turn awaits its own sync.
                await asyncio.gather(self._sync, return_exceptions=True)

    async def _ask(self, iteration: int) -> Message:
        self._sync_soon()
        messages = self.messages
        if self.make_room is not None and await self.make_room(self._next_input(messages)):
            messages = self.messages
        request = Request(
            model=self.plan.model,
            max_tokens=self.meter.allowance(
                self.plan.model, self.plan.max_tokens, self._next_input(messages) if self.meter.budget else 0
            ),
            system=self.plan.system,
            messages=messages,
            tools=self.plan.tools,
            extra=self.plan.extra,
        )
        request = await self.place.prepare(request)
        attempt = 1
        while True:
            self.emit(RequestStarted(self.turn, iteration))
            answer = MessageAccumulator()
            try:
                with span("conjure.request", model=self.plan.model, turn=self.turn, iteration=iteration):
                    await self._read(request, answer)
            except APIError as error:
                wait = wait_before_retry(error, attempt, self.plan.retries)
                if wait is None:
                    self._keep_partial(answer)
                    raise
                self._count(answer)
                self.retries += 1
                self.emit(AnswerDiscarded(self.turn))
                self.emit(Retrying(self.turn, attempt, wait, reason(error)))
                log.info("request failed (%s), retry %d in %.1f s", error.type, attempt, wait)
                await asyncio.sleep(wait)
                attempt += 1
            except BaseException:
                self._keep_partial(answer)
                raise
            else:
                self._invalid.update(answer.invalid_inputs)
                return self._keep(answer.message)

    async def _read(self, request: Request, answer: MessageAccumulator) -> None:
        writing: dict[int, tuple[str, str, int]] = {}
        stream = self.client.stream(request)
        try:
            async for event in stream:
                answer.add(event)
                kind = event["type"]
                if kind == "content_block_delta":
                    delta = event["delta"]
                    match delta.get("type"):
                        case "text_delta":
                            self.emit(TextDelta(self.turn, delta["text"]))
                        case "thinking_delta":
                            self.emit(ThinkingDelta(self.turn, delta["thinking"]))
                        case "input_json_delta" if event["index"] in writing:
                            call_id, name, size = writing[event["index"]]
                            size += len(delta["partial_json"])
                            writing[event["index"]] = (call_id, name, size)
                            self.emit(ToolInputDelta(self.turn, call_id, name, size))
                elif kind == "content_block_start" and event["content_block"].get("type") == "tool_use":
                    block = event["content_block"]
                    writing[event["index"]] = (block["id"], block["name"], 0)
                    self.emit(ToolInputDelta(self.turn, block["id"], block["name"], 0))
        finally:
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()

    def _keep(self, message: Message) -> Message:
        self.timeline.append("assistant", {"message": message, "partial": False})
        self.answers.append(message)
        self.meter.add(message.get("model") or self.plan.model, message.get("usage") or {})
        self.emit(AssistantMessage(self.turn, message))
        self._tell_usage()
        return message

    def _tell_usage(self) -> None:
        # Finding a price takes a millisecond: not more often than anybody can read it.
        now = time.monotonic()
        if now - self._usage_told >= _USAGE_EVERY and (self.meter.free or prices_loaded()):
            self._usage_told = now
            self.emit(UsageUpdated(self.turn, self.meter.usage, self.meter.cost))

    def _keep_partial(self, answer: MessageAccumulator) -> None:
        self._count(answer)
        partial = answer.partial()
        if partial["content"]:
            self.timeline.append("assistant", {"message": partial, "partial": True})
            self.answers.append(partial)
            self.emit(AssistantMessage(self.turn, partial))

    def _count(self, answer: MessageAccumulator) -> None:
        """Count an answer that broke off: what it used by then was used."""
        usage = answer.message.get("usage")
        if usage:
            self.meter.add(answer.message.get("model") or self.plan.model, usage)
            self._tell_usage()

    async def _run_calls(self, calls: list[ToolCall]) -> None:
        for call in calls:
            if call.id in self._invalid:
                written = self._invalid[call.id][:500]
                text = (
                    f"The input of {call.name} was no JSON object; call it again with one. It was: {written}"
                )
                self._finish(call, ToolResult(call.id, text, is_error=True))
        calls = [call for call in calls if call.id not in self._invalid]
        try:
            rulings = await self.gate.rule(calls)
        except ApprovalRequiredError as error:
            error.messages = self.messages
            calls_asked = [{"id": id_, "name": name, "summary": line} for id_, name, line in error.calls]
            self.timeline.append("approval", {"calls": calls_asked, "verdicts": None})
            raise
        except BaseException as error:
            stopped = isinstance(error, asyncio.CancelledError)
            text = "Not run: the user stopped the turn." if stopped else "Not run: asking the user failed."
            for call in calls:
                self._finish(call, ToolResult(call.id, text, is_error=True))
            raise
        for ruling in rulings:
            self.timeline.append(
                "tool_call",
                {
                    "id": ruling.call.id,
                    "name": ruling.call.name,
                    "decision": "allow" if ruling.allow else "deny",
                    "by": ruling.by,
                    "reason": ruling.reason,
                },
            )
        for ruling in rulings:
            if not ruling.allow:
                self._finish(ruling.call, ToolResult(ruling.call.id, _refusal(ruling), is_error=True))
        await self._execute([ruling.call for ruling in rulings if ruling.allow])

    async def _execute(self, calls: list[ToolCall]) -> None:
        if not calls:
            return
        printed: dict[str, str] = {call.id: "" for call in calls}
        finished: set[str] = set()

        def on_output(call: ToolCall, text: str) -> None:
            printed[call.id] = (printed[call.id] + text)[-_KEPT_OUTPUT:]
            self.emit(ToolOutput(self.turn, call.id, text))

        def on_finish(call: ToolCall, result: ToolResult) -> None:
            finished.add(call.id)
            self._finish(call, result)

        try:
            with span("conjure.tools", turn=self.turn, calls=len(calls)):
                await self.place.execute(
                    calls,
                    on_start=lambda call: self.emit(ToolStarted(self.turn, call)),
                    on_output=on_output,
                    on_finish=on_finish,
                )
        except BaseException as error:
            why = "Stopped by the user" if isinstance(error, asyncio.CancelledError) else f"Failed: {error}"
            for call in calls:
                if call.id not in finished:
                    kept = printed[call.id]
                    text = f"{why}. Output so far:\n{kept}" if kept else f"{why}."
                    self._finish(call, ToolResult(call.id, text, is_error=True, meta={"stopped": True}))
            raise

    def _finish(self, call: ToolCall, result: ToolResult) -> None:
        self.timeline.append(
            "tool_result",
            {
                "tool_use_id": result.tool_use_id,
                "content": result.content,
                "is_error": result.is_error,
                "meta": result.meta,
            },
        )
        self.records.append((call, result))
        self.emit(ToolFinished(self.turn, call, result))

    def _next_input(self, messages: list[Message]) -> int:
        """Estimated input tokens of the next request: the last one's, and the text that came since."""
        last = self.meter.last
        if last is not None and self.answers:
            since = messages[-1:]
            known = sum(
                value or 0
                for key, value in last.items()
                if key.endswith("_tokens") and isinstance(value, int)
            )
        else:
            since, known = messages, len(self.plan.system + json.dumps(self.plan.tools)) // 3
        return known + len(json.dumps(since)) // 3

    def _sync_soon(self) -> None:
        if self._sync is None or self._sync.done():
            self._sync = asyncio.create_task(self._synced(), name="conjure-sync")

    async def _synced(self) -> None:
        try:
            await self.timeline.synced()
        except Exception as error:  # noqa: BLE001  the end of the turn raises it; the user hears of it now
            self.emit(Notice(self.turn, f"The log is not on disk yet: {error}", "warning"))

    def tell(self, text: str) -> None:
        """Tell Claude something with the next message, and the user now."""
        self.timeline.append("notice", {"text": text})
        self.emit(Notice(self.turn, text))


def _refusal(ruling: Ruling) -> str:
    if ruling.by == "user":
        return f"The user refused this call. {ruling.reason}".strip()
    return f"This call is not allowed: {ruling.reason}"
