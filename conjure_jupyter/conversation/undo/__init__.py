"""Going back to the start of a turn: what files were, whose doing a change was, and what can be put back."""

from .carrying_out import Undone, undo
from .past import Past
from .plan import UndoPlan
from .restoring import Restored
from .search import plan_undo

__all__ = ["Past", "Restored", "UndoPlan", "Undone", "plan_undo", "undo"]
