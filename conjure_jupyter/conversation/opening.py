"""How a turn begins: what Claude gets, and what is written of it before anything is asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..errors import SessionError
from ..places import Place
from ..settings import Settings
from ..skills import Skill, SkillRegistry
from ..timeline import Timeline
from ..types import Content, FileRef, Listener, Notice, TurnStarted
from . import announce
from .record import Record
from .reply import text_of
from .turn import Turn
from .workspace import Workspace


class Opening:
    """Knows what Claude was told of so far, and says what is new.

    Attributes:
        announced: the skills that Claude was told of, by name.
        told: something the user is told at the next turn.
    """

    def __init__(self, record: Record, registry: SkillRegistry, files: Workspace, project: Path) -> None:
        self.record = record
        self.registry = registry
        self.files = files
        self.project = project
        self.announced: dict[str, Skill] = {}
        self.told: str | None = None

    def renew(self, names: Iterable[str]) -> None:
        """Announce skills of these names once more, and copy them anew: they may have changed."""
        for name in names:
            self.announced.pop(name, None)
            self.files.forget(name)

    def retried(self, turn: Turn) -> int | None:
        """The number of the turn before which history goes on, if it does not go on at its end.

        Raises:
            SessionError: there is no such turn.
        """
        retry, last = turn.options.retry, self.record.turns
        if not retry:
            return None
        number = last if retry is True else retry
        if not 0 < number <= last:
            raise SessionError(f"There is no turn {number} to retry; the session has {last}")
        return number

    def _before(self, undone: int | None) -> dict[str, Skill]:
        """The skills that Claude was told of, by name, without those of turns that are undone."""
        if undone is None:
            return self.announced
        unheard = self.record.skills_since(undone)
        return {name: skill for name, skill in self.announced.items() if str(skill.path) not in unheard}

    def content(self, turn: Turn, uploads: Sequence[FileRef], undone: int | None) -> list[Content]:
        """What Claude gets: what is new since the last turn, then what the user says.

        Raises:
            SessionError: she says nothing.
        """
        news = ""
        if self.record.prefix is not None:
            news = announce.new_skills(self.registry.list(), self._before(undone), self.files)
        chosen = self.registry.get(turn.options.skill) if turn.options.skill else None
        texts = [news, announce.attachments(uploads), announce.chosen_skill(chosen, self.files)]
        said: list[Content] = (
            [{"type": "text", "text": turn.prompt}] if isinstance(turn.prompt, str) else turn.prompt
        )
        said = [block for block in said if block.get("type") != "text" or block["text"].strip()]
        if not said:
            raise SessionError("The prompt is empty")
        return [*({"type": "text", "text": text} for text in texts if text), *said]

    def prefix(self, settings: Settings, place: Place) -> dict[str, Any]:
        """The part of every request that stays the same: system prompt and tools."""
        skills = self.registry.list()
        notebook = self.project if self.project in place.context.allowed_paths else None
        system, left_out = announce.system_prompt(settings, skills, self.files, place, notebook)
        return {
            "system": system,
            "tools": place.definitions,
            "base": settings.system,
            "skills": [str(skill.path) for skill in skills],
            "left_out": list(left_out),
        }

    def say(
        self,
        turn: Turn,
        timeline: Timeline,
        place: Place,
        emit: Listener,
        *,
        undone: int | None,
        content: list[Content],
        uploads: Sequence[FileRef],
    ) -> None:
        """Write what the user said, after what has to be written before it."""
        if undone is not None:
            announced = self._before(undone)
            timeline.append("undo", {"before_turn": undone, "reason": "retry"})
            self.announced = announced
        self.record.refuse_pending()
        turn.number = timeline.begin_turn()
        if self.record.prefix is None:
            prefix = self.prefix(turn.options.settings, place)
            self.record.freeze(prefix)
            if prefix["left_out"]:
                emit(Notice(turn.number, announce.left_out(prefix["left_out"]), "warning"))
        prompt = turn.prompt if isinstance(turn.prompt, str) else text_of({"content": turn.prompt})
        skills = self.registry.list()
        timeline.append(
            "user",
            {
                "content": content,
                "prompt": prompt,
                "model": turn.options.settings.model,
                "options": turn.options.given,
                "uploads": [file.path for file in uploads],
                "skills": [str(skill.path) for skill in skills if self.announced.get(skill.name) != skill],
            },
        )
        self.announced = {skill.name: skill for skill in skills}
        emit(TurnStarted(turn.number, prompt, turn.options.settings.model))
        if self.told:
            emit(Notice(turn.number, self.told, "warning"))
            self.told = None
