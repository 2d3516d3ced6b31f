"""A turn that runs: how to wait for it, watch it and stop it."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from ..engine import Job, engine
from ..errors import SettingsError, StoppedError
from ..settings import Settings
from ..types import Content, Event, Listener
from .reply import Reply

log = logging.getLogger(__name__)

Prompt: TypeAlias = str | list[Content]

#: Options of a turn that are settings for this turn only.
_SETTINGS = (
    "model",
    "system",
    "max_iterations",
    "budget",
    "approve",
    "max_tokens",
    "thinking",
    "effort",
    "on",
)


@dataclass(frozen=True, slots=True)
class TurnOptions:
    """What may be said of one turn.

    Attributes:
        files: copied to ``uploads/`` and told to Claude.
        retry: continue from before an earlier turn: its number, or True for the last one.
        skill: keep to this skill and the tools it allows.
        listener: hears the turn's events, besides the session's listener.
        settings: settings of this turn.
        given: what of settings and skill was said for this turn; the log keeps it for a turn that pauses.
    """

    files: tuple[Path, ...] = ()
    retry: bool | int = False
    skill: str | None = None
    listener: Listener | None = None
    settings: Settings = dataclasses.field(default_factory=Settings)
    given: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, settings: Settings, options: Mapping[str, Any]) -> TurnOptions:
        """Options from keyword arguments; those that are None count as not given.

        Raises:
            SettingsError: a name is unknown or a value wrong.
        """
        given = {name: value for name, value in options.items() if value is not None}
        changes = {name: given.pop(name) for name in _SETTINGS if name in given}
        names = {spec.name for spec in dataclasses.fields(cls)} - {"settings", "given"}
        for name in given:
            if name not in names:
                raise SettingsError(
                    name, f"no such option; there are: {', '.join(sorted(names) + list(_SETTINGS))}"
                )
        if "files" in given:
            files: Sequence[str | Path] = given["files"]
            given["files"] = tuple(Path(file) for file in files)
        kept = changes | ({"skill": given["skill"]} if "skill" in given else {})
        return cls(**given, settings=settings.with_(**changes), given=kept)


class Turn:
    """A turn under way. Made by ``Session.start``; usable from any thread.

    Attributes:
        prompt: what the user said.
        options: as given.
        number: its number in the session, 0 until it has one.
    """

    def __init__(self, prompt: Prompt, options: TurnOptions) -> None:
        self.prompt = prompt
        self.options = options
        self.number = 0
        self._job: Job[Reply] | None = None
        self._stopped = False

    def run(self, work: Coroutine[Any, Any, Reply]) -> Turn:
        """Start the work of the turn on the engine."""
        self._job = engine().submit(work)
        return self

    def _started(self) -> Job[Reply]:
        if self._job is None:
            raise RuntimeError("the turn was not started")
        return self._job

    def stop(self) -> None:
        """Stop it: the partial answer is kept, processes end, the session stays usable.

        Returns at once; ``wait`` tells when it has ended. More than one call is the same as one.
        """
        if not self._stopped:
            self._stopped = True
            self._started().cancel()

    def done(self) -> bool:
        """Whether it has ended and its log is on disk."""
        return self._started().done()

    def settle(self) -> None:
        """Wait until it has ended, whatever it ended with."""
        self._started().settle()

    async def ended(self) -> None:
        """Wait from any event loop until it has ended, whatever it ended with."""
        await self._started().ended()

    def on_done(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` on the engine's thread when it has ended."""
        self._started().on_done(callback)

    def result(self) -> Reply:
        """The reply of a turn that has ended.

        Raises:
            ConjureError: what it ended with.
            StoppedError: it was stopped before it began.
        """
        try:
            return self._started().result()
        except asyncio.CancelledError:
            raise StoppedError("Stopped before the turn began") from None

    def wait(self) -> Reply:
        """Wait for the reply. An interrupt stops the turn, waits for its clean-up, and is then raised.

        Raises:
            ConjureError: what it ended with.
        """
        try:
            self._started().settle()
        except KeyboardInterrupt:
            self.stop()
            self._started().settle()
            raise
        return self.result()

    async def wait_async(self) -> Reply:
        """Wait for the reply from any event loop; cancelling the waiter stops the turn and waits for its end.

        Raises:
            ConjureError: what it ended with.
        """
        try:
            await self.ended()
        except asyncio.CancelledError:
            self.stop()
            await self.ended()
            raise
        return self.result()


def caller(*listeners: Listener | None) -> Listener:
    """One listener that calls several; one that raises is logged and never breaks the conversation."""
    active = [listener for listener in listeners if listener is not None]

    def emit(event: Event) -> None:
        for listener in active:
            try:
                listener(event)
            except Exception:
                log.exception("a listener failed on %s", type(event).__name__)

    return emit
