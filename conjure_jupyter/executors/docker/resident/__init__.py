"""One Python process in a container that answers all calls, and this side's link to it.

Over there run ``server``, ``answers``, ``outbox``, ``limits`` and ``surroundings``, with this package's own
code for commands and files; ``payload`` carries them over, ``boot`` starts them. Here is ``link``. ``frames``
is both sides'.
"""

from __future__ import annotations

from .boot import ARGUMENTS
from .link import ResidentLink

__all__ = ["ARGUMENTS", "ResidentLink"]
