"""A real kernel, and what a front end sees of it."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty
from typing import Any

from jupyter_client.manager import KernelManager

REPOSITORY = Path(__file__).parents[2]

#: Seconds to wait for what should happen soon, on a busy machine.
PATIENCE = 60


@dataclass
class Run:
    """What a cell did.

    Attributes:
        outputs: its messages in order: ``(type, content)``, without state changes.
        shown: what a front end shows at the end: MIME bundles in order, updates applied.
        reply: the kernel's answer to the request.
    """

    outputs: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    reply: dict[str, Any] = field(default_factory=dict)

    @property
    def shown(self) -> list[dict[str, Any]]:
        bundles: list[dict[str, Any]] = []
        places: dict[str, int] = {}
        for kind, content in self.outputs:
            identity = content.get("transient", {}).get("display_id")
            if kind == "update_display_data" and identity in places:
                bundles[places[identity]] = content["data"]
            elif kind in ("display_data", "execute_result"):
                if identity:
                    places[identity] = len(bundles)
                bundles.append(content["data"])
        return bundles

    @property
    def text(self) -> str:
        """All that was printed."""
        return "".join(content["text"] for kind, content in self.outputs if kind == "stream")

    @property
    def error(self) -> str | None:
        """The traceback as shown, without colours."""
        for kind, content in self.outputs:
            if kind == "error":
                return re.sub(r"\x1b\[[\d;]*m", "", "\n".join(content["traceback"]))
        return None

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The messages of one type."""
        return [content for found, content in self.outputs if found == kind]


class Kernel:
    """A kernel and its one client."""

    def __init__(self, manager: KernelManager) -> None:
        self.manager = manager
        self.client = manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=PATIENCE)
        self._displays: dict[str, Run] = {}

    def start(self, code: str, *, stdin: bool = True, cell_id: str | None = None) -> str:
        """Send a cell; does not wait for it."""
        content = {
            "code": code,
            "silent": False,
            "store_history": True,
            "user_expressions": {},
            "allow_stdin": stdin,
            "stop_on_error": True,
        }
        message = self.client.session.msg("execute_request", content)
        if cell_id is not None:
            message["metadata"]["cellId"] = cell_id
        self.client.shell_channel.send(message)
        identity = message["header"]["msg_id"]
        assert isinstance(identity, str)
        return identity

    def until(self, request: str, run: Run, condition: Any) -> None:
        """Gather a cell's messages until ``condition(run)`` holds."""
        deadline = time.monotonic() + PATIENCE
        while not condition(run):
            assert time.monotonic() < deadline, f"waited in vain; saw {run.outputs}"
            self._gather(request, run)

    def _gather(self, request: str, run: Run) -> bool:
        """Take in one message; says whether the cell is over."""
        try:
            message = self.client.get_iopub_msg(timeout=0.2)
        except Empty:
            return False
        kind, content = message["msg_type"], message["content"]
        display = content.get("transient", {}).get("display_id")
        if kind == "update_display_data" and display in self._displays:
            # A front end updates a display wherever it is, whatever cell runs meanwhile.
            self._displays[display].outputs.append((kind, content))
            return False
        if message["parent_header"].get("msg_id") != request:
            return False
        if kind == "display_data" and display:
            self._displays[display] = run
        if kind == "status":
            return bool(content["execution_state"] == "idle")
        if kind != "execute_input":
            run.outputs.append((kind, content))
        return False

    def finish(self, request: str, run: Run | None = None, answers: list[str] | None = None) -> Run:
        """Wait for the end of a cell; ``answers`` go to its ``input()`` one after the other."""
        run = run or Run()
        deadline = time.monotonic() + PATIENCE
        while not self._gather(request, run):
            assert time.monotonic() < deadline, f"the cell does not end; saw {run.outputs}"
            if answers and self.client.stdin_channel.msg_ready():
                self.client.get_stdin_msg(timeout=1)
                self.client.input(answers.pop(0))
        while True:
            reply = self.client.get_shell_msg(timeout=PATIENCE)
            if reply["parent_header"].get("msg_id") == request:
                run.reply = reply["content"]
                return run

    def run(self, code: str, **options: Any) -> Run:
        """Run a cell to its end."""
        answers = options.pop("answers", None)
        return self.finish(self.start(code, **options), answers=answers)

    def value(self, expression: str) -> str:
        """The repr of an expression, without history or output."""
        message = self.client.session.msg(
            "execute_request",
            {
                "code": "",
                "silent": True,
                "store_history": False,
                "user_expressions": {"value": expression},
                "allow_stdin": False,
                "stop_on_error": False,
            },
        )
        self.client.shell_channel.send(message)
        while True:
            reply = self.client.get_shell_msg(timeout=PATIENCE)
            if reply["parent_header"].get("msg_id") == message["header"]["msg_id"]:
                found = reply["content"]["user_expressions"]["value"]
                return str(found.get("data", {}).get("text/plain", found))


@contextmanager
def kernel(folder: Path, environment: Mapping[str, str] | None = None) -> Iterator[Kernel]:
    """A kernel that runs in ``folder``, with the extension's package importable."""
    manager = KernelManager(kernel_name="python3")
    paths = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH", "")]))
    env = {**os.environ, "PYTHONPATH": paths, "IPYTHONDIR": str(folder / ".ipython"), **(environment or {})}
    manager.start_kernel(cwd=str(folder), env=env)
    running = Kernel(manager)
    try:
        yield running
    finally:
        running.client.stop_channels()
        manager.shutdown_kernel(now=True)
        manager.cleanup_resources()
