"""``%claude fix``: the last error of the kernel, with the code that raised it, as a prompt."""

from __future__ import annotations

import linecache
import sys
import traceback
from types import TracebackType
from typing import TYPE_CHECKING

from ..errors import ConjureError
from .visible import bounded

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

#: Characters of the traceback and of a cell's source that go into the prompt, and how many cells.
TRACEBACK, SOURCE, CELLS = 8_000, 6_000, 3


class NothingToFixError(ConjureError):
    """No cell has failed in this kernel."""

    type = "nothing_to_fix"


def prompt(shell: InteractiveShell, words: str) -> str:
    """The last error, the cells it came through, and what the user says to it.

    Raises:
        NothingToFixError: nothing has failed yet.
    """
    error = getattr(sys, "last_value", None)
    if error is None:
        raise NothingToFixError("No cell has failed yet in this kernel; there is nothing to fix")
    parts = ["This cell failed. Find the cause and show the corrected code.", words.strip()]
    sources = _sources(error)
    if not sources and isinstance(error, SyntaxError):
        sources = [_last_input(shell)]
    parts += [f"The cell:\n{_block(source, 'python')}" for source in sources if source.strip()]
    told = "".join(traceback.format_exception(type(error), error, _user_part(error.__traceback__)))
    parts.append(f"The error:\n{_block(bounded(told.rstrip(), TRACEBACK), 'text')}")
    return "\n\n".join(part for part in parts if part)


def _user_part(trace: TracebackType | None) -> TracebackType | None:
    """The traceback from the first frame of a cell on: what IPython does before is of no interest."""
    start = trace
    while start is not None and not _is_cell(start.tb_frame.f_code.co_filename):
        start = start.tb_next
    return start or trace


def _sources(error: BaseException) -> list[str]:
    """Source of the cells that the error came through, the innermost last, each once."""
    found: dict[str, str] = {}
    for frame, _ in traceback.walk_tb(error.__traceback__):
        name = frame.f_code.co_filename
        if _is_cell(name):
            found[name] = bounded("".join(linecache.getlines(name)), SOURCE)
    return list(found.values())[-CELLS:]


def _is_cell(filename: str) -> bool:
    """Whether code came from a cell: IPython's own names, and ipykernel's temporary files."""
    return filename.startswith("<ipython-input-") or "ipykernel_" in filename


def _last_input(shell: InteractiveShell) -> str:
    """The cell before the one that runs."""
    cells = shell.user_ns.get("In") or [""]
    return bounded(str(cells[-2]) if len(cells) > 1 else "", SOURCE)


def _block(text: str, language: str) -> str:
    ticks = "`" * (3 if "```" not in text else 5)
    return f"{ticks}{language}\n{text.rstrip()}\n{ticks}"
