"""File access that cannot leave a folder.

Checking a path and then opening it leaves a gap in which a folder can be swapped for a link. Here the
check is the opening: each part of a path is opened relative to the folder before it, links are read and
walked by us, and a step that would leave every allowed folder ends the walk. Linux does the same in one
call (``openat2`` with ``RESOLVE_BENEATH``), which is used where the kernel has it and the path is plain;
the walk decides all else, so both give the same answers. ``~`` is an ordinary character.

A link may lead from one allowed folder into another; a hard link cannot be told from the file itself.
"""

from __future__ import annotations

from .opening import open_beneath, open_within, read_beneath, read_fd
from .translation import tool_error, translated
from .walk import Spot, located, validate_path
from .writing import make_private_dir, replace_file, write_atomic

__all__ = [
    "Spot",
    "located",
    "make_private_dir",
    "open_beneath",
    "open_within",
    "read_beneath",
    "read_fd",
    "replace_file",
    "tool_error",
    "translated",
    "validate_path",
    "write_atomic",
]
