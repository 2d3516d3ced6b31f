"""The timeline: the only record of a session, and what is read from it.

A block is a line of ``timeline.jsonl``. What its ``data`` says depends on its ``kind``; readers keep kinds
and keys that they do not know.

=========== ===================================================================================
session     ``id``, ``format``, ``created``, ``notebook``: the first block
prefix      ``system``, ``tools``, ``base``, ``skills``, ``left_out``: frozen from here on
user        ``content`` (blocks), ``prompt`` (what the user typed of it), ``model``, ``uploads``, ``skills``
assistant   ``message`` (as the API gave it), ``partial`` (it broke off)
tool_call   ``id``, ``name``, ``decision`` (allow or deny), ``by``, ``reason``: the call is about to run
tool_result ``tool_use_id``, ``content``, ``is_error``, ``meta``
notice      ``text``: Claude is told with the next message; ``code`` names the kind of some
approval    ``calls``, ``verdicts`` (None while the user is asked)
turn_end    ``reason``, ``usage``, ``cost``, ``error``, ``files``: of the whole turn
artifact    ``artifact_path``, ``path``, ``name``, ``version``, ``mime``, ``size``, ``sha256``, ``kind``,
            ``visibility``, ``source_type``, ``tool_call_id``, ``tool_call_ids``, ``edited``,
            ``sources_used``, ``kept``, ``reason``, ``url``: a version of a file (see ``Artifact``)
hide        ``artifact_path``, ``replacement_text``: shown instead of it from here on
register    ``name``, ``source``, ``mime``, ``size``, ``sha256``, ``suffix``, ``metadata`` (``Registration``)
unregister  ``name``
snapshot    ``manifest`` (sha256 of its blob), ``files``, ``size``, ``skipped``, ``when``: the work folder
edit        ``path``, ``before``, ``after``, ``by``, ``tool_call_id``: a file elsewhere that a file tool wrote
undo        ``before_turn``, ``reason``: history continues from before that turn
compaction  ``summary`` (text or content blocks), ``upto_turn``: stands for those turns; ``summary_path``
=========== ===================================================================================
"""

from .artifact import Artifact, Registration, Source
from .base import BaseTimeline, MemoryTimeline, Subscriber
from .discovery import Discovery
from .index import ArtifactIndex
from .interrupted import repair
from .listing import SessionInfo, read_session
from .log import Timeline
from .logical import LogicalPath
from .messages import MessageProjection
from .projections import Projection, TurnsProjection, TurnSummary, add_usage, follow
from .transcript import Entry

__all__ = [
    "Artifact",
    "ArtifactIndex",
    "BaseTimeline",
    "Discovery",
    "Entry",
    "LogicalPath",
    "MemoryTimeline",
    "MessageProjection",
    "Projection",
    "Registration",
    "SessionInfo",
    "Source",
    "Subscriber",
    "Timeline",
    "TurnSummary",
    "TurnsProjection",
    "add_usage",
    "follow",
    "read_session",
    "repair",
]
