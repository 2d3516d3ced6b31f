"""Claude with Agent Skills inside Jupyter: an IPython extension, and the same parts as a library.

In a notebook::

    %load_ext conjure
    %skills_load ./skills
    %%claude
    Summarise file://sales.csv with the csv-helper skill.

As a library::

    import conjure_jupyter as conjure

    skills = conjure.load("./skills")
    with conjure.Session(skills=skills) as session:
        print(session.chat("Summarise sales.csv", files=["sales.csv"]).text)

The public names stand in ``__init__.pyi`` and are imported at first use, so that ``%load_ext`` costs next to
nothing.
"""

from __future__ import annotations

from typing import Any

import lazy_loader

from ._version import __version__ as __version__

__getattr__, __dir__, _public = lazy_loader.attach_stub(__name__, __file__)

__all__ = [*_public, "__version__", "load_ipython_extension", "unload_ipython_extension"]  # noqa: PLE0604


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext conjure``: add the magics to a running IPython."""
    from .notebook.extension import load_ipython_extension as load_extension

    load_extension(shell)


def unload_ipython_extension(shell: Any) -> None:
    """``%unload_ext conjure``: take the magics away again."""
    from .notebook.extension import unload_ipython_extension as unload_extension

    unload_extension(shell)
