"""``%claude undo``: what would be put back, in words, and putting it back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import SettingsError
from .view import say
from .visible import visible

if TYPE_CHECKING:
    from .desk import Desk


def undo(desk: Desk, rest: str) -> None:
    """Go back to before a turn, or with ``--dry-run`` only say what that would do.

    Raises:
        SessionError: there is no session or no such turn, or one is under way.
        SettingsError: what is given is no number of a turn.
    """
    words = rest.split()
    given = [word for word in words if word != "--dry-run"]
    if len(given) > 1 or not all(word.isdecimal() for word in given):
        raise SettingsError("%claude undo", "takes [TURN] [--dry-run]; TURN is a number, see %claude trace")
    session = desk.existing().session
    plan = session.plan_undo(int(given[0]) if given else None)
    told = plan.describe() if "--dry-run" in words else session.undo(plan).describe()
    say(visible(desk.style().told(told)))
