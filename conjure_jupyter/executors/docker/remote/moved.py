"""What a push or a pull did, and what the user should know of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .share import Share
from .taking import Taking

#: Names in one sentence.
_NAMED = 5


@dataclass(frozen=True, slots=True)
class Moved:
    """What changed on the other side.

    Attributes:
        paths: in the container's terms, absolute.
        notes: what the user should know, a sentence each; each is said once.
    """

    paths: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def together(parts: Iterable[Moved]) -> Moved:
    """Several as one."""
    parts = list(parts)
    return Moved(
        tuple(path for part in parts for path in part.paths),
        tuple(note for part in parts for note in part.notes),
    )


def sent(share: Share, paths: Iterable[str], left_out: Iterable[str]) -> Moved:
    """A push.

    Args:
        left_out: reasons why something was not sent.
    """
    notes = [f"Not sent to the container from {share.tree.root}: {reason}." for reason in left_out]
    return Moved(_there(share, paths), _new(share, notes))


def brought(share: Share, taking: Taking, too_large: Sequence[str]) -> Moved:
    """A pull."""
    notes = [f"Left in the container's {share.target}: {reason}." for reason in taking.left_out]
    for path, beside in taking.conflicts:
        if beside is not None:
            notes.append(
                f"{path} changed here and in the container: yours stays, the container's is now {beside}."
            )
        else:
            notes.append(f"{path} in the container is something else than here: both stay as they are.")
    if too_large:
        names = ", ".join(too_large[:_NAMED]) + (" and more" if len(too_large) > _NAMED else "")
        notes.append(f"Left in the container's {share.target}, there is no room here: {names}.")
    return Moved(_there(share, taking.taken), _new(share, notes))


def _there(share: Share, paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(str(share.target / path) for path in paths)


def _new(share: Share, notes: Iterable[str]) -> tuple[str, ...]:
    found = tuple(note for note in notes if note not in share.told)
    share.told.update(found)
    return found
