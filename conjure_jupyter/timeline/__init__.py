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
notice      ``text``: Claude is told with the next message
approval    ``calls``, ``verdicts`` (None while the user is asked)
turn_end    ``reason``, ``usage``, ``cost``, ``error``, ``files``: of the whole turn
undo        ``before_turn``, ``reason``: history continues from before that turn
compaction  ``summary`` (text or content blocks), ``upto_turn``: stands for those turns
=========== ===================================================================================
"""

from .base import BaseTimeline, MemoryTimeline, Subscriber
from .interrupted import repair
from .listing import SessionInfo, read_session
from .log import Timeline
from .messages import MessageProjection
from .projections import Projection, TurnsProjection, TurnSummary, add_usage, follow

__all__ = [
    "BaseTimeline",
    "MemoryTimeline",
    "MessageProjection",
    "Projection",
    "SessionInfo",
    "Subscriber",
    "Timeline",
    "TurnSummary",
    "TurnsProjection",
    "add_usage",
    "follow",
    "read_session",
    "repair",
]
