"""Turning a ``%%claude`` cell into an ``await``, where the kernel gains from it.

IPython does not await what a magic returns, so the cell's code is changed before it runs: the call of
``%%claude`` becomes ``await`` and a hidden magic that returns a coroutine. Only a cell of its own is changed:
inside ``%%time``, ``%%capture`` or ``%run`` the magic blocks, as those cannot await.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import ExecutionResult, InteractiveShell

#: The hidden magic.
AWAITED = "_claude"

_CALL = re.compile(r"get_ipython\(\)\.run_cell_magic\('(claude|conjure)', ")
_ALONE = re.compile(r"%%(?:claude|conjure)(?:[ \t]|\r?\n|$)")


class Transforms:
    """The input transformers of one shell, and the events that tell a cell from a cell inside a cell.

    Args:
        shell: IPython's.
        is_ours: whether the cell magic of a name is this package's.
    """

    def __init__(self, shell: InteractiveShell, is_ours: Callable[[str], bool]) -> None:
        self._shell = shell
        self._is_ours = is_ours
        self._running = 0
        # A terminal asks the transformers whether a cell is complete; this one must not answer.
        _allow_empty.has_side_effects = True  # type: ignore[attr-defined]  # IPython's protocol

    def install(self) -> None:
        """Start changing cells."""
        self._shell.input_transformers_cleanup.append(_allow_empty)
        self._shell.input_transformers_post.append(self.to_await)
        self._shell.events.register("pre_execute", self._enter)
        self._shell.events.register("post_execute", self._leave)

    def remove(self) -> None:
        """Leave cells alone again."""
        self._shell.input_transformers_cleanup.remove(_allow_empty)
        self._shell.input_transformers_post.remove(self.to_await)
        self._shell.events.unregister("pre_execute", self._enter)
        self._shell.events.unregister("post_execute", self._leave)

    def _enter(self) -> None:
        self._running += 1

    def _leave(self) -> None:
        # The cell that loads the extension ends without having been counted.
        self._running = max(0, self._running - 1)

    def to_await(self, lines: list[str]) -> list[str]:
        """The cell's code with the magic's call awaited, where that works."""
        call = _CALL.match(lines[0]) if len(lines) == 1 and not self._running else None
        if call is None or not self._is_ours(call[1]) or not can_await(self._shell):
            return lines
        return [_CALL.sub(f"await get_ipython().run_cell_magic('{AWAITED}', ", lines[0], count=1)]


def end_queue(shell: InteractiveShell) -> None:
    """Keep the cells that wait behind the one that runs from starting, as after an interrupt.

    The cell itself stays as it is: its value is shown, no traceback is. Only the kernel's answer to the
    front end, which looks at the result after the ``post_run_cell`` event, becomes an error.
    """

    def mark(result: ExecutionResult) -> None:
        shell.events.unregister("post_run_cell", mark)
        if result.error_in_exec is None:
            result.error_in_exec = KeyboardInterrupt("stopped")

    if getattr(shell, "kernel", None) is not None:
        shell.events.register("post_run_cell", mark)


def can_await(shell: InteractiveShell) -> bool:
    """Whether a cell of this shell may be an ``await`` while the kernel goes on handling messages."""
    kernel = sys.modules.get("ipykernel")
    if kernel is None or getattr(shell, "kernel", None) is None or kernel.version_info < (7,):
        return False
    import asyncio

    from IPython.core.async_helpers import _asyncio_runner

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return bool(shell.autoawait) and shell.loop_runner is _asyncio_runner


def _allow_empty(lines: list[str]) -> list[str]:
    """``%%claude --help`` without a body: IPython refuses a cell magic whose body is empty."""
    if len(lines) == 1 and _ALONE.match(lines[0]):
        return [lines[0].rstrip("\r\n") + "\n", "\n"]
    return lines
