"""One turn from the user's words to the reply: what is written before, while and after Claude is asked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..clients.options import request_fields
from ..clients.replay import ReplayClient
from ..errors import (
    ApprovalRequiredError,
    BudgetExceededError,
    MaxIterationsError,
    SessionError,
    TimelineError,
)
from ..settings import Settings, parse_budget
from ..timeline import Timeline
from ..types import Event, Listener, Message, Notice, TurnFinished
from . import bounds
from .approvals import Approver, Verdict
from .compaction import Compactor
from .cost import Meter, load_prices
from .loop import Loop, Plan
from .reply import Reply, ToolRecord, text_of
from .stopping import Stop
from .turn import Turn, caller

if TYPE_CHECKING:
    from .runner import Runner

_STOP_REASONS: dict[type[BaseException], str] = {
    MaxIterationsError: "max_iterations",
    BudgetExceededError: "budget",
    ApprovalRequiredError: "approval",
}


class TurnRun:
    """A turn that runs, on the engine's loop.

    Args:
        runner: the session's state.
        turn: what the user said.
        approver: asked about calls.
        listener: hears its events, besides the turn's own listener.
        verdicts: goes on with a paused turn instead, with these words on its calls.
    """

    def __init__(
        self,
        runner: Runner,
        turn: Turn,
        approver: Approver | None,
        listener: Listener | None,
        verdicts: Mapping[str, Verdict] | None,
    ) -> None:
        self._session = runner
        self._turn = turn
        self._verdicts = verdicts
        self._notices: list[str] = []
        self._emit = caller(self._collect, listener, turn.options.listener)
        self._approver = approver
        self._started = time.monotonic()

    def _collect(self, event: Event) -> None:
        if isinstance(event, Notice):
            self._notices.append(event.text)

    def _warn(self, text: str) -> None:
        self._emit(Notice(self._turn.number, text, "warning"))

    async def run(self, stop: Stop) -> Reply:
        """Run it.

        Raises:
            ConjureError: what it ended with, when that is not told by the reply.
            StoppedError: it was stopped before anything of it was written.
        """
        session, turn = self._session, self._turn
        timeline = await session.open()
        # All that can fail is done before the first block of the turn is written.
        restored = await asyncio.to_thread(self._prepare)
        await session.move_to(turn.options.settings)
        self._gate = session.gate(turn.options, self._approver)
        warnings = await session.past.turn_begins()
        await session.artifacts.capture.begin(self._warn)
        await self._begin(timeline, stop)
        for text in warnings:
            self._warn(text)
        loop = self._loop(timeline)
        if self._verdicts is not None:
            loop.take_up(*session.record.so_far())
        stop_reason, failure = await self._converse(loop, stop, restored)
        session.allow(self._gate.always)
        for text in await session.past.turn_ends():
            self._warn(text)
        reply = await self._reply(loop, stop_reason, failure)
        session.last = reply
        await session.record.end_turn(reply)
        session.sent(reply)
        # What could not be written may be a result that its call still needs.
        session.broken = isinstance(failure, TimelineError)
        self._emit(TurnFinished(turn.number, stop_reason, reply.error))
        if failure is not None and stop_reason not in ("max_iterations", "budget"):
            raise failure
        return reply

    def _prepare(self) -> list[str]:
        """Put the working directory right; what is to be told of that."""
        files = self._session.files
        try:
            return files.make() + files.copy_skills(self._session.registry.list())
        except OSError as error:
            raise SessionError(f"The session's files cannot be put right: {error}") from error

    async def _begin(self, timeline: Timeline, stop: Stop) -> None:
        """Write what the user says, or her word on the calls of a paused turn."""
        session, turn, opening = self._session, self._turn, self._session.opening
        if self._verdicts is not None:
            stop.check()
            session.broken = True
            self._take_word(timeline, self._verdicts)
            return
        undone = opening.retried(turn)
        uploads = await asyncio.to_thread(session.files.add_uploads, turn.options.files)
        opening.words(turn)
        news = opening.news(undone)
        stop.check()
        session.broken = True
        opening.begin(turn, timeline, session.place, self._emit, undone)
        await session.artifacts.take_in(uploads)
        content = opening.content(turn, news, uploads)
        opening.say(turn, timeline, self._emit, content=content, uploads=uploads)

    async def _converse(
        self, loop: Loop, stop: Stop, restored: Sequence[str]
    ) -> tuple[str, Exception | None]:
        """Ask and run tools until there is an end; why it came, and what failed."""
        prices = asyncio.create_task(self._load_prices(loop.meter))
        try:
            for text in restored:
                loop.tell(text)
            stop_reason = await stop.allow(self._loop_with_prices(loop, prices))
            self._tell_differences()
        except asyncio.CancelledError:
            return "stopped", None
        except Exception as error:  # noqa: BLE001  raised again once the end of the turn is written
            return _STOP_REASONS.get(type(error), "error"), error
        else:
            return stop_reason, None
        finally:
            await prices

    @staticmethod
    async def _loop_with_prices(loop: Loop, prices: asyncio.Task[None]) -> str:
        if loop.meter.budget is not None:
            await asyncio.shield(prices)
        return await loop.run()

    async def _reply(self, loop: Loop, stop_reason: str, failure: Exception | None) -> Reply:
        session, turn = self._session, self._turn
        return Reply(
            text=_answer(loop.answers),
            files=tuple(await asyncio.to_thread(session.artifacts.made, turn.number)),
            tool_calls=tuple(ToolRecord(call, result) for call, result in loop.records),
            usage=loop.meter.usage,
            cost=loop.meter.cost,
            stop_reason=stop_reason,
            error=(str(failure) or type(failure).__name__) if failure else None,
            session_id=session.record.folder.name,
            turn=turn.number,
            duration=time.monotonic() - self._started,
            retries=loop.retries,
            model=next((answer["model"] for answer in loop.answers if answer.get("model")), loop.plan.model),
            messages=tuple(loop.answers),
            notices=tuple(self._notices),
        )

    @staticmethod
    async def _load_prices(meter: Meter) -> None:
        if not meter.free:
            await asyncio.to_thread(load_prices)

    def _take_word(self, timeline: Timeline, verdicts: Mapping[str, Verdict]) -> None:
        """Write the user's words on the calls of a paused turn, and let them count.

        Raises:
            SessionError: the calls have been answered meanwhile.
        """
        waiting = {call.id for call in self._session.record.waiting}
        words = {call_id: word for call_id, word in verdicts.items() if call_id in waiting}
        if not words:
            raise SessionError("No call waits for approval")
        self._turn.number = timeline.turn
        allowed = {call_id: word.allow for call_id, word in words.items()}
        timeline.append("approval", {"calls": list(words), "verdicts": allowed})
        self._gate.give(words)

    def _loop(self, timeline: Timeline) -> Loop:
        session, settings = self._session, self._turn.options.settings
        prefix = session.record.prefix or {}
        by_location = {session.files.skill_location(skill): skill for skill in session.registry.list()}
        in_use = bounds.approve_skills_in_use(
            self._gate, by_location, session.files, session.place, trust=settings.trust_project_skills
        )
        meter = Meter(parse_budget(settings.budget), free=not session.client.live)
        compactor = Compactor(
            session.client,
            timeline,
            session.record.discovery,
            settings,
            announce=session.opening.skills_known,
            count=meter.count,
            emit=self._emit,
        )
        return Loop(
            client=session.client,
            place=session.place,
            timeline=timeline,
            history=session.record.history,
            gate=self._gate,
            meter=meter,
            plan=Plan(
                model=settings.model,
                max_tokens=settings.max_tokens,
                system=prefix["system"],
                tools=prefix["tools"],
                max_iterations=settings.max_iterations,
                retries=settings.retries,
                extra=self._extra(settings),
            ),
            emit=caller(in_use, self._emit),
            make_room=compactor.make_room if compactor.threshold else None,
        )

    def _tell_differences(self) -> None:
        """Tell the user of tool outputs that are not the recorded ones."""
        if isinstance(self._session.client, ReplayClient):
            for text in self._session.client.notices:
                self._warn(text)
            self._session.client.notices.clear()

    def _extra(self, settings: Settings) -> dict[str, Any]:
        """Thinking and effort of a turn, where they are not those that the client was made with."""
        made = self._session.client_settings
        if (settings.thinking, settings.effort) == (
            made.thinking,
            made.effort,
        ) or not self._session.client.live:
            return {}
        fields = request_fields(settings, settings.max_tokens)
        return {name: fields[name] for name in ("thinking", "output_config") if name in fields}


def _answer(answers: Sequence[Message]) -> str:
    """The text of the last message that has any."""
    texts = [text for message in answers if (text := text_of(message).strip())]
    return texts[-1] if texts else ""
