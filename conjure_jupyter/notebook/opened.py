"""A session that is open in a kernel, and what the kernel knows of it besides."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..settings import Settings

if TYPE_CHECKING:
    from ..conversation import Session, Turn
    from .approvals import Asker

#: Settings that a place takes when it is made, besides those whose names begin with ``docker_``.
_OF_PLACES = frozenset(
    ("network", "network_hosts", "memory_limit", "sandbox", "timeout", "environment", "allowed_paths")
)


@dataclass(slots=True)
class Open:
    """A session with the asker that its turns share.

    Attributes:
        background: its turn in the background.
        cells: the turn that each cell made last, by the cell's identifier.
        ran: places where a turn of this kernel came to its end.
        told: changed settings that the user was told not to count here.
    """

    session: Session
    asker: Asker
    background: Turn | None = None
    cells: dict[str, int] = field(default_factory=dict)
    ran: set[str] = field(default_factory=set)
    told: tuple[str, ...] = ()

    def changed(self, now: Settings) -> tuple[str, ...]:
        """The settings of places that the session has otherwise."""
        before = self.session.settings
        names = (spec.name for spec in dataclasses.fields(Settings))
        of_places = (name for name in names if name.startswith("docker_") or name in _OF_PLACES)
        return tuple(name for name in of_places if getattr(before, name) != getattr(now, name))
