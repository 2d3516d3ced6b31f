"""Sends to a volume what changed on this machine."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping

from ....wording import size_text
from .agreement import Agreement
from .entries import MOST_ENTRIES, Entry
from .listing import Inside
from .moved import Moved, sent
from .sending import Sending
from .share import Share
from .store import Store

_FOLDER = Entry("dir", mode=0o755)


async def push(store: Store, share: Share, inside: Inside | None, owner: tuple[int, int]) -> Moved:
    """One push of one folder; see ``VolumeFiles.push``."""
    agreement = share.agreement
    scan = await asyncio.to_thread(share.tree.scan, agreement.skip, MOST_ENTRIES)
    plan = agreement.to_push(scan)
    if not share.writable:
        inside = None  # nobody changes anything there
    if inside is not None and (plan.send or plan.remove):
        there = await inside.listing(share.target, agreement.skip)
        if there is not None:
            plan = agreement.safe_to_push(plan, there)
    reasons = list(scan.left_out)
    send = _fitting(agreement, plan.send, share.most_bytes)
    if len(send) < len(plan.send):
        reasons.append(f"files beyond {size_text(share.most_bytes)} in all")
    if send or not share.begun:
        await _send(store, share, send, owner)
    if plan.remove and (inside is not None or not share.writable):
        await _remove(store, share, plan.remove, inside)
    if inside is not None and agreement.unsettled:
        there = await inside.listing(share.target, agreement.skip)
        if there is not None:
            agreement.settle(there)
    return sent(share, [*dict(send), *plan.remove], reasons)


def _fitting(agreement: Agreement, send: list[tuple[str, Entry]], most: int) -> list[tuple[str, Entry]]:
    """What there is room for, in order; folders and links always."""
    if not send:
        return []
    again = dict(send)
    room = most - sum(agreed.here.size for path, agreed in agreement.paths.items() if path not in again)
    found = []
    for path, entry in send:
        if entry.size <= room:
            room -= entry.size
            found.append((path, entry))
    return found


async def _send(store: Store, share: Share, send: list[tuple[str, Entry]], owner: tuple[int, int]) -> None:
    agreement, stop = share.agreement, threading.Event()
    first = [] if share.begun else [("", _FOLDER)]
    sending = Sending(share.tree, [*first, *send], prefix=share.inner, owner=owner, stop=stop)
    agreement.doubtful.update(path for path, _ in send)
    await store.put(sending, stop)
    share.begun = True
    agreement.pushed(_named(sending.sent))


def _named(sent: Mapping[str, Entry]) -> dict[str, Entry]:
    return {path: entry for path, entry in sent.items() if path}


async def _remove(store: Store, share: Share, paths: list[str], inside: Inside | None) -> None:
    if inside is None:
        await store.remove([f"{share.inner}/{path}" for path in paths])
    for path in paths:
        if inside is not None:
            # What stays is a folder with something new in it: the pull brings it back.
            await inside.delete(share.target / path)
        share.agreement.paths.pop(path, None)
