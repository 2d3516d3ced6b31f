"""What a sandbox keeps, as the user is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["bubblewrap", "landlock", "seatbelt"]
Wish = Literal["off", "auto", "bubblewrap", "landlock", "seatbelt"]


@dataclass(frozen=True, slots=True)
class Confinement:
    """How far local commands are confined.

    Attributes:
        kind: what confines them; None for nothing.
        reads: whether the user's keys and dot-files, and the sessions' logs, cannot be read.
        writes: whether only the context's folders and temporary ones can be written.
        network: whether there is no network.
        reason: a sentence where something asked for is not kept; else empty.
    """

    kind: Kind | None = None
    reads: bool = False
    writes: bool = False
    network: bool = False
    reason: str = ""

    @property
    def whole(self) -> bool:
        """Whether nothing that matters can be read and sent away: then calls need no asking."""
        return self.reads and self.writes and self.network
