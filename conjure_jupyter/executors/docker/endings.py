"""Why a container is gone, when all that is left of it is what its engine noted."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from typing import Any

from ...wording import size_text
from .heartbeat import SILENCE


def events_of(api: Any, container_id: str, since: int) -> list[dict[str, Any]]:
    """What happened to a container; engines keep the last few hundred events."""
    with contextlib.closing(
        api.events(
            since=since,
            until=int(time.time()) + 1,
            filters={"container": container_id, "type": "container"},
            decode=True,
        )
    ) as stream:
        return [event for event in stream if not str(event.get("Action", "")).startswith("exec_")]


def reason(events: Sequence[Mapping[str, Any]], memory: int) -> str | None:
    """Why a container ended, by what its engine noted; None where it noted nothing.

    Args:
        memory: bytes it could use.
    """
    actions = {str(event.get("Action") or event.get("status")) for event in events}
    codes = {event.get("Actor", {}).get("Attributes", {}).get("exitCode") for event in events}
    if "oom" in actions:
        return f"The container ran out of memory, of which it may use {size_text(memory)}."
    if "kill" in actions:
        return "The container was removed by somebody else."
    if not actions & {"die", "died"}:
        return None
    if "137" in codes:
        return "The container was killed, by somebody or because its machine ran out of memory."
    return f"The container ended because it had not heard of this notebook for {SILENCE} s."
