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
from ..storage import FileCallback, FileCallbacks, RemoteStorage, StorageSpec, split_url
from ..timeline import Timeline
from ..types import Event, FileRef, Listener, Message, Usage
from . import elsewhere, preview, store
from .approvals import ApprovalRequest, Approver, Verdict
from .artifacts import SessionArtifacts
from .elsewhere import Elsewhere
from .erasing import Erased
from .record import Record
from .reply import Reply
from .runner import Runner
from .turn import Prompt, Turn, TurnOptions, caller
from .undo import Undone, UndoPlan
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
        storage: where the session is kept besides this machine: a URL such as ``s3://bucket/prefix``, a
            ``Storage``, a class of them, or ``(class, options)``; what the settings name when None.
        on_file_created: called with a ``FileRef`` and the session's id when a file was given or made.
        on_file_modified: the same for a new version of a file.
        on_file_deleted: the same for one that a call removed; its versions are kept.
        on_file_synced: the same for one that is kept in the storage as well.

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
        storage: StorageSpec = None,
        on_file_created: FileCallback | None = None,
        on_file_modified: FileCallback | None = None,
        on_file_deleted: FileCallback | None = None,
        on_file_synced: FileCallback | None = None,
        _resuming: bool = False,
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
            "callbacks": FileCallbacks(
                on_file_created=on_file_created,
                on_file_modified=on_file_modified,
                on_file_deleted=on_file_deleted,
                on_file_synced=on_file_synced,
            ),
        }
        self.id = store.checked_id(id) if id else store.new_id()
        if _resuming and storage is None and not chosen.storage:
            self.folder, told = store.session_folder(self.id, self.project, chosen), None
            remote = None
        else:
            sessions, told = store.sessions_folder(self.project, chosen)
            self.folder, remote = elsewhere.place(storage, self.id, sessions, chosen)
        if id and not _resuming and (self.folder / "timeline.jsonl").exists():
            raise SessionError(f"Session {id!r} exists already; go on with Session.resume({id!r})")
        self._runner = self._run_by(chosen, remote, storage if isinstance(storage, str) else chosen.storage)
        self._runner.opening.told = told

    def _run_by(self, settings: Settings, remote: RemoteStorage | None, named: str | None) -> Runner:
        about = {"id": self.id, "format": 1, "notebook": self.project.name}
        if remote is not None:
            about["storage"] = named
        record = Record(self.folder, about)
        files = Workspace(self.folder / "work", self.project if settings.workspace == "." else None)
        runner = Runner(settings, self.registry, record, files, self.project, **self._start_options)
        if remote is not None:
            runner.elsewhere = Elsewhere(remote, self.id, runner.opening.tell_later)
        return runner

    @classmethod
    def resume(cls, id: str, settings: Settings | None = None, **options: Any) -> Self:  # noqa: A002
        """Go on with a session that exists; options as for ``Session``.

        What a crash cut short is closed in the log: calls without a result get one that says so.

        Args:
            id: its name, or the address it has in a storage, such as ``s3://bucket/prefix/name``: then it is
                brought to this machine first.
            settings: as for ``Session``.
            **options: as for ``Session``.

        Raises:
            SessionNotFoundError: there is none of that name.
            SessionLockedError: another process writes to it.
            StorageError: it cannot be brought here, or the log here has other lines than the one there.
            TimelineError: its log cannot be read.
        """
        if "://" in id:
            spec, id = split_url(id)  # noqa: A001  the name the user knows it by
            options.setdefault("storage", spec)
        session = cls(settings, id=id, _resuming=True, **options)
        try:
            engine().run(session._runner.reopen())
        except BaseException:
            session.close()  # it may hold the log's lock
            raise
        return session

    @classmethod
    def erase(
        cls,
        id: str,  # noqa: A002  the name the user knows it by
        settings: Settings | None = None,
        *,
        project: Path | str | None = None,
        storage: StorageSpec = None,
    ) -> Erased:
        """Erase a session: its log, blobs and files, and its copies elsewhere.

        Args:
            id: its name.
            settings: as for ``Session``.
            project: the notebook's folder.
            storage: where else it is kept; what its log or the settings name when None.

        Returns:
            What was erased and what could not be.

        Raises:
            SessionNotFoundError: there is none of that name.
            SessionLockedError: it is in use, here or elsewhere.
            SessionError: it cannot be erased.
        """
        chosen = settings or Settings.from_env()
        folder = store.session_folder(
            id, Path(project).resolve() if project else store.project_folder(), chosen
        )
        _, remote = elsewhere.place(
            storage or elsewhere.storage_of(folder),
            folder.name,
            folder.parent,
            chosen.with_(storage_cache=None),
        )
        return engine().run(elsewhere.erase(folder, remote))

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
    def artifacts(self) -> SessionArtifacts:
        """What the user gave, what Claude made, and what has a name."""
        return self._runner.artifacts

    @property
    def created_files(self) -> Sequence[FileRef]:
        """The latest version of every file that Claude made under ``outputs/``, by path."""
        return self.artifacts.made_by_claude()

    @property
    def url(self) -> str | None:
        """The address of its copy elsewhere, which ``Session.resume`` takes; None when it has none yet."""
        kept = self._runner.elsewhere
        return kept.url if kept is not None else None

    def sync(self) -> bool:
        """Wait until all that was said and made by now is in its storage.

        Returns:
            False when nothing is sent from here any more, which the user was told.

        Raises:
            StorageError: it cannot be sent now; what waits stays on this machine and is sent later.
        """
        kept = self._runner.elsewhere
        return engine().run(kept.synced()) if kept is not None else True

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
        return self._runner.waiting()

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
        if (place := self._runner.paused_in) is not None:
            if given.get("on", place) != place:
                raise SettingsError(
                    "on", f"the paused turn's tools run at {place!r}; a new turn can move them"
                )
            given["on"] = place
        turn = Turn("", self._options({**paused, **given}))
        return turn.run(self._runner.run(turn, self.approver, self.listener, verdicts))

    def dry_run(self, prompt: Prompt, **options: Any) -> preview.DryRun:
        """What a turn would send, with its size and price; changes nothing.

        Raises:
            ConjureError: what the turn itself would be refused for.
        """
        return engine().run(self._runner.dry_run(Turn(prompt, self._options(options))))

    def plan_undo(self, turn: int | None = None) -> UndoPlan:
        """What undoing a turn, and those after it, will and will not put back; changes nothing.

        Args:
            turn: its number; the last one that was not undone when None.

        Raises:
            SessionError: there is no such turn, it was undone already, or one is under way.
        """
        return engine().run(self._runner.plan_undo(turn))

    def undo(self, turn: int | UndoPlan | None = None) -> Undone:
        """Go back to the start of a turn: its files are put back, and history goes on from before it.

        Files that somebody else changed since are left as they are, and told; nothing leaves the log.

        Args:
            turn: its number, the last one when None, or a plan that was looked at.

        Raises:
            SessionError: there is no such turn, the session went on since the plan was made, or the disk
                failed; done again, it does the rest.
        """
        plan = turn if isinstance(turn, UndoPlan) else self.plan_undo(turn)
        return engine().run(self._runner.undo(plan))

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
    if settings.on == "hosted":
        raise SettingsError("on", "'hosted' comes in a later version; use 'local' or 'docker'")
    if settings.on == "docker":
        from ..executors.docker.options import DockerOptions

        DockerOptions.of(settings)  # says what is wrong before anything is started
