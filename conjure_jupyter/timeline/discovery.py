"""What a session's history holds, found by the names that last.

Everything here is derived from blocks: nothing is looked up on disk, and an artifact of a turn that was
undone or summarised is found like any other. Bytes are in the blobs, by an artifact's ``sha256``.
"""

from __future__ import annotations

from ..errors import ArtifactNotFoundError
from ..types import Block, Content
from .artifact import Artifact, Registration, Source
from .grammar import LogicalPath, parse
from .index import ArtifactIndex
from .rendering import artifact_lines, entries, shown
from .safe_json import safe_json
from .sanitise import text
from .transcript import Entry, Transcript

__all__ = ["Artifact", "Discovery", "Entry", "Registration", "Source"]

#: Characters of history that a summary is made from, unless the caller says otherwise: about 100,000 tokens.
RENDER_LIMIT = 400_000

#: Most artifacts that a summary lists, and most characters of that list.
SECTION_ARTIFACTS = 200
SECTION_LIMIT = 60_000


class Discovery(ArtifactIndex):
    """Artifacts, sources, registered names, and what was said: feed it every block in order.

    No block raises: what a damaged or later log holds is passed over. See ``ArtifactIndex`` for what there is
    to ask about artifacts.
    """

    def __init__(self) -> None:
        super().__init__()
        self._said = Transcript()

    def feed(self, block: Block) -> None:
        """Take the next block."""
        before = len(self.all)
        super().feed(block)
        self._said.feed(block)
        for artifact in self.all[before:]:
            self._said.say("artifact", artifact.turn, artifact)

    def tool_name(self, call_id: str) -> str | None:
        """The tool that a call asked for; of its latest use, when an id was used twice."""
        return self._said.tool_name(call_id)

    def text_blocks(self, logical: LogicalPath | str) -> list[Content]:
        """What a logical path stands for, as content blocks.

        * ``ar:`` what the user typed, or the last text Claude answered with in that turn.
        * ``tc:`` a call's name and input as JSON, or the content of its result.
        * ``su:`` the summary.
        * ``so:`` a line of JSON for each source that there is: what it is and which artifact to read.
        * ``fi:`` the digest of the artifact's latest version; its content is in the blobs.

        Raises:
            InvalidArtifactError: it is no logical path.
            ArtifactNotFoundError: nothing has that path; for sources, none of the numbers is known.
        """
        path = parse(logical) if isinstance(logical, str) else logical
        found: list[Content] | None
        if path.kind == "fi":
            artifact = self.find(path)
            found = None if artifact is None else [text(artifact.digest_text())]
        elif path.kind == "so":
            sources = [source for n in path.numbers if (source := self.source(n)) is not None]
            found = [text("\n".join(safe_json(source.describe()) for source in sources))] if sources else None
        else:
            found = self._said.resolve(path)
        if found is None:
            raise ArtifactNotFoundError(str(path), reason=self._hint(path))
        return list(found)

    def render(self, upto_turn: int, *, limit: int = RENDER_LIMIT) -> list[Entry]:
        """What a summary of the turns up to one is made from, oldest first.

        It begins with the summary of an earlier compaction, when there is one, and leaves out what that
        stands for. Inputs and results of calls are cut, hidden artifacts are shown as their replacement.
        When the whole does not fit, the newest entries are kept whole and a ``left_out`` entry says what is
        missing.

        Args:
            upto_turn: the last turn.
            limit: most characters of all entries' texts together; less than a thousand is taken as that.
        """
        return entries(self._said.upto(upto_turn), self.hidden, limit)

    def artifacts_section(
        self, upto_turn: int, *, most: int = SECTION_ARTIFACTS, limit: int = SECTION_LIMIT
    ) -> str:
        """The artifacts up to a turn, for a summary: a digest on each line, then the number of the rest.

        Of each path the latest version that was not undone. Files for the user come before internal ones, and
        newer ones before older ones, when there is no room for all.

        Args:
            upto_turn: the last turn.
            most: artifacts listed at most.
            limit: characters of the lines together at most.
        """
        return artifact_lines(self.upto(upto_turn), self.hidden, most, limit)

    def shown(self, artifact: Artifact) -> str:
        """What a reader of the history sees of an artifact: its digest, or its replacement when hidden."""
        return shown(artifact, self.hidden)

    def _hint(self, path: LogicalPath) -> str:
        if path.kind == "so":
            return f"there are {len(self.sources)} sources"
        known = [artifact.artifact_path for artifact in self.current()[-20:]]
        if path.kind != "fi" or not known:
            return "the history has no such entry"
        return f"the latest are: {', '.join(map(safe_json, known))}"
