"""The engine's side of a session: its state, and how a turn goes from the user's words to the reply.

Everything here runs on the engine's loop, one turn at a time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from ..clients import Client, choose_client
from ..clients.replay import Mode, ReplayClient
from ..errors import (
    SessionClosedError,
    SessionError,
)
from ..executors import Executor, create_executor
from ..paths import make_private_dir
from ..places import ExecutorPlace, Place
from ..settings import Settings
from ..skills import SkillRegistry, load_all
from ..storage.callbacks import FileCallbacks
from ..telemetry import span
from ..timeline import Timeline
from ..types import Listener, ToolCall, ToolResult
from . import bounds, preview
from .approvals import ApprovalRequest, Approver, Gate, Verdict, request
from .artifacts import SessionArtifacts
from .cost import load_prices
from .elsewhere import Elsewhere
from .opening import Opening
from .record import Record
from .reply import Reply
from .stopping import to_the_end
from .store import FOLDER
from .turn import Turn, TurnOptions
from .turn_run import TurnRun
from .undo import Past, Undone, UndoPlan
from .workspace import Workspace

log = logging.getLogger(__name__)


class Runner:
    """Runs the turns of one session.

    Attributes:
        running: the turn under way.
        rules: what the user allowed for the rest of the session, by the place where she did.
        opening: how its turns begin.
        artifacts: what the user gave and what Claude made.
        past: what turns did to files.
        elsewhere: the session's copy in a storage, when it is to have one.
        last: the reply of the latest turn, whatever it ended with.
        closed: no turn may start any more.
        broken: the latest turn lacks something in the log.
        client_settings: the settings that the client was made with.
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
        callbacks: FileCallbacks,
    ) -> None:
        self.settings = settings
        self.registry = registry
        self.record = record
        self.files = files
        self.project = project
        self.opening = Opening(record, registry, files, project)
        self.artifacts = SessionArtifacts(
            record,
            files,
            registry,
            settings=settings,
            project=project,
            callbacks=callbacks,
            url_of=self._url_of,
        )
        self.past = Past(
            self.record.log,
            self.artifacts.blobs,
            files.layout,
            lambda: self.place.host_context,
            settings.undo_limit,
        )
        self.elsewhere: Elsewhere | None = None
        self.running: Turn | None = None
        self.rules: dict[str, list[str]] = {}
        self.last: Reply | None = None
        self.closed = False
        self.broken = False
        self._given_client = client
        self._client: Client | None = None
        self._executor = executor
        self._on = settings.on if executor is None else executor.name
        self._places: dict[str, Place] = {}
        self._told: set[str] = set()
        self._namespace = namespace
        self._headless = headless
        self.client_settings = settings
        self._lock = asyncio.Lock()

    @property
    def client(self) -> Client:
        """Who answers; chosen at first use."""
        if self._client is None:
            self.client_settings = self.settings
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
        """Where tools run now; made at first use, started at the first call."""
        if self._on not in self._places:
            self._places[self._on] = ExecutorPlace(
                self._executor or self._make_executor(self._on),
                bounds.context(self.settings, self.project, self.files),
                namespace=self._namespace if self.settings.inspect_variables else None,
                output_limit=self.settings.output_limit,
                artifacts=self.artifacts.service,
                before=self._before_call,
                after=self._after_call,
            )
        return self._places[self._on]

    def _make_executor(self, name: str) -> Executor:
        if name == "local":
            return create_executor(name, sandbox=self.settings.sandbox)
        if name != "docker":
            return create_executor(name)
        from ..executors.docker import DockerOptions

        make_private_dir(self.record.folder)
        make_private_dir(self.artifacts.shelf)
        return create_executor(
            name,
            options=DockerOptions.of(self.settings),
            session=self.record.folder.name,
            notebook=self.project,
            artifacts=self.artifacts.shelf,
            hidden=(self.project / FOLDER, self.record.folder.parent),
            tell=self.opening.tell_later,
        )

    async def move_to(self, settings: Settings) -> None:
        """Let tools run where a turn wants them.

        A place that can fail, or that confines tools, is started before anything is asked: it may be missing.

        Raises:
            ExecutorError: it cannot be started.
            SettingsError: there is no such place, or it cannot be as the settings want it.
        """
        if self._executor is None:
            self._on = settings.on
        asked = (settings.network, settings.memory_limit)
        if self._on == "local" and self.settings.sandbox == "off" and asked == (None, None):
            return
        place = self.place
        try:
            await place.start()
        except BaseException:
            if self._executor is None:
                del self._places[self._on]  # made anew by the next turn, whose settings may be right
                await place.close()
            raise
        if (reason := place.shortfall()) and reason not in self._told:
            self._told.add(reason)
            self.opening.tell_later(reason)

    def _url_of(self, sha256: str) -> str | None:
        return self.elsewhere.url_of(f"blobs/{sha256}") if self.elsewhere is not None else None

    async def _before_call(self, call: ToolCall) -> None:
        call = self._on_host(call)
        await self.past.before(call)
        await self.artifacts.before(call)

    async def _after_call(self, call: ToolCall, result: ToolResult) -> None:
        call = self._on_host(call)
        if files := result.meta.get("files"):
            meta = {**result.meta, "files": [self.place.on_host(path) for path in files]}
            result = replace(result, meta=meta)
        await self.past.after(call, result)
        await self.artifacts.after(call, result)

    def _on_host(self, call: ToolCall) -> ToolCall:
        """The call with its path as one of this machine, for those who look at files here."""
        path = call.input.get("path") if isinstance(call.input, dict) else None
        if not isinstance(path, str) or (here := self.place.on_host(path)) == path:
            return call
        return replace(call, input={**call.input, "path": here})

    def gate(self, options: TurnOptions, approver: Approver | None) -> Gate:
        """Who decides the calls of a turn with these options."""
        skill = self.registry.get(options.skill) if options.skill else None
        policy = bounds.policy(
            options.settings,
            self.rules.get(self._on, ()),
            skill,
            place=self.place,
            registered=self.artifacts.is_registered_url,
        )
        return Gate(policy, approver)

    def allow(self, rules: Sequence[str]) -> None:
        """Let calls run unasked for the rest of the session, where tools run now: not on another machine."""
        self.rules.setdefault(self._on, []).extend(rules)

    @property
    def paused_in(self) -> str | None:
        """Where the tools of a paused turn run; None when the caller's own executor runs them."""
        prefix = self.record.prefix or {}
        return None if self._executor is not None else str(prefix.get("place", "local"))

    def waiting(self) -> list[ApprovalRequest]:
        """Calls of a paused turn that wait for the user's word, and why they do."""
        waiting = [] if self.running is not None else self.record.waiting
        if not waiting:
            return []
        self._on = self.paused_in or self._on
        policy = self.gate(TurnOptions(settings=self.settings), None).policy
        return [request(call, policy.decide(call)) for call in waiting if policy is not None]

    async def reopen(self) -> None:
        """Take up a session that exists, with the skills it had.

        Those that nobody loaded again count as untrusted: the log may have come with a cloned folder.

        Raises:
            SessionLockedError: another process writes to it.
            StorageError: it cannot be brought here from its storage.
            TimelineError: its log cannot be read.
        """
        empty = not self.files.root.exists()
        if self.elsewhere is not None:
            await self.elsewhere.bring(self.record.folder)
        problems = await self.record.reopen()
        if empty:
            problems += await self._check_out()
        await self.artifacts.capture.recover()
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

    async def _check_out(self) -> list[str]:
        """Make the files of a session that came from another machine; what is missing, for the user."""
        await asyncio.to_thread(self.files.make)
        restored = await asyncio.to_thread(self.past.check_out)
        if restored is None or not restored.missing:
            return []
        return [
            f"{len(restored.missing)} files of the session were not kept: {', '.join(restored.missing[:3])}"
        ]

    async def dry_run(self, turn: Turn) -> preview.DryRun:
        """What a turn would send; changes nothing."""
        before = self.opening.retried(turn)
        now = self._on
        if self._executor is None:
            self._on = turn.options.settings.on
        try:
            prefix = self.opening.prefix_now(turn.options.settings, self.place, turn.options.skill)
        finally:
            self._on = now
        messages = self.record.messages if before is None else self.record.messages_before(before)
        uploads = [await asyncio.to_thread(preview.file_ref, file, self.files) for file in turn.options.files]
        content = self.opening.content(turn, self.opening.news(before), uploads)
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
                    running = TurnRun(self, turn, approver, listener, verdicts)
                    return await to_the_end(running.run)
            finally:
                self.running = None

    async def open(self) -> Timeline:
        """The log, whole and connected to its copy elsewhere; made at the first call.

        Raises:
            SessionLockedError: another process writes to it.
            StorageError: somebody else writes to the copy, or the storage cannot be used.
            TimelineError: it cannot be made or written.
        """
        timeline = await self.record.open()
        if self.elsewhere is not None:
            await self.elsewhere.connect(timeline)
        if self.broken:
            self.record.close_broken_turn()
            self.broken = False
        return timeline

    def sent(self, reply: Reply) -> None:
        """A turn is written: send it to its copy elsewhere."""
        if self.elsewhere is not None:
            kept = [ref for ref in reply.files if ref.sha256]
            self.elsewhere.send(kept, lambda ref: self.artifacts.tell("synced", ref))

    async def plan_undo(self, number: int | None) -> UndoPlan:
        """What undoing a turn and those after it would do; changes nothing.

        Raises:
            SessionError: there is no such turn, or one is under way.
        """
        async with self._idle():
            return await asyncio.to_thread(self.past.plan, number)

    async def undo(self, plan: UndoPlan) -> Undone:
        """Go back to the start of a turn.

        Raises:
            SessionError: the session went on since the plan was made, or the disk failed.
            TimelineError: the log cannot be written.
        """
        async with self._idle():
            announced = self.opening.before(plan.turn)
            done = await asyncio.to_thread(self.past.undo, plan)
            self.opening.announced = announced
            return done

    @asynccontextmanager
    async def _idle(self) -> AsyncIterator[None]:
        if self.running is not None:
            raise SessionError("A turn is under way; stop it first, or wait for its end")
        async with self._lock:
            if self.closed:
                raise SessionClosedError(self.record.folder.name)
            if self.record.timeline is None:
                raise SessionError("There is no turn to undo yet")
            yield

    async def close(self) -> None:
        """End what was started, after the turn under way."""
        async with self._lock, AsyncExitStack() as stack:
            # Whatever one of them raises, the others are closed.
            stack.push_async_callback(self.record.close)
            stack.push_async_callback(self.artifacts.close)
            if self.elsewhere is not None:
                stack.push_async_callback(self.elsewhere.close)
            if self._client is not None:
                stack.push_async_callback(self._client.close)
            for place in self._places.values():
                stack.push_async_callback(place.close)
            if not self._places and self._executor is not None:
                stack.push_async_callback(self._executor.close)
