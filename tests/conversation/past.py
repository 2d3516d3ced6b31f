"""A session's folder with a past: turns are written to its log, and what they do to its files is done."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from conjure_jupyter.artifacts.blobs import BlobStore
from conjure_jupyter.artifacts.layout import Layout
from conjure_jupyter.conversation.undo import Undone, UndoPlan, ledger, plan_undo, undo
from conjure_jupyter.conversation.undo.edits import Edits
from conjure_jupyter.conversation.undo.snapshot import Snapshots
from conjure_jupyter.executors import ExecutionContext
from conjure_jupyter.timeline import Timeline
from conjure_jupyter.types import ToolCall, ToolResult

Tree = dict[str, tuple[bytes, int]]


class Past:
    """A session whose turns are made by the test.

    Args:
        folder: the session's folder; made, or opened again when it has a log.
        project: the tools' working directory, when it is not the session's own.
        limit: most bytes that a snapshot keeps.
    """

    def __init__(self, folder: Path, project: Path | None = None, limit: int = 1 << 20) -> None:
        self.folder = folder
        self.work = folder / "work"
        exists = (folder / "timeline.jsonl").exists()
        self.timeline = Timeline.open(folder) if exists else Timeline.create(folder)
        for name in ("outputs", "uploads", "skills"):
            (self.work / name).mkdir(parents=True, exist_ok=True)
        self.blobs = BlobStore(folder / "blobs")
        self.snapshots = Snapshots(self.work, self.blobs, limit)
        self.layout = Layout(self.work, project or self.work)
        self.context = ExecutionContext(
            working_directory=project or self.work,
            writable_paths=(self.work,),
            read_only_paths=(folder,) if project else (),
        )
        self.edits = Edits(lambda: self.timeline, self.blobs, self.layout, lambda: self.context, limit)

    @contextlib.contextmanager
    def turn(self, prompt: str = "Do it", *commands: str) -> Iterator[int]:
        """A turn; what the block does to files is its work."""
        ledger.note(self.timeline, self.snapshots.take(), "start")
        self.edits.turn_begins()
        number = self.timeline.begin_turn()
        said = {"content": [{"type": "text", "text": prompt}], "prompt": prompt, "model": "m"}
        self.timeline.append("user", said)
        for count, command in enumerate(commands):
            call = {
                "type": "tool_use",
                "id": f"c{number}-{count}",
                "name": "bash_tool",
                "input": {"command": command},
            }
            self.timeline.append("assistant", {"message": {"role": "assistant", "content": [call]}})
            self.timeline.append("tool_call", {"id": call["id"], "name": "bash_tool", "decision": "allow"})
            self.timeline.append(
                "tool_result", {"tool_use_id": call["id"], "content": "", "is_error": False, "meta": {}}
            )
        yield number
        self.timeline.append("turn_end", {"reason": "end_turn", "usage": {}, "cost": None, "files": []})
        ledger.note(self.timeline, self.snapshots.take(), "end")
        self.edits.turn_ends()

    async def write(self, path: str, text: str) -> None:
        """A call of create_file."""
        call = ToolCall(os.urandom(4).hex(), "create_file", {"path": path, "file_text": text})
        await self.edits.before(call)
        place = self.context.working_directory / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        await self.edits.after(call, ToolResult(call.id))

    def plan(self, turn: int | None = None) -> UndoPlan:
        return plan_undo(self.timeline, self.snapshots, self.layout, turn, context=self.context)

    def undo(self, turn: int | None = None, plan: UndoPlan | None = None) -> Undone:
        plan = plan or self.plan(turn)
        return undo(plan, self.timeline, self.snapshots, self.layout, context=self.context)

    def put(self, path: str, text: str | bytes, mode: int = 0o644) -> Path:
        """Write a file of ``work/``."""
        place = self.work / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode() if isinstance(text, str) else text)
        place.chmod(mode)
        return place

    def text(self, path: str) -> str | None:
        place = self.work / path
        return place.read_text() if place.exists() else None

    def again(self) -> Past:
        """The session as another process finds it."""
        self.timeline.close()
        return Past(self.folder)


def names(folder: Path) -> list[str]:
    """What lies in a folder, by name."""
    return sorted(entry.name for entry in folder.iterdir())


def tree(root: Path) -> Tree:
    """Bytes and mode of every regular file."""
    found: Tree = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            status = path.lstat()
            if stat.S_ISREG(status.st_mode):
                found[str(path.relative_to(root))] = (path.read_bytes(), stat.S_IMODE(status.st_mode))
    return found
