"""Logical paths: the names by which everything in a session's history is found again, for ever.

``grammar`` says what they look like and what stands for them on disk; ``mentions`` finds them in text.
"""

from .grammar import (
    ATTACHMENTS,
    FILES,
    INTERNAL,
    OUTPUTS,
    UPLOADS,
    LogicalPath,
    fault,
    file_path,
    from_physical,
    in_workspace,
    of_workspace,
    parse,
    physical,
    turn_id,
)
from .mentions import mentions, source_mentions

__all__ = [
    "ATTACHMENTS",
    "FILES",
    "INTERNAL",
    "OUTPUTS",
    "UPLOADS",
    "LogicalPath",
    "fault",
    "file_path",
    "from_physical",
    "in_workspace",
    "mentions",
    "of_workspace",
    "parse",
    "physical",
    "source_mentions",
    "turn_id",
]
