"""What both sides last agreed on, and who changed what since. No files are touched here.

For each path it is known how either side looked when both were the same; what looks different changed there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from .entries import Below, Entry, above
from .listing import Listing
from .tree import Scan


@dataclass(frozen=True, slots=True)
class Agreed:
    """How a path looked on either side when both were the same; ``there`` is None when it must be read."""

    here: Entry
    there: Entry | None


@dataclass(frozen=True, slots=True)
class Plan:
    """What a push is to do: entries to send, holders first, and paths to remove there, holders last."""

    send: list[tuple[str, Entry]]
    remove: list[str]


class Agreement:
    """The state of one folder.

    Args:
        skip: relative paths that belong to other mounts, or are masked.

    Attributes:
        paths: what is agreed.
        doubtful: what a push that failed may have written in part: it is sent again, and not taken back.
    """

    def __init__(self, skip: Iterable[str] = ()) -> None:
        self.skip = Below(skip)
        self.paths: dict[str, Agreed] = {}
        self.doubtful: set[str] = set()

    def to_push(self, scan: Scan) -> Plan:
        """What changed here."""
        self.doubtful &= scan.entries.keys() | self.paths.keys()
        send = [
            (path, here)
            for path, here in scan.entries.items()
            if path in self.doubtful or path not in self.paths or self.paths[path].here != here
        ]
        return Plan(send, self._missing(scan.entries, scan.unknown))

    def safe_to_push(self, plan: Plan, there: Listing) -> Plan:
        """Of a plan, what does not undo a change of the container's; a pull settles the rest first."""
        send = [
            (path, here)
            for path, here in plan.send
            if path in self.doubtful or self._untouched(path, here, there)
        ]
        unknown = Below(there.unknown)
        remove = []
        for path in plan.remove:
            shown = there.entries.get(path)
            if shown is not None and self.knows(path, shown):
                remove.append(path)
            elif shown is None and path not in unknown and "" not in there.unknown:
                del self.paths[path]
        return Plan(send, remove)

    def _untouched(self, path: str, here: Entry, there: Listing) -> bool:
        for up in above(path):
            holder = there.entries.get(up)
            if holder is not None and holder.kind != "dir" and not self.knows(up, holder):
                return False
        shown = there.entries.get(path)
        if shown is None or shown.kind == here.kind == "dir":
            return True
        if shown.kind == "dir":
            inside = path + "/"
            return all(self.knows(other, e) for other, e in there.entries.items() if other.startswith(inside))
        return self.knows(path, shown)

    def knows(self, path: str, shown: Entry) -> bool:
        """Whether that is how the container had a path when it was agreed on."""
        agreed = self.paths.get(path)
        return agreed is not None and shown.is_still(agreed.there)

    def pushed(self, sent: dict[str, Entry]) -> None:
        """The container has these now; their marks there are not known yet."""
        for path, here in sent.items():
            self.paths[path] = Agreed(here, replace(here, mark=None))
            self.doubtful.discard(path)

    def settle(self, there: Listing) -> None:
        """Note the marks of what was pushed, as the container shows it before anything ran there."""
        for path, agreed in self.paths.items():
            shown = there.entries.get(path)
            if shown is not None and shown.is_still(agreed.there):
                self.paths[path] = Agreed(agreed.here, shown)

    @property
    def unsettled(self) -> bool:
        """Whether there are files whose marks are not known."""
        return any(
            agreed.there is not None and agreed.there.kind == "file" and agreed.there.mark is None
            for agreed in self.paths.values()
        )

    def changed_there(self, there: Listing) -> dict[str, Entry]:
        """What the container has that is not agreed, holders first."""
        return {
            path: shown
            for path, shown in there.entries.items()
            if not self.knows(path, shown) and path not in self.doubtful and path not in self.skip
        }

    def gone_there(self, there: Listing) -> list[str]:
        """What is agreed and no more in the container, holders last."""
        return [path for path in self._missing(there.entries, there.unknown) if path not in self.doubtful]

    def _missing(self, entries: dict[str, Entry], unknown: set[str]) -> list[str]:
        if "" in unknown:
            return []
        unseen = Below(unknown)
        gone = [path for path in self.paths if path not in entries and path not in unseen]
        return sorted(gone, key=lambda path: path.count("/"), reverse=True)
