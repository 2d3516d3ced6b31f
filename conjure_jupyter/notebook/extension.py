"""``%load_ext conjure``: what it adds to a shell, and how it leaves.

Every magic of cells is there under two names, ``claude`` and ``conjure``. Where another package has taken
the first, it keeps it, and a warning says so.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
import warnings
from typing import TYPE_CHECKING, Any

from .completion import Completion
from .magics import make
from .waiting import Transforms

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

#: Seconds after loading until imports are warmed: what the user runs next comes first.
PAUSE = 0.5

#: What the first ``%%claude`` needs and loading does not: a second of imports.
_HEAVY = (
    "conjure_jupyter.notebook.asking",
    "conjure_jupyter.notebook.commands",
    "markdown_it",
    "anthropic",
    "genai_prices",
)


class _Loaded:
    """What a shell got from this package."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell
        self.magics = make(shell)
        self.transforms = Transforms(shell, self.is_ours)
        self.completion = Completion(shell, lambda: self.magics.desk)

    def table(self) -> dict[str, dict[str, Any]]:
        """The shell's magics by kind and name."""
        found: dict[str, dict[str, Any]] = self.shell.magics_manager.magics
        return found

    def is_ours(self, name: str, kind: str = "cell") -> bool:
        """Whether the shell's magic of that name is this package's."""
        return bool(self.table()[kind].get(name) == self.magics.magics[kind].get(name))

    def install(self) -> None:
        """Add everything."""
        for kind, ours in self.magics.magics.items():
            for name, magic in ours.items():
                theirs = self.table()[kind].get(name)
                if theirs is None:
                    self.table()[kind][name] = magic
                elif kind == "cell":
                    _warn_of(name, theirs)
        self.shell.magics_manager.registry["ConjureMagics"] = self.magics
        self.transforms.install()
        self.completion.install()

    def remove(self) -> None:
        """Take everything away again."""
        for kind, ours in self.magics.magics.items():
            for name in ours:
                if self.is_ours(name, kind):
                    del self.table()[kind][name]
        self.shell.magics_manager.registry.pop("ConjureMagics", None)
        configurables: list[Any] = [*self.shell.configurables]
        configurables.remove(self.magics)
        self.shell.configurables[:] = configurables
        self.transforms.remove()
        self.completion.remove()
        self.magics.close()


def _warn_of(name: str, theirs: Any) -> None:
    package = str(getattr(theirs, "__module__", None) or "another package").partition(".")[0]
    warnings.warn(
        f"%%{name} belongs to {package} and stays with it. Use %%conjure and %conjure instead, "
        f"or take the name over: %unload_ext {package}, then %reload_ext conjure",
        stacklevel=2,
    )


_loaded: dict[int, _Loaded] = {}

#: What is logged is shown in the cell as well: without a handler Python would print it there a second time.
_SILENT = logging.NullHandler()


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Add the magics to a shell, and warm the imports of the first cell in the background."""
    if id(shell) in _loaded:
        return
    loaded = _loaded[id(shell)] = _Loaded(shell)
    loaded.install()
    logging.getLogger("conjure_jupyter").addHandler(_SILENT)
    threading.Thread(target=_warm, name="conjure-warm", daemon=True).start()


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Take the magics away again, close the sessions, and leave the shell as it was."""
    loaded = _loaded.pop(id(shell), None)
    if loaded is not None:
        loaded.remove()


def _warm() -> None:
    """Import what the first cell needs. A cell that comes earlier imports it itself, and waits no longer."""
    from importlib import import_module

    time.sleep(PAUSE)
    for name in _HEAVY:
        with contextlib.suppress(ImportError):
            import_module(name)
        time.sleep(0)  # the user's own code goes first
