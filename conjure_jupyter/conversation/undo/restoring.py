"""Filling an empty ``work`` folder from a snapshot: for a session that is resumed on another machine."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...errors import ConjureError
from ...timeline import BaseTimeline
from . import ledger, worktree
from .manifest import Snapshot
from .plan import Kept
from .snapshot import Snapshots


@dataclass(slots=True)
class Restored:
    """What became of the files of a snapshot.

    Attributes:
        made: files that were made.
        missing: files whose bytes are not here: they were not kept, or did not come along.
        left: files that could not be made, or in whose place something else lies.
    """

    made: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    left: list[Kept] = field(default_factory=list)


def latest_snapshot(timeline: BaseTimeline, snapshots: Snapshots) -> Snapshot | None:
    """The last snapshot of a log; None when there is none.

    Raises:
        SessionError: it was not kept, or is damaged.
    """
    manifest = ledger.latest(timeline.blocks)
    return None if manifest is None else snapshots.load(manifest)


def checkout_all(snapshot: Snapshot, snapshots: Snapshots) -> Restored:
    """Make the files of a snapshot that are not there; blocks. Nothing that is there is changed.

    Args:
        snapshot: what to make.
        snapshots: of the session's ``work`` folder, which must exist.
    """
    done = Restored()
    root, blobs = snapshots.root, snapshots.blobs
    for path, entry in sorted(snapshot.files.items()):
        try:
            if worktree.status_of(root, path) is not None:
                done.left.append(Kept(path, "something lies there"))
            elif not entry.sha256 or not blobs.has(entry.sha256):
                done.missing.append(path)
            else:
                worktree.make_folders(root, path)
                blobs.checkout(entry.sha256, root, path, entry.mode, replace=False)
                done.made.append(path)
        except (ConjureError, OSError) as error:
            done.left.append(Kept(path, str(error)))
    return done
