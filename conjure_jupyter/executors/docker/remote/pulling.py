"""Brings to this machine what tools changed in a volume."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Mapping
from pathlib import Path

from ..disk import PART, RESERVE, free_space
from .cover import cover
from .entries import Entry
from .fetching import Fetching
from .listing import TICK, Inside, Listing
from .moved import Moved, brought
from .share import Share
from .store import Store
from .taking import Taking

#: Hard links that are fetched one by one; the others wait for the next pull.
_MOST_SINGLE = 100


async def pull(store: Store, share: Share, inside: Inside | None, *, limit: int) -> Moved:
    """One pull of one folder; see ``VolumeFiles.pull``."""
    share.unfinished = True
    there = await _listing(share, inside)
    taking = Taking(share.tree, share.agreement)
    fetching = Fetching(taking, None, min(limit, await asyncio.to_thread(_room, share.tree.root)))
    if there is None:
        there = fetching.seen
        await _fetch(store, share, fetching, "", fetching.room)
    else:
        await _fetch_changed(store, share, fetching, there)
    await asyncio.to_thread(_drop, taking, there)
    share.stays = bool(fetching.too_large)
    share.unfinished = bool(fetching.again) or "" in there.unknown
    return brought(share, taking, fetching.too_large)


async def _listing(share: Share, inside: Inside | None) -> Listing | None:
    """What the container has, asked again when something changed just now: a later change would not show."""
    if inside is None:
        return None
    there = await inside.listing(share.target, share.agreement.skip)
    if there is not None and there.fresh & share.agreement.changed_there(there).keys():
        await asyncio.sleep(TICK / 10**9)
        there = await inside.listing(share.target, share.agreement.skip)
    return there


async def _fetch_changed(store: Store, share: Share, fetching: Fetching, there: Listing) -> None:
    changed = share.agreement.changed_there(there)
    wanted: dict[str, Entry] = {}
    room = fetching.room
    for path, shown in changed.items():
        if shown.kind != "file":
            continue
        if shown.size > room:
            fetching.too_large.append(path)
            continue
        room -= shown.size
        wanted[path] = shown
    fetching.wanted, fetching.fresh = wanted, frozenset(there.fresh)
    await asyncio.to_thread(_take_plain, fetching.taking, changed)
    for top in await asyncio.to_thread(cover, there.entries, wanted):
        await _fetch(store, share, fetching, top, _size(there, top))
    single, fetching.again = fetching.again[:_MOST_SINGLE], fetching.again[_MOST_SINGLE:]
    for path in single:
        await _fetch(store, share, fetching, path, _size(there, path))


async def _fetch(store: Store, share: Share, fetching: Fetching, top: str, expected: int) -> None:
    take = functools.partial(fetching.archive, top=top, inner=share.inner, expected=expected)
    if not await store.get(f"{share.inner}/{top}".rstrip("/"), take, fetching.stop):
        fetching.again.append(top)  # removed since it was listed


def _size(there: Listing, top: str) -> int:
    if not top:
        return sum(entry.size for entry in there.entries.values())
    inside = top + "/"
    return sum(entry.size for path, entry in there.entries.items() if path == top or path.startswith(inside))


def _take_plain(taking: Taking, changed: Mapping[str, Entry]) -> None:
    for path, shown in changed.items():
        if shown.kind != "file":
            taking.plain(path, shown)


def _drop(taking: Taking, there: Listing) -> None:
    for path in taking.agreement.gone_there(there):
        taking.drop(path)


def _room(folder: Path) -> int:
    free, size = free_space(folder)
    return max(0, free - min(RESERVE, int(size * PART)))
