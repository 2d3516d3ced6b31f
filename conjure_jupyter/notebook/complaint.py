"""Errors as one line in the cell, which fails all the same."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from ..errors import ConjureError
from .visible import bounded

P = ParamSpec("P")
R = TypeVar("R")


def complaint(error: ConjureError) -> ConjureError:
    """``error``, made to be shown without a traceback.

    IPython asks an exception for ``_render_traceback_``. The cell still ends with an error, so that "run
    all", nbconvert and nbval stop there.
    """
    line = f"{type(error).__name__}: {bounded(str(error), 2_000)}"
    error._render_traceback_ = lambda: [line]  # type: ignore[attr-defined]  # IPython's protocol
    return error


def in_one_line(function: Callable[P, R]) -> Callable[P, R]:
    """A magic whose ``ConjureError`` is shown as one line; any other error is a bug, shown whole."""

    @functools.wraps(function)
    def magic(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except ConjureError as error:
            raise complaint(error) from None

    return magic


async def in_one_line_async(work: Any) -> Any:
    """The same for a cell that is awaited."""
    try:
        return await work
    except ConjureError as error:
        raise complaint(error) from None
