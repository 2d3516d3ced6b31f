"""For engines that do not see this machine's files: they are sent to volumes, and brought back.

``VolumeFiles`` is the face; ``Probe`` tells whether it is needed.
"""

from __future__ import annotations

from .moved import Moved
from .probe import Probe, no_such_source
from .volumes import VolumeFiles

__all__ = ["Moved", "Probe", "VolumeFiles", "no_such_source"]
