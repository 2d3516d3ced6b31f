"""How a turn begins: what Claude gets, and what is written of it before anything is asked."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..artifacts.section import artifacts_section, skill_assets
from ..errors import SessionError
from ..places import Place
from ..prompt import available_skills_block
from ..settings import Settings
from ..skills import Skill, SkillRegistry
from ..timeline import Timeline
from ..timeline.discovery import Registration
from ..types import Content, FileRef, Listener, Notice, TurnStarted
from . import announce
from .record import Record
from .reply import text_of
from .turn import Turn
from .workspace import Workspace

log = logging.getLogger(__name__)


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

    def tell_later(self, text: str) -> None:
        """Tell the user something at the next turn; the log of the process has it now."""
        log.warning("%s", text)
        self.told = f"{self.told}; {text}" if self.told else text

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

    def before(self, undone: int | None) -> dict[str, Skill]:
        """The skills that Claude was told of, by name, without those of turns that are undone."""
        if undone is None:
            return self.announced
        unheard = self.record.skills_since(undone)
        return {name: skill for name, skill in self.announced.items() if str(skill.path) not in unheard}

    def _names_since(self, undone: int | None) -> tuple[list[Registration], list[str]]:
        """Names that were given, and taken away, since Claude was last told of any."""
        before = self.record.turns + 1 if undone is None else undone
        names = self.record.names_since(self.record.last_heard(before))
        known = self.record.discovery.registered
        return [known[name] for name in names if name in known], [name for name in names if name not in known]

    def news(self, undone: int | None) -> list[str]:
        """What is new since the last turn: skills, and names of artifacts. Ask before ``begin``."""
        if self.record.prefix is None:
            return []  # all that is known stands in the system prompt
        return [
            announce.new_skills(self.registry.list(), self.before(undone), self.files),
            announce.artifacts(*self._names_since(undone)),
        ]

    @staticmethod
    def words(turn: Turn) -> list[Content]:
        """What the user says.

        Raises:
            SessionError: she says nothing.
        """
        said: list[Content] = (
            [{"type": "text", "text": turn.prompt}] if isinstance(turn.prompt, str) else turn.prompt
        )
        said = [block for block in said if block.get("type") != "text" or block["text"].strip()]
        if not said:
            raise SessionError("The prompt is empty")
        return said

    def content(self, turn: Turn, news: Sequence[str], uploads: Sequence[FileRef]) -> list[Content]:
        """What Claude gets: what is new since the last turn, the files given, then what the user says.

        Raises:
            SessionError: she says nothing.
        """
        chosen = self.registry.get(turn.options.skill) if turn.options.skill else None
        numbers = {source.path: source.n for source in self.record.discovery.sources}
        texts = [*news, announce.attachments(uploads, numbers), announce.chosen_skill(chosen, self.files)]
        return [*({"type": "text", "text": text} for text in texts if text), *self.words(turn)]

    def prefix(self, settings: Settings, place: Place, in_use: str | None = None) -> dict[str, Any]:
        """The part of every request that stays the same: system prompt and tools.

        Args:
            in_use: the skill that the first turn keeps to, whose assets are listed.
        """
        skills = self.registry.list()
        notebook = place.seen(self.project)
        if notebook not in place.context.allowed_paths:
            notebook = None
        chosen = [skill for skill in skills if skill.name == in_use]
        registrations = list(self.record.discovery.registered.values())
        known = skill_assets(chosen)
        artifacts = artifacts_section(registrations, known) if registrations or known else ""
        system, left_out = announce.system_prompt(
            settings, skills, self.files, place, notebook=notebook, artifacts=artifacts
        )
        return {
            "system": system,
            "tools": place.definitions,
            "base": settings.system,
            "skills": [str(skill.path) for skill in skills],
            "left_out": list(left_out),
            "place": place.name,
            "described": list(place.describe()),
        }

    def prefix_now(self, settings: Settings, place: Place, in_use: str | None = None) -> dict[str, Any]:
        """The prefix that is fixed, or a new one where there is none yet or tools have moved since."""
        fixed = self.record.prefix
        if fixed is None:
            return self.prefix(settings, place, in_use)
        described = list(place.describe())
        same = fixed.get("place", "local") == place.name and fixed.get("described", described) == described
        if same:
            return fixed
        return self.prefix(settings.with_(system=fixed.get("base")), place, in_use)

    def skills_known(self, upto: int) -> str:
        """What a summary of the turns up to ``upto`` must say of skills: those in use, and those announced.

        The skills of the system prompt stay in it; those announced in a summarised turn would be lost.
        """
        late = self.record.skills_since(2)
        skills = [skill for skill in self.announced.values() if str(skill.path) in late]
        listed = available_skills_block(skills, location=self.files.skill_location)
        read = self.record.read_in_turns(
            upto, {self.files.skill_location(s) for s in self.announced.values()}
        )
        parts = [
            f"Skills announced in these turns:\n{listed}" if listed else "",
            announce.skills_in_use(read),
        ]
        return "\n\n".join(part for part in parts if part)

    def begin(self, turn: Turn, timeline: Timeline, place: Place, emit: Listener, undone: int | None) -> None:
        """Write what has to be written before what the user says."""
        if undone is not None:
            announced = self.before(undone)
            timeline.append("undo", {"before_turn": undone, "reason": "retry"})
            self.announced = announced
        self.record.refuse_pending()
        turn.number = timeline.begin_turn()
        fixed = self.record.prefix
        prefix = self.prefix_now(turn.options.settings, place, turn.options.skill)
        if prefix is not fixed:
            timeline.append("prefix" if fixed is None else "place", prefix)
            if prefix["left_out"]:
                emit(Notice(turn.number, announce.left_out(prefix["left_out"]), "warning"))

    def say(
        self,
        turn: Turn,
        timeline: Timeline,
        emit: Listener,
        *,
        content: list[Content],
        uploads: Sequence[FileRef],
    ) -> None:
        """Write what the user says."""
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
