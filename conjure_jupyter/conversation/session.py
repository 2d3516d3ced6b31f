"""A conversation that lasts: the face of it, usable from any thread and any event loop."""

from __future__ import annotations

import asyncio
import contextlib
import queue
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from ..clients import Client
from ..engine import SLICE, engine
from ..errors import SessionClosedError, SessionError, SettingsError
from ..executors import Executor
from ..settings import Settings
from ..skills import Skill, SkillRegistry
from ..timeline import Timeline
from ..types import Event, Listener, Message, Usage
from . import preview, store
from .approvals import ApprovalRequest, Approver, Verdict, request
from .record import Record
from .reply import Reply
from .runner import Runner
from .turn import Prompt, Turn, TurnOptions, caller
from .workspace import Workspace


class Session:
    """A conversation with Claude, its files and its log.

    No file of the session is written before the first turn. Turns run one after the other.

    Args:
        settings: defaults, then the environment, when None.
        skills: skills to offer, or a registry, which is asked anew at each turn.
        client: who answers: a ``Client``, an object of the Anthropic SDK, a callable that takes messages and
            returns a response, or None to choose by the settings.
        project: the notebook's folder; the front end's, or the cwd, when None.
        id: a name of the caller's own; one that sorts by time when None.
        namespace: gives the kernel's variables to ``inspect_variable``.
        approver: asked about calls that need the user's word; without one such a turn pauses.
        listener: hears the events of every turn, on the engine's thread.
        executor: runs commands; the one the settings name when None.
        headless: nobody watches: a replay never goes live.

    Attributes:
        id: its name; ``Session.resume`` takes it.
        folder: where its log and files lie.
        project: the notebook's folder.
        settings: what holds unless an option of a turn says otherwise.
        registry: the skills it offers.

    Raises:
        SessionError: the id cannot be a folder's name, or the session exists.
        SettingsError: a setting cannot be used.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        skills: Sequence[Skill] | SkillRegistry = (),
        client: Client | Any | None = None,
        project: Path | str | None = None,
        id: str | None = None,  # noqa: A002  the name the user knows it by
        namespace: Callable[[], Mapping[str, Any]] | None = None,
        approver: Approver | None = None,
        listener: Listener | None = None,
        executor: Executor | None = None,
        headless: bool = False,
    ) -> None:
        chosen = settings or Settings.from_env()
        _check_place(chosen)
        self.project = Path(project).resolve() if project else store.project_folder()
        self.approver = approver
        self.listener = listener
        if isinstance(skills, SkillRegistry):
            self.registry = skills
        else:
            self.registry = SkillRegistry()
            self.registry.register(skills)
        self._start_options: dict[str, Any] = {
            "client": client,
            "executor": executor,
            "namespace": namespace,
            "headless": headless,
        }
        sessions, told = store.sessions_folder(self.project, chosen)
        folder = sessions / (store.checked_id(id) if id else store.new_id())
        if id and (folder / "timeline.jsonl").exists():
            raise SessionError(f"Session {id!r} exists already; go on with Session.resume({id!r})")
        self._settle(folder, chosen)
        self._runner.opening.told = told

    def _settle(self, folder: Path, settings: Settings) -> None:
        self.id, self.folder = folder.name, folder
        record = Record(folder, {"id": self.id, "format": 1, "notebook": self.project.name})
        files = Workspace(folder / "work", self.project if settings.workspace == "." else None)
        self._runner = Runner(settings, self.registry, record, files, self.project, **self._start_options)

    @classmethod
    def resume(cls, id: str, settings: Settings | None = None, **options: Any) -> Self:  # noqa: A002
        """Go on with a session that exists; options as for ``Session``.

        What a crash cut short is closed in the log: calls without a result get one that says so.

        Raises:
            SessionNotFoundError: there is none of that name.
            SessionLockedError: another process writes to it.
            TimelineError: its log cannot be read.
        """
        session = cls(settings, **options)
        session._settle(store.session_folder(id, session.project, session.settings), session.settings)
        try:
            engine().run(session._runner.reopen())
        except BaseException:
            session.close()  # it may hold the log's lock
            raise
        return session

    @property
    def settings(self) -> Settings:
        """What holds unless an option of a turn says otherwise."""
        return self._runner.settings

    @settings.setter
    def settings(self, settings: Settings) -> None:
        _check_place(settings)
        self._runner.settings = settings

    @property
    def workspace(self) -> Path:
        """The tools' working directory."""
        return self._runner.files.cwd

    @property
    def timeline(self) -> Timeline | None:
        """The log, None before the first turn."""
        return self._runner.record.timeline

    @property
    def messages(self) -> list[Message]:
        """The conversation as the API takes it."""
        return self._runner.record.messages

    @property
    def turns(self) -> int:
        """How many turns there were."""
        return self._runner.record.turns

    @property
    def usage(self) -> Usage:
        """Tokens of all turns."""
        return self._runner.record.usage

    @property
    def cost(self) -> float | None:
        """USD of all turns; None when a price is not known."""
        return self._runner.record.cost

    @property
    def last(self) -> Reply | None:
        """The reply of the latest turn, whatever it ended with."""
        return self._runner.last

    @property
    def client(self) -> Client:
        """Who answers; chosen at first use."""
        return self._runner.client

    @property
    def running(self) -> Turn | None:
        """The turn under way, if there is one."""
        return self._runner.running

    @property
    def pending_approval(self) -> list[ApprovalRequest]:
        """Calls of a paused turn that wait for the user's word."""
        runner = self._runner
        waiting = [] if runner.running is not None else runner.record.waiting
        if not waiting:
            return []
        policy = runner.gate(TurnOptions(settings=self.settings), None).policy
        return [request(call, policy.decide(call)) for call in waiting if policy is not None]

    def start(self, prompt: Prompt, **options: Any) -> Turn:
        """Start a turn and return at once.

        Args:
            prompt: text, or content blocks of the API.
            **options: see ``TurnOptions``; settings such as ``model``, ``budget`` or ``max_iterations`` too.

        Raises:
            SettingsError: an option is unknown or wrong.
            SkillNotFoundError: no offered skill has the name given.
            SessionClosedError: the session was closed.
        """
        turn = Turn(prompt, self._options(options))
        return turn.run(self._runner.run(turn, self.approver, self.listener))

    def _options(self, options: Mapping[str, Any]) -> TurnOptions:
        runner = self._runner
        if runner.closed:
            raise SessionClosedError(self.id)
        chosen = TurnOptions.of(self.settings, options)
        _check_place(chosen.settings)
        frozen = runner.record.prefix
        if frozen is not None and chosen.settings.system != frozen.get("base") and options.get("system"):
            raise SettingsError("system", "a session's system prompt is fixed by its first turn; use --new")
        if chosen.skill is not None:
            self.registry.get(chosen.skill)
        return chosen

    def chat(self, prompt: Prompt, **options: Any) -> Reply:
        """Say something and wait for the reply; options as for ``start``.

        Raises:
            ApprovalRequiredError: calls wait for the user's word and there is no approver; see ``approve``.
            APIError: the service failed for good; what came before is in the log.
            ConjureError: any other failure.
        """
        return self.start(prompt, **options).wait()

    async def achat(self, prompt: Prompt, **options: Any) -> Reply:
        """``chat``, to be awaited from any event loop; cancelling it stops the turn."""
        return await self.start(prompt, **options).wait_async()

    def stream(self, prompt: Prompt, **options: Any) -> Iterator[Event]:
        """Say something and iterate over the events; leaving the loop early stops the turn.

        The reply is in ``last`` afterwards. Options and errors as for ``chat``.
        """
        events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        turn = self.start(prompt, **{**options, "listener": caller(options.get("listener"), events.put)})
        turn.on_done(lambda: events.put(None))
        try:
            while (event := _next(events)) is not None:
                yield event
            turn.result()
        finally:
            turn.stop()
            turn.settle()

    async def astream(self, prompt: Prompt, **options: Any) -> AsyncIterator[Event]:
        """``stream``, for any event loop."""
        loop = asyncio.get_running_loop()
        events: asyncio.Queue[Event | None] = asyncio.Queue()

        def put(event: Event | None) -> None:
            with contextlib.suppress(RuntimeError):  # the caller's loop was closed: nobody listens any more
                loop.call_soon_threadsafe(events.put_nowait, event)

        turn = self.start(prompt, **{**options, "listener": caller(options.get("listener"), put)})
        turn.on_done(lambda: put(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            turn.result()
        finally:
            turn.stop()
            await turn.ended()

    def stop(self) -> None:
        """Stop the turn under way, if there is one; see ``Turn.stop``."""
        if (turn := self.running) is not None:
            turn.stop()

    def approve(self, verdict: Verdict | bool = True, **options: Any) -> Turn:
        """Give the user's word on all calls of a paused turn, and go on with it.

        Args:
            verdict: her word.
            **options: as for ``start``; what is not given is as it was for the paused turn.

        Raises:
            SessionError: no call waits.
            SettingsError: an option is unknown or wrong, or only a new turn can have it.
        """
        for name in ("files", "retry"):
            if options.get(name):
                raise SettingsError(name, "a turn that goes on after an approval cannot have it")
        waiting = self.pending_approval
        if not waiting:
            raise SessionError("No call waits for approval")
        word = verdict if isinstance(verdict, Verdict) else Verdict(allow=verdict)
        verdicts = {asked.call.id: word for asked in waiting}
        # A log says what to keep to, not what may run unasked: a paused turn was no automatic one.
        paused = {k: v for k, v in self._runner.record.options.items() if (k, v) != ("approve", "auto")}
        given = {name: value for name, value in options.items() if value is not None}
        turn = Turn("", self._options({**paused, **given}))
        return turn.run(self._runner.run(turn, self.approver, self.listener, verdicts))

    def dry_run(self, prompt: Prompt, **options: Any) -> preview.DryRun:
        """What a turn would send, with its size and price; changes nothing.

        Raises:
            ConjureError: what the turn itself would be refused for.
        """
        return engine().run(self._runner.dry_run(Turn(prompt, self._options(options))))

    def add_skills(self, skills: Sequence[Skill]) -> None:
        """Offer more skills, or newer versions; Claude hears of them with the next message."""
        self.registry.register(skills)
        self._runner.opening.renew(skill.name for skill in skills)

    def close(self) -> None:
        """Stop what runs and let go of the log, the executor and the client; the files stay."""
        self._runner.closed = True
        self.stop()
        engine().run(self._runner.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Session({self.id!r}, turns={self.turns})"


def _next(events: queue.SimpleQueue[Event | None]) -> Event | None:
    """The next event; waits in slices, so that an interrupt is seen between them."""
    while True:
        try:
            return events.get(timeout=SLICE)
        except queue.Empty:
            continue


def _check_place(settings: Settings) -> None:
    if settings.on != "local":
        raise SettingsError("on", f"{settings.on!r} comes in a later version; use 'local'")
