"""Which folders and files to fetch so that all that changed comes, and little else."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from .entries import Entry, above

#: What a request costs besides its bytes, in bytes: an engine takes 0.1 s to mount the volume.
REQUEST = 1 << 20
_HEADER = 1024


def cover(entries: Mapping[str, Entry], wanted: Collection[str]) -> list[str]:
    """Paths whose archives hold all that is wanted, at the least cost; "" is the folder itself.

    A folder is fetched whole when that costs less than what is wanted of it one by one.

    Args:
        entries: all there is; holders before what they hold.
        wanted: the files to have.
    """
    whole: dict[str, int] = {"": 0}
    for path, entry in entries.items():
        cost = entry.size + _HEADER
        whole[path] = whole.get(path, 0) + cost
        for up in (*above(path), ""):
            whole[up] = whole.get(up, 0) + cost
    needed: dict[str, set[str]] = {}
    for path in wanted:
        step = path
        for up in (*above(path), ""):
            needed.setdefault(up, set()).add(step)
            step = up
    best = {path: (REQUEST + whole[path], [path]) for path in wanted}
    for folder in sorted(needed, key=lambda path: path.count("/") + bool(path), reverse=True):
        apart = [best[step] for step in sorted(needed[folder])]
        cost, paths = sum(part[0] for part in apart), [path for part in apart for path in part[1]]
        together = REQUEST + whole[folder]
        best[folder] = (together, [folder]) if together <= cost else (cost, paths)
    return best[""][1] if wanted else []
