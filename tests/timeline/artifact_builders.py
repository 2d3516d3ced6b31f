"""Blocks of artifacts as a session writes them."""

from __future__ import annotations

from typing import Any

from conjure_jupyter.timeline import BaseTimeline, Discovery, MemoryTimeline, follow
from conjure_jupyter.timeline.logical import in_workspace, parse
from conjure_jupyter.types import Block

SHA = "ab" * 32


def artifact(logical: str, **more: Any) -> dict[str, Any]:
    """The data of an ``artifact`` block."""
    path = parse(logical)
    call = more.get("tool_call_id")
    return {
        "artifact_path": logical,
        "path": in_workspace(path),
        "name": path.rest,
        "version": 0,
        "mime": "text/plain",
        "size": 3,
        "sha256": SHA,
        "kind": "file",
        "visibility": "internal" if path.part == "internal" else "external",
        "source_type": "attachment" if path.part == "user.attachments" else "file",
        "tool_call_id": None,
        "tool_call_ids": [call] if call else [],
        "edited": False,
        "sources_used": [],
        "kept": True,
        **more,
    }


def made(timeline: BaseTimeline, name: str, *, call: str | None = None, **more: Any) -> Block:
    """Append an artifact of the current turn, ``outputs/<name>``."""
    logical = f"fi:turn_{timeline.turn:04d}.files/{name}"
    return timeline.append("artifact", artifact(logical, tool_call_id=call, **more))


def discovering() -> tuple[MemoryTimeline, Discovery]:
    """A timeline and the discovery that follows it."""
    timeline, discovery = MemoryTimeline(), Discovery()
    follow(timeline, discovery)
    return timeline, discovery
