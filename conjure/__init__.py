"""The short name of the package: ``%load_ext conjure``, ``import conjure``.

Everything lives in ``conjure_jupyter``; this module passes names on to it.
"""

from __future__ import annotations

import conjure_jupyter
from conjure_jupyter import *  # noqa: F403  an alias has the names of what it stands for
from conjure_jupyter import __version__, load_ipython_extension, unload_ipython_extension

__all__ = [*conjure_jupyter.__all__, "__version__", "load_ipython_extension", "unload_ipython_extension"]
