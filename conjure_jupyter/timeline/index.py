"""Which versions of which files there are, by each of the names they go by."""

from __future__ import annotations

from collections.abc import Iterable

from ..types import Block
from .artifact import Artifact, Registration, Source
from .grammar import LogicalPath
from .reading import (
    read_artifact,
    read_path,
    read_place,
    read_registration,
    read_source,
    read_visibility,
)

#: ``(tool_call_id, artifact_path)``: what one call did to one file within a turn.
GroupKey = tuple[str | None, str]


class ArtifactIndex:
    """Reads ``artifact``, ``hide``, ``register``, ``unregister`` and ``undo`` blocks.

    Versions of undone turns stay findable by logical path and keep their numbers; only what is asked for as
    *current* leaves them out. Registrations are the user's own doing, so an undo leaves them.
    """

    def __init__(self) -> None:
        self.all: list[Artifact] = []
        self.registered: dict[str, Registration] = {}
        self._versions: dict[str, list[Artifact]] = {}  # by path in the working directory
        self._latest: dict[str, Artifact] = {}  # by logical path
        self._groups: dict[GroupKey, list[Artifact]] = {}
        self._calls: dict[str, list[Artifact]] = {}
        self._sources: list[Source] = []
        self._numbers: dict[str, int] = {}
        self._live: list[Artifact] = []
        self._current: dict[str, Artifact] = {}
        self._hidden: list[tuple[int, str, str]] = []  # turn, logical path, replacement
        self._next: dict[str, int] = {}
        # How many artifacts there were at each undo, and how many artifacts and undos when a turn began.
        self._undos: list[tuple[int, int]] = []
        self._starts: dict[int, tuple[int, int]] = {}

    def feed(self, block: Block) -> None:
        """Take the next block; what it does not know or cannot use is passed over."""
        if block.kind == "undo":
            self._undo(block)
            return
        self._starts.setdefault(block.turn, (len(self.all), len(self._undos)))
        if block.kind == "artifact":
            self._add(block)
        elif block.kind == "hide":
            path, text = block.data.get("artifact_path"), block.data.get("replacement_text")
            if isinstance(path, str):
                self._hidden.append((block.turn, path, text if isinstance(text, str) else ""))
        elif block.kind == "register":
            registration = read_registration(block)
            if registration is not None:
                self.registered.pop(registration.name, None)
                self.registered[registration.name] = registration
        elif block.kind == "unregister" and isinstance(block.data.get("name"), str):
            self.registered.pop(block.data["name"], None)

    # Asking

    def find(self, logical: LogicalPath | str) -> Artifact | None:
        """The latest version of a logical path: hidden or not, undone or not."""
        return self._latest.get(str(logical))

    def versions(self, path: str) -> list[Artifact]:
        """Every version of a path of the working directory, oldest first, undone ones too."""
        return list(self._versions.get(path, ()))

    def next_version(self, path: str) -> int:
        """The number that the next version of a path gets: 0 for the first."""
        return self._next.get(path, 0)

    def of_call(self, call_id: str, turn: int | None = None) -> list[Artifact]:
        """What a call made or may have made, in order; of one turn when it is given."""
        found = self._calls.get(call_id, ())
        return [artifact for artifact in found if turn is None or artifact.turn == turn]

    def groups(self) -> dict[GroupKey, list[Artifact]]:
        """All versions by the call that made them and their logical path, in order of first appearance."""
        return {key: list(group) for key, group in self._groups.items()}

    def latest(self, path: str) -> Artifact | None:
        """The latest version of a path of the working directory that was not undone."""
        return self._current.get(path)

    def current(self) -> list[Artifact]:
        """The latest version of every path that was not undone, in order of the log."""
        return list(self._current.values())

    def at(self, turn: int) -> list[Artifact]:
        """What was current when a turn began: before any of its blocks, and after the undos before it."""
        later = [start for number, start in self._starts.items() if number >= turn]
        end, undos = min(later, default=(len(self.all), len(self._undos)))
        live: list[Artifact] = []
        done = 0
        for position, before in self._undos[:undos]:
            live = [artifact for artifact in (*live, *self.all[done:position]) if artifact.turn < before]
            done = position
        return list(_newest((*live, *self.all[done:end])).values())

    def upto(self, turn: int) -> list[Artifact]:
        """The latest version of every path that was not undone, among those of turns up to this one."""
        return list(_newest(artifact for artifact in self._live if artifact.turn <= turn).values())

    @property
    def sources(self) -> list[Source]:
        """The pool of sources, by number."""
        return list(self._sources)

    def source(self, number: int) -> Source | None:
        """The source of that number."""
        return self._sources[number - 1] if 0 < number <= len(self._sources) else None

    @property
    def hidden(self) -> dict[str, str]:
        """What is shown instead of each hidden artifact, by logical path. An undo takes a ``hide`` back."""
        return {path: text for _, path, text in self._hidden}

    # Taking

    def _add(self, block: Block) -> None:
        logical = read_path(block.data)
        if logical is None:
            return
        text, path = str(logical), read_place(block.data, logical)
        number = self._numbers.get(text)
        new = number is None and read_visibility(block.data, logical) == "external"
        if new:
            number = self._numbers[text] = len(self._sources) + 1
        artifact = read_artifact(
            block,
            logical,
            path,
            version=self.next_version(path),
            edited=text in self._latest,
            source=number,
        )
        if new:
            self._sources.append(read_source(len(self._sources) + 1, artifact))
        self.all.append(artifact)
        self._live.append(artifact)
        self._latest[text] = artifact
        self._current.pop(path, None)  # so that the order is the log's
        self._current[path] = artifact
        self._next[path] = max(artifact.version + 1, self._next.get(path, 0))
        self._versions.setdefault(path, []).append(artifact)
        self._groups.setdefault((artifact.tool_call_id, text), []).append(artifact)
        for call_id in artifact.tool_call_ids:
            self._calls.setdefault(call_id, []).append(artifact)

    def _undo(self, block: Block) -> None:
        before = block.data.get("before_turn")
        if type(before) is not int:
            return
        self._undos.append((len(self.all), before))
        self._live = [artifact for artifact in self._live if artifact.turn < before]
        self._current = _newest(self._live)
        self._hidden = [entry for entry in self._hidden if entry[0] < before]


def _newest(artifacts: Iterable[Artifact]) -> dict[str, Artifact]:
    """The last artifact of each path, in the order in which these come."""
    found: dict[str, Artifact] = {}
    for artifact in artifacts:
        found.pop(artifact.path, None)
        found[artifact.path] = artifact
    return found
