"""The engine's side of a session: its state, and how a turn goes from the user's words to the reply.

Everything here runs on the engine's loop, one turn at a time.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from ..clients import Client, choose_client
from ..clients.options import request_fields
from ..clients.replay import Mode, ReplayClient
from ..errors import (
    ApprovalRequiredError,
    BudgetExceededError,
    MaxIterationsError,
    SessionClosedError,
    SessionError,
    TimelineError,
)
from ..executors import Executor, create_executor
from ..places import LocalPlace, Place
from ..settings import Settings, parse_budget
from ..skills import SkillRegistry, load_all
from ..telemetry import span
from ..timeline import Timeline
from ..types import Event, Listener, Message, Notice, TurnFinished
from . import bounds, preview
from .approvals import Approver, Gate, Verdict
from .cost import Meter, load_prices
from .loop import Loop, Plan
from .opening import Opening
from .record import Record
from .reply import Reply, ToolRecord, text_of
from .stopping import Stop, to_the_end
from .trees import Signature
from .turn import Turn, TurnOptions, caller
from .workspace import Workspace

log = logging.getLogger(__name__)

_STOP_REASONS: dict[type[BaseException], str] = {
    MaxIterationsError: "max_iterations",
    BudgetExceededError: "budget",
    ApprovalRequiredError: "approval",
}


class Runner:
    """Runs the turns of one session.

    Attributes:
        running: the turn under way.
        rules: what the user allowed for the rest of the session.
        opening: how its turns begin.
        last: the reply of the latest turn, whatever it ended with.
        closed: no turn may start any more.
    """

    def __init__(
        self,
        settings: Settings,
        registry: SkillRegistry,
        record: Record,
        files: Workspace,
        project: Path,
        *,
        client: Any | None,
        executor: Executor | None,
        namespace: Callable[[], Mapping[str, Any]] | None,
        headless: bool,
    ) -> None:
        self.settings = settings
        self.registry = registry
        self.record = record
        self.files = files
        self.project = project
        self.opening = Opening(record, registry, files, project)
        self.running: Turn | None = None
        self.rules: list[str] = []
        self.last: Reply | None = None
        self.closed = False
        self._broken = False  # the latest turn lacks something in the log
        self._given_client = client
        self._client: Client | None = None
        self._executor = executor
        self._place: Place | None = None
        self._namespace = namespace
        self._headless = headless
        self._client_settings = settings
        self._lock = asyncio.Lock()

    @property
    def client(self) -> Client:
        """Who answers; chosen at first use."""
        if self._client is None:
            self._client_settings = self.settings
            self._client = self._choose()
        return self._client

    def _choose(self) -> Client:
        client = choose_client(self.settings, self._given_client)
        if self.settings.replay_file is None:
            return client
        return ReplayClient(
            client,
            self.project / Path(self.settings.replay_file).expanduser(),
            cast("Mode", self.settings.replay),
            strict=self.settings.replay_strict,
            headless=self._headless,
            folders={"session": self.record.folder},
        )

    @property
    def place(self) -> Place:
        """Where tools run; made at first use, started at the first call."""
        if self._place is None:
            if self._executor is None:
                self._executor = create_executor(self.settings.on)
            self._place = LocalPlace(
                self._executor,
                bounds.context(self.settings, self.project, self.files),
                namespace=self._namespace if self.settings.inspect_variables else None,
                output_limit=self.settings.output_limit,
            )
        return self._place

    def gate(self, options: TurnOptions, approver: Approver | None) -> Gate:
        """Who decides the calls of a turn with these options."""
        skill = self.registry.get(options.skill) if options.skill else None
        return Gate(bounds.policy(options.settings, self.rules, skill, self.place.context), approver)

    async def reopen(self) -> None:
        """Take up a session that exists, with the skills it had.

        Those that nobody loaded again count as untrusted: the log may have come with a cloned folder.

        Raises:
            SessionLockedError: another process writes to it.
            TimelineError: its log cannot be read.
        """
        problems = await self.record.reopen()
        for problem in problems:
            log.warning("session %s: %s", self.record.folder.name, problem)
        self.opening.told = "; ".join(problems) or self.opening.told
        heard = self.record.skill_folders
        skills = await asyncio.to_thread(load_all, [folder for folder in heard if folder.is_dir()])
        self.registry.register(
            [replace(skill, trusted=False) for skill in skills if skill.name not in self.registry]
        )
        known = {skill.name: skill for skill in self.registry.list() if skill.path in heard}
        self.opening.announced = known

    async def dry_run(self, turn: Turn) -> preview.DryRun:
        """What a turn would send; changes nothing."""
        before = self.opening.retried(turn)
        prefix = self.record.prefix or self.opening.prefix(turn.options.settings, self.place)
        messages = self.record.messages if before is None else self.record.messages_before(before)
        uploads = [await asyncio.to_thread(preview.file_ref, file, self.files) for file in turn.options.files]
        content = self.opening.content(turn, uploads, before)
        if self.client.live:
            await asyncio.to_thread(load_prices)
        return await preview.dry_run(
            self.client,
            prefix,
            [*messages, {"role": "user", "content": content}],
            uploads,
            turn.options.settings,
        )

    async def run(
        self,
        turn: Turn,
        approver: Approver | None,
        listener: Listener | None,
        verdicts: Mapping[str, Verdict] | None = None,
    ) -> Reply:
        """Run a turn once those before it have ended.

        Args:
            turn: what the user said.
            approver: asked about calls.
            listener: hears its events, besides the turn's own listener.
            verdicts: goes on with a paused turn instead, with these words on its calls.

        Raises:
            ConjureError: what it ended with, when that is not told by the reply.
            StoppedError: it was stopped before anything of it was written.
        """
        async with self._lock:
            if self.closed:
                raise SessionClosedError(self.record.folder.name)
            self.running = turn
            try:
                with span("conjure.turn", client=self.client.name, model=turn.options.settings.model):
                    return await to_the_end(lambda stop: self._run(turn, stop, approver, listener, verdicts))
            finally:
                self.running = None

    async def _run(
        self,
        turn: Turn,
        stop: Stop,
        approver: Approver | None,
        listener: Listener | None,
        verdicts: Mapping[str, Verdict] | None,
    ) -> Reply:
        started = time.monotonic()
        notices: list[str] = []
        emit = caller(_collector(notices), listener, turn.options.listener)
        gate = self.gate(turn.options, approver)
        timeline = await self.record.open()
        if self._broken:
            self.record.close_broken_turn()
            self._broken = False
        # All that can fail is done before the first block is written.
        restored, before = await asyncio.to_thread(self._prepare)
        if verdicts is None:
            undone = self.opening.retried(turn)
            uploads = await asyncio.to_thread(self.files.add_uploads, turn.options.files)
            content = self.opening.content(turn, uploads, undone)
            stop.check()
            self._broken = True
            self.opening.say(
                turn, timeline, self.place, emit, undone=undone, content=content, uploads=uploads
            )
        else:
            stop.check()
            self._broken = True
            self._take_word(turn, timeline, gate, verdicts)
        loop = self._loop(turn, timeline, gate, emit)
        prices = asyncio.create_task(self._load_prices(loop.meter))
        if verdicts is not None:
            loop.take_up(*self.record.so_far())
        failure: Exception | None = None
        try:
            for text in restored:
                loop.tell(text)
            stop_reason = await stop.allow(self._converse(loop, prices))
            self._tell_differences(turn, emit)
        except asyncio.CancelledError:
            stop_reason = "stopped"
        except Exception as error:  # noqa: BLE001  raised again once the end of the turn is written
            stop_reason, failure = _STOP_REASONS.get(type(error), "error"), error
        self.rules += gate.always
        await prices
        reply = Reply(
            text=_answer(loop.answers),
            files=tuple(await asyncio.to_thread(self.files.changed_since, before)),
            tool_calls=tuple(ToolRecord(call, result) for call, result in loop.records),
            usage=loop.meter.usage,
            cost=loop.meter.cost,
            stop_reason=stop_reason,
            error=(str(failure) or type(failure).__name__) if failure else None,
            session_id=self.record.folder.name,
            turn=turn.number,
            duration=time.monotonic() - started,
            retries=loop.retries,
            model=next((answer["model"] for answer in loop.answers if answer.get("model")), loop.plan.model),
            messages=tuple(loop.answers),
            notices=tuple(notices),
        )
        self.last = reply
        await self.record.end_turn(reply)
        # What could not be written may be a result that its call still needs.
        self._broken = isinstance(failure, TimelineError)
        emit(TurnFinished(turn.number, stop_reason, reply.error))
        if failure is not None and stop_reason not in ("max_iterations", "budget"):
            raise failure
        return reply

    def _prepare(self) -> tuple[list[str], dict[str, Signature]]:
        """Put the working directory right; what is to be told of that, and what ``outputs/`` holds."""
        try:
            told = self.files.make() + self.files.copy_skills(self.registry.list())
        except OSError as error:
            raise SessionError(f"The session's files cannot be put right: {error}") from error
        return told, self.files.snapshot()

    @staticmethod
    async def _converse(loop: Loop, prices: asyncio.Task[None]) -> str:
        if loop.meter.budget is not None:
            await asyncio.shield(prices)
        return await loop.run()

    @staticmethod
    async def _load_prices(meter: Meter) -> None:
        if not meter.free:
            await asyncio.to_thread(load_prices)

    def _take_word(self, turn: Turn, timeline: Timeline, gate: Gate, verdicts: Mapping[str, Verdict]) -> None:
        """Write the user's words on the calls of a paused turn, and let them count.

        Raises:
            SessionError: the calls have been answered meanwhile.
        """
        waiting = {call.id for call in self.record.waiting}
        words = {call_id: word for call_id, word in verdicts.items() if call_id in waiting}
        if not words:
            raise SessionError("No call waits for approval")
        turn.number = timeline.turn
        allowed = {call_id: word.allow for call_id, word in words.items()}
        timeline.append("approval", {"calls": list(words), "verdicts": allowed})
        gate.give(words)

    def _loop(self, turn: Turn, timeline: Timeline, gate: Gate, emit: Listener) -> Loop:
        settings, prefix = turn.options.settings, self.record.prefix or {}
        by_location = {self.files.skill_location(skill): skill for skill in self.registry.list()}
        in_use = bounds.approve_skills_in_use(
            gate, by_location, self.files, trust=settings.trust_project_skills
        )
        return Loop(
            client=self.client,
            place=self.place,
            timeline=timeline,
            history=self.record.history,
            gate=gate,
            meter=Meter(parse_budget(settings.budget), free=not self.client.live),
            plan=Plan(
                model=settings.model,
                max_tokens=settings.max_tokens,
                system=prefix["system"],
                tools=prefix["tools"],
                max_iterations=settings.max_iterations,
                retries=settings.retries,
                extra=self._extra(settings),
            ),
            emit=caller(in_use, emit),
        )

    def _tell_differences(self, turn: Turn, emit: Listener) -> None:
        """Tell the user of tool outputs that are not the recorded ones."""
        if isinstance(self.client, ReplayClient):
            for text in self.client.notices:
                emit(Notice(turn.number, text, "warning"))
            self.client.notices.clear()

    def _extra(self, settings: Settings) -> dict[str, Any]:
        """Thinking and effort of a turn, where they are not those that the client was made with."""
        made = self._client_settings
        if (settings.thinking, settings.effort) == (made.thinking, made.effort) or not self.client.live:
            return {}
        fields = request_fields(settings, settings.max_tokens)
        return {name: fields[name] for name in ("thinking", "output_config") if name in fields}

    async def close(self) -> None:
        """End what was started, after the turn under way."""
        async with self._lock, AsyncExitStack() as stack:
            # Whatever one of them raises, the others are closed.
            stack.push_async_callback(self.record.close)
            if self._client is not None:
                stack.push_async_callback(self._client.close)
            if self._place is not None:
                stack.push_async_callback(self._place.close)
            elif self._executor is not None:
                stack.push_async_callback(self._executor.close)


def _collector(notices: list[str]) -> Listener:
    def listen(event: Event) -> None:
        if isinstance(event, Notice):
            notices.append(event.text)

    return listen


def _answer(answers: Sequence[Message]) -> str:
    """The text of the last message that has any."""
    texts = [text for message in answers if (text := text_of(message).strip())]
    return texts[-1] if texts else ""
