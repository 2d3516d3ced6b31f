"""What stands in front of the kernel, and where the notebook lies."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

#: ``live``: a notebook that someone looks at. ``headless``: nobody can answer, outputs are kept (nbclient,
#: nbval, papermill, nbconvert, a captured cell). ``terminal``: text only.
Kind = Literal["live", "headless", "terminal"]


def kind(shell: InteractiveShell) -> Kind:
    """What shows the outputs of the cell that runs.

    A client that cannot answer ``input()`` says so in each execute request (``allow_stdin``); that is what
    nbclient and everything built on it does. Under ``%%capture`` outputs are kept for later, too.
    """
    from IPython.core.displaypub import CapturingDisplayPublisher

    if isinstance(shell.display_pub, CapturingDisplayPublisher):
        return "headless"
    kernel = getattr(shell, "kernel", None)
    if kernel is None:
        return "terminal"
    content = parent(kernel).get("content", {})
    return "live" if content.get("allow_stdin", False) else "headless"


def parent(kernel: Any) -> dict[str, Any]:
    """The message that the kernel works on; empty when there is none."""
    try:
        message = kernel.get_parent("shell")
    except LookupError:  # outside any request, ipykernel 7 has no context to look in
        return {}
    return message or {}


def notebook_file(shell: InteractiveShell) -> Path | None:
    """The notebook's file, when the front end says which it is."""
    named = os.environ.get("JPY_SESSION_NAME") or shell.user_ns.get("__vsc_ipynb_file__")
    if isinstance(named, str) and Path(named).is_absolute():
        return Path(named)
    return None


def project_folder(shell: InteractiveShell) -> Path:
    """The notebook's folder; the current one when the front end does not tell."""
    file = notebook_file(shell)
    if file is not None and file.parent.is_dir():
        return file.parent.resolve()
    return Path.cwd()
