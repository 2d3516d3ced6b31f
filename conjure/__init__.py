"""The short name of the package: ``%load_ext conjure``, ``import conjure``.

Everything lives in ``conjure_jupyter``; this module passes its names on.
"""

from __future__ import annotations

from typing import Any

import conjure_jupyter

__all__ = conjure_jupyter.__all__


def __getattr__(name: str) -> Any:
    return getattr(conjure_jupyter, name)


def __dir__() -> list[str]:
    return dir(conjure_jupyter)
